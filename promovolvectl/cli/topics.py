"""The texts of `help TOPIC`: what holds for all commands and belongs to none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from node.admin.protocol import reasons
from promovolvectl.cli.leaf import MEANINGS
from promovolvectl.cli.render import FORMATS


@dataclass(frozen=True, slots=True)
class Text:
    """\
One topic; `about` is its line in the list."""

    about: str
    text: str


def _words(meanings: Mapping[str, str]) -> str:
    return "\n".join(f"  {word.ljust(25)}  {meaning}" for word, meaning in meanings.items())


_ENDS: Final = "\n".join(f"  {int(status):>3}  {meaning}" for status, meaning in MEANINGS.items())

TOPICS: Final[Mapping[str, Text]] = {
    "ci": Text(
        "groups, annotations and a summary for a CI job",
        """\
--ci github (or PROMOVOLVECTL_CI=github) writes for a job of GitHub Actions: a group for each phase of long work,
an ::error:: annotation for what a command failed with, a ::warning:: for each node that did not answer, and the
answer as a table in the job's summary ($GITHUB_STEP_SUMMARY). All of that goes to stderr and to that file; stdout
is the same as without. Statuses are the same, too, so 'set -e' stops a job at the first unhealthy node.
A worked example is docs/ci.md.
""",
    ),
    "config": Text(
        "profiles, and what wins when several places say something",
        """\
One file holds the profiles: $XDG_CONFIG_HOME/promovolvectl/config.toml, or what PROMOVOLVECTL_CONFIG names.
Highest first: flag, environment PROMOVOLVECTL_*, profile, default. 'config view --origin' shows what holds and where
it comes from; 'config validate' finds faults with their lines. A profile is bound to its cluster's id at the first
contact: an address that answers for another cluster later is refused with 14. 'up' writes the profile 'local', or
the one that -p names, and makes it current.
""",
    ),
    "draining": Text(
        "what a drain does, phase by phase, and how to follow it",
        """\
'node drain NAME' shows its plan, asks, starts an operation at the cluster, and waits. The operation goes on when the
command ends: Ctrl-C stops the watching, '--detach' returns at once, '--timeout' bounds the waiting and not the work.
'op watch ID' takes the watching up again, 'op cancel ID' or 'node undrain NAME' ends it. What holds a phase up is
named soon and then each 30 s. 'node can-stop NAME' tells beforehand whether a node may go; 'cluster restart
--rolling' drains and restarts all nodes in turn. What 'up' started is started again by the command that waits: given
again it goes on with the restart.
""",
    ),
    "environment": Text(
        "every variable that is read",
        """\
PROMOVOLVECTL_CONFIG     the file of profiles
PROMOVOLVECTL_PROFILE    the profile, without -p
PROMOVOLVECTL_ENDPOINT   nodes to ask, HOST:PORT, separated by commas, without --endpoint
PROMOVOLVECTL_KEY_FILE   the operator's key file, instead of the profile's
PROMOVOLVECTL_DATA       the folder of this machine's cluster, for whatever has --data, and what 'config path' says
PROMOVOLVECTL_OUTPUT     the output format, without -o
PROMOVOLVECTL_TIMEOUT    how long to wait, without -t
PROMOVOLVECTL_CI         'github': see 'help ci'
PROMOVOLVECTL_COLOR      auto, always or never, without --color
PROMOVOLVECTL_TIME       utc, local, relative or unix, without --time
NO_COLOR                 set and not empty: no colour
FORCE_COLOR              colour on a terminal that would get none; a pipe gets some by --color always only
TERM, COLUMNS            'dumb' means no colour and no redrawing; the width of a terminal
CI, GITHUB_ACTIONS, GITLAB_CI, BUILDKITE   nobody is asked, nothing is redrawn
XDG_CONFIG_HOME, XDG_DATA_HOME, XDG_STATE_HOME, XDG_CACHE_HOME   where files lie: 'config path'
""",
    ),
    "exit-codes": Text(
        "what a command's exit status means",
        f"""\
{_ENDS}
  129, 130, 141, 143  ended by a signal; a reader that leaves early (141) is no error and nothing is said

'promovolvectl explain E-...' tells more of the code that stands in an error.
""",
    ),
    "glossary": Text(
        "shard, entity, placement, epoch, replica, coverage and the like",
        """\
node         one process of the cluster; its roles say what it does: api, entity, singleton, crawler
entity       a site, a campaign, an advertiser: state in memory on one node at a time, durable in the store
shard        one of 256 groups of entities; moved, pinned and restarted as one
placement    which node has which shard; every change of it has a version
epoch        the number of a shard's ownership; who holds an older one can write nothing any more
hand-off     moving a shard: the old owner stops it, the new one starts it, messages wait in between
coordinator  the node that decides on placement; there is one
leader       the member with the lowest address: it lets nodes in and out, and decides nothing else
ServeIndex   what serving reads: candidates of each slot, in maps that every api node replicates
tombstone    the mark that something was removed, so that no old copy brings it back
coverage     how many slots of fresh pages have candidates
plan         what a change would do; it is shown, then committed or not
operation    work that goes on at the cluster, with an id, phases and a deadline
""",
    ),
    "output": Text(
        "formats, columns, filters and queries",
        f"""\
-o {" | ".join(FORMATS)}. Every command takes every format.
  table, wide   for people; off a terminal nothing is cut, coloured or wrapped, and a row is a line
  json, yaml    one document with an envelope: api_version, kind, cluster, observed_at, observed_by, complete, missing,
                warnings; lists carry 'items'. 'promovolvectl schema KIND' prints its JSON Schema
  jsonl         an item a line
  csv           RFC 4180, with a heading
  name          such as node/entity-1, for xargs
  value         bare values, separated by tabs
--columns a,b picks columns ('help' lists them), --no-headers leaves headings away, --sort col[:desc] orders,
--filter 'status=up,shards>10' keeps rows (= != > < >= <= and ~ for a part), --limit N cuts, --query takes a part of
the document by JMESPath. Nodes that did not answer are listed in 'missing' and the command ends with 12;
--allow-partial makes that 0.
""",
    ),
    "plans": Text(
        "plan, then commit",
        """\
Every verb that changes the cluster has a plan; --dry-run (or --plan) prints it and stops. How much is asked depends on
the harm. What is undone as easily as it was done (create, update, pause, resume, approve, cancel) is done at once.
What moves work, or takes something from serving, shows its plan and asks: --yes commits what it printed, and without a
terminal and without --yes nothing happens and the status is 6. What loses something for good asks for its name, or
takes it by --confirm NAME. 'plan list', 'plan show', 'plan commit ID' commit one that was staged before; it is refused
with 4 when the placement has moved on. --force names the rule that it overrides. --reason goes to the audit log.
--request-id makes a retry the same operation. --dry-run ends with 0 also where the plan would be refused: to a script
'--query violations' tells, which is empty where it would not be.
Of this machine's own processes, 'up' and 'node start' start what is to run and have no plan. 'down' asks nobody, for
scripts end with it and 'up' brings all of it back; 'down --dry-run' says what it would stop.
""",
    ),
    "reasons": Text(
        "the words by which 'serve explain' says why a candidate did not win",
        f"""\
Of a candidate, 'reason':
{_words(reasons.CANDIDATES)}
Of a campaign that was turned away, 'reason':
{_words(reasons.TURNED_AWAY)}
Of a slot that stayed empty, 'why':
{_words(reasons.EMPTY)}
""",
    ),
    "roles": Text(
        "what the roles of nodes do",
        """\
api        serves ads over HTTP from its own replica of the ServeIndex
entity     holds shards: sites, campaigns, advertisers, auctions
singleton  may become the coordinator, and runs what exists once
crawler    takes pages and has them classified
'up' spreads them over the nodes that it starts; 'node list' shows them.
""",
    ),
    "safety": Text(
        "what is refused, and what --force overrides",
        """\
A plan that breaks a rule is refused with 5 and names the rule: the last entity node would drain, a majority would be
lost, shards would have no owner. --force RULE overrides that rule and no other, and never answers the question: --yes
does. No secret is ever an argument: keys are files that only their owner may read, or else they are refused with 16.
""",
    ),
    "scripting": Text(
        "what a script can rely on",
        """\
stdout is the answer and nothing else, stderr all the rest; -q leaves only errors there. Off a terminal there is no
question, no colour and no redrawing. With -o json an error is one JSON document on stderr: kind 'Error', code, exit,
message, hint, object, operation. Asking for what already holds is success with "changed": false. 'cluster wait',
'node wait', 'shard wait', 'replay wait' and 'op wait' return when something holds, or with 9 when --timeout passes.
""",
    ),
}
