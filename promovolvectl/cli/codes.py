"""Every error code that a person can meet, with what it means and what helps: the text behind `explain E-…`."""

from __future__ import annotations

from typing import Final

from promovolvectl.cli.dashboard_codes import DASHBOARD_CODES
from promovolvectl.cli.key_codes import KEY_CODES
from promovolvectl.cli.node_codes import NODE_CODES
from promovolvectl.cli.store_codes import STORE_CODES
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.kinds import ErrorCode


def _code(code: str, status: ExitStatus, meaning: str, help_: str) -> ErrorCode:
    return ErrorCode(code=code, exit=int(status), meaning=meaning, help=help_)


_ALL: Final = (
    _code(
        "E-USAGE",
        ExitStatus.USAGE,
        "The command line can't be understood, or a value of a flag is not of its kind. Nothing was asked or changed.",
        "The message names the flag or word; --help of that command shows what it takes.",
    ),
    _code(
        "E-BAD-INPUT",
        ExitStatus.USAGE,
        "The cluster refused a value: the message names the field and the rule. Nothing changed.",
        "Correct the value and send the same command again.",
    ),
    _code(
        "E-NO-TEXT",
        ExitStatus.USAGE,
        "What was given to be classified holds no text.",
        "A page that a script fills has no text of its own: save what the browser shows, or name a text file.",
    ),
    _code(
        "E-NOT-FOUND",
        ExitStatus.NOT_FOUND,
        "The named thing does not exist in this cluster.",
        "The list command of the same noun shows the names that exist.",
    ),
    _code(
        "E-PROFILE-UNKNOWN",
        ExitStatus.NOT_FOUND,
        "The configuration holds no profile of that name.",
        "Name one that it holds with -p, or make one with 'promovolvectl up -p NAME'.",
    ),
    _code(
        "E-CONFLICT",
        ExitStatus.CONFLICT,
        "Something of that name exists with other values, or another operation is running.",
        "Show what exists, then use another name, or wait for the operation.",
    ),
    _code(
        "E-REFUSED",
        ExitStatus.REFUSED,
        "A safety rule refused: the change would leave shards without a node, or lose a majority.",
        "--dry-run shows which rule. Add another node first; --force where the command has it.",
    ),
    _code(
        "E-NOT-NOW",
        ExitStatus.REFUSED,
        "What the cluster looks like is about to change: a member is unreachable, a node is joining, or versions are "
        "mixed. A rebalance now would move shards twice.",
        "Wait until 'promovolvectl cluster health' is content; --force preconditions does it all the same.",
    ),
    _code(
        "E-NO-COORDINATOR",
        ExitStatus.UNREACHABLE,
        "No node that coordinates the shards was reached: nothing is planned or moved. After a change, unanswered, 9.",
        "'promovolvectl cluster health' tells why; a new coordinator is found within seconds of a failure.",
    ),
    _code(
        "E-NOT-CONFIRMED",
        ExitStatus.NOT_CONFIRMED,
        "A change needs a yes, and it was not given, or nobody was there to be asked. Nothing changed.",
        "--dry-run prints the plan; --yes commits it without a question.",
    ),
    _code(
        "E-ADMIN-DENIED",
        ExitStatus.NOT_ALLOWED,
        "The node does not know this operator's key.",
        "Use the key file that belongs to the cluster, or have its public key added to the roster.",
    ),
    _code(
        "E-UNREACHABLE",
        ExitStatus.UNREACHABLE,
        "None of the addresses that were tried takes a connection; the message lists each with the reason.",
        "Start the cluster with 'promovolvectl up', or ask other nodes with --endpoint HOST:PORT.",
    ),
    _code(
        "E-LOST",
        ExitStatus.UNREACHABLE,
        "The connection broke after the request was sent. A change may have happened all the same.",
        "Look before you repeat; with the same --request-id a repeated change is one change.",
    ),
    _code(
        "E-NO-ANSWER",
        ExitStatus.TIMED_OUT,
        "The node took the request and did not answer in time. A change may have happened all the same.",
        "'promovolvectl cluster health' tells whether the node is in trouble; -t TIME waits longer.",
    ),
    _code(
        "E-TIMEOUT",
        ExitStatus.TIMED_OUT,
        "What was waited for did not come in time. An operation goes on at the cluster.",
        "'promovolvectl op show ID' tells how far it is; -t TIME waits longer.",
    ),
    _code(
        "E-MISFIT",
        ExitStatus.MISMATCH,
        "A node can't join as it is set up: a member of the cluster refused it. The key and both values are named.",
        "Give it the cluster's settings, or another store and data folder; time alone does not help.",
    ),
    _code(
        "E-OTHER-CLUSTER",
        ExitStatus.MISMATCH,
        "The profile belongs to another cluster than the one that answers. Nothing was sent but the question.",
        "Use the profile of that cluster with -p NAME. A cluster that was made anew gets a new profile by 'up'.",
    ),
    _code(
        "E-PROTOCOL",
        ExitStatus.MISMATCH,
        "The node's answer can't be read by this release of the command.",
        "Use a release that fits the cluster's: 'promovolvectl version' and the VERSION column of 'node list -o wide'.",
    ),
    _code(
        "E-NO-PROFILE",
        ExitStatus.UNUSABLE_CONFIG,
        "No cluster is known here: there is no profile yet.",
        "'promovolvectl up' makes a cluster on this machine and its profile.",
    ),
    _code(
        "E-NO-ENDPOINT",
        ExitStatus.UNUSABLE_CONFIG,
        "The profile lists no node to ask.",
        "'promovolvectl up -p NAME' writes them, or name one with --endpoint HOST:PORT.",
    ),
    _code(
        "E-CONFIG",
        ExitStatus.UNUSABLE_CONFIG,
        "The file of profiles can't be read or holds something that is not known.",
        "The message names the place. Correct it, or move the file away and run 'promovolvectl up'.",
    ),
    _code(
        "E-SOURCE",
        ExitStatus.LOCAL_FILE,
        "The file or URL that was to be read can't be.",
        "The message says why: no such file, too large, not text, or the server's answer.",
    ),
    _code(
        "E-FILE",
        ExitStatus.LOCAL_FILE,
        "A file of ours can't be written.",
        "Check the disk's space and the folder's permissions.",
    ),
    _code(
        "E-LAST-ENTITY-NODE",
        ExitStatus.REFUSED,
        "The node is the last that can hold entities: its shards would have nowhere to go.",
        "Start another entity node first, or use --force last-entity-node.",
    ),
    _code(
        "E-ROTATION-ORDER",
        ExitStatus.CONFLICT,
        "The steps of a key's rotation are install, use, retire, in this order, one rotation at a time.",
        "promovolvectl auth rotate NODE --step install|use|retire; each may be repeated.",
    ),
    _code(
        "E-ROTATION-UNCONFIRMED",
        ExitStatus.REFUSED,
        "Not every node has confirmed the step before, so the old key can't be retired without cutting one off.",
        "Start or repair the nodes that are named and repeat the step; --force retires all the same.",
    ),
    _code(
        "E-NOT-ALLOWED",
        ExitStatus.NOT_ALLOWED,
        "Your operator key has not the role that this needs.",
        "The hint says who can hand out a key with that role; 'promovolvectl auth whoami' shows yours.",
    ),
    _code(
        "E-STALE-PLAN",
        ExitStatus.CONFLICT,
        "The plan was made against a placement that has changed since. Nothing was moved.",
        "Give the command again: it makes a plan against what is now.",
    ),
    _code(
        "E-NOTHING-TO-DO",
        ExitStatus.CONFLICT,
        "The plan changes nothing, so there is nothing to commit.",
        "Look at the plan with --dry-run.",
    ),
    _code(
        "E-REJECTED",
        ExitStatus.USAGE,
        "The entity refused the request: the message says which rule it breaks. Nothing changed.",
        "Correct the value and send the same command again.",
    ),
    _code(
        "E-CLASSIFIER",
        ExitStatus.FAILED,
        "The classifier did not answer. Nothing was stored.",
        "Ask again; 'promovolvectl cluster health' tells when it stays so.",
    ),
    _code(
        "E-BUSY",
        ExitStatus.FAILED,
        "A queue of the node is full. Nothing was done.",
        "Ask again in a moment.",
    ),
    _code(
        "E-UNAVAILABLE",
        ExitStatus.FAILED,
        "The entity could not be asked: its shard is moving, or it is restarting.",
        "Ask again; 'promovolvectl cluster health' tells when it stays so.",
    ),
    _code(
        "E-STORE",
        ExitStatus.FAILED,
        "The state store did not answer or could not be used.",
        "'promovolvectl node show NAME' and the node's log tell more.",
    ),
    _code(
        "E-DISK-SLOW",
        ExitStatus.UNHEALTHY,
        "A commit of a node's replica takes longer than a second. Serving and the cluster's traffic are not held up;"
        " what is not on disk yet is in memory and on the other nodes.",
        "Look at the disk's load and health. The fault ends with the first commit that is fast again.",
    ),
    _code(
        "E-REPLICA-DEGRADED",
        ExitStatus.UNHEALTHY,
        "A node's replica can't be written: changes are kept in memory, served and sent to peers as ever. The message"
        " names the file and the error.",
        "Make room on the disk or mend it: the node writes what waits by itself.",
    ),
    _code(
        "E-REPLICA-CHECKED",
        ExitStatus.UNHEALTHY,
        "A sync or write of a replica failed other than for want of room. The whole file is checked in a process of its"
        " own before anything is written again; what waits is served from memory.",
        "It ends by itself. If it comes back, the disk is failing: replace it.",
    ),
    _code(
        "E-REPLICA-FULL",
        ExitStatus.UNHEALTHY,
        "A replica's file has reached the size that it may grow to.",
        "Remove what is not needed, or raise the limit.",
    ),
    _code(
        "E-REPLICA-DISK",
        ExitStatus.UNHEALTHY,
        "The disk refused a write of a replica's file.",
        "Make room on the disk and check its health.",
    ),
    _code(
        "E-REPLICA-AWAITED",
        ExitStatus.UNHEALTHY,
        "A node's replica is not on the roster and must take over from one that is, of which none can be reached. It is"
        " not ready, and serves nothing of what it found on its disk: that may have been removed meanwhile.",
        "Start one of the nodes that are named. If none of them comes back, take them off the roster:"
        " 'promovolvectl serveindex roster remove NODE'.",
    ),
    _code(
        "E-REMOVAL-PENDING",
        ExitStatus.UNHEALTHY,
        "Removals are not on the disks of a majority of the replicas. They hold where they have arrived, and are asked"
        " for again until a majority has them.",
        "'promovolvectl serveindex pending' names who is awaited, and why an answer did not count.",
    ),
    _code(
        "E-ROSTER-UNREADABLE",
        ExitStatus.UNHEALTHY,
        "The roster of replicas in the state store was written by another release. Without it a node's replica is"
        " neither served nor compared.",
        "Run the release that wrote it, or a later one.",
    ),
    _code(
        "E-REPLICA-FILLING",
        ExitStatus.UNHEALTHY,
        "What a replica holds is more than four fifths of what its file may grow to.",
        "'promovolvectl serveindex largest' shows what takes the room.",
    ),
    _code(
        "E-REPLICA-READER",
        ExitStatus.UNHEALTHY,
        "Another process keeps a read of a replica's file open. What was overwritten since can't be used again, so the"
        " file grows.",
        "End that process, whose number the message names.",
    ),
    _code(
        "E-REPLICA-DAMAGED",
        ExitStatus.UNHEALTHY,
        "Entries of a node's replica are not what was written. They are in quarantine: neither served nor sent on, and"
        " fetched from a peer.",
        "It ends when a peer has sent them. 'promovolvectl serveindex verify' reads the whole file.",
    ),
    _code(
        "E-REPLICA-IN-USE",
        ExitStatus.FAILED,
        "Another process, whose number the message names, has the replica's folder open.",
        "Stop that process; one node has one folder.",
    ),
    _code(
        "E-STORE-BLOCKED",
        ExitStatus.UNHEALTHY,
        "A write to the state store waits longer than a second, mostly for a process that was stopped inside one.",
        "Continue or end that process; on PostgreSQL the wait ends by itself.",
    ),
    _code(
        "E-STORE-UNREACHABLE",
        ExitStatus.UNHEALTHY,
        "PostgreSQL can't be reached. Writes are refused and were not done; pages are served from replicas.",
        "Bring the server back: nodes use it again by themselves.",
    ),
    _code(
        "E-STORE-TIMEOUT",
        ExitStatus.UNHEALTHY,
        "PostgreSQL did not answer within store.deadline_ms.",
        "Look at the server's load, locks and disk.",
    ),
    _code(
        "E-STORE-READ-ONLY",
        ExitStatus.UNHEALTHY,
        "PostgreSQL takes no writes, as a standby does. They were not done.",
        "Promote the server, or point store.dsn_file at the one that takes writes.",
    ),
    _code(
        "E-STORE-FULL",
        ExitStatus.UNHEALTHY,
        "The state store's disk or its map is full. The write was not done.",
        "Make room; writes go on by themselves.",
    ),
    _code(
        "E-STORE-DISK",
        ExitStatus.UNHEALTHY,
        "The disk refused a write of the state store.",
        "Check the disk's room and health; the node's log has the system's words.",
    ),
    _code(
        "E-STORE-DAMAGED",
        ExitStatus.UNHEALTHY,
        "The state store's file is not what was written, or not all of it is there.",
        "Keep the folder as it is and restore a backup.",
    ),
    _code(
        "E-STORE-WENT-BACK",
        ExitStatus.UNHEALTHY,
        "The database knows less than it had acknowledged: a fail-over to a server that was behind, or an old backup.",
        "Stop the nodes, find the server that has the writes, and start again on it.",
    ),
    _code(
        "E-RECORD-DAMAGED",
        ExitStatus.UNHEALTHY,
        "Records of the state store are not what was written. They are never served; the others are not touched.",
        "'promovolvectl store verify' names them all; restore them from a backup.",
    ),
    _code(
        "E-LEDGER",
        ExitStatus.FAILED,
        "A row of the ledger is none: what is stored there was not written by the ledger.",
        "'promovolvectl ledger verify' names every row that is not what its facts make it.",
    ),
    _code(
        "E-LEDGER-BEHIND",
        ExitStatus.UNHEALTHY,
        "The ledger can't read or apply the facts that come next. Nothing of them is lost.",
        "'promovolvectl cluster health' tells why; it goes on by itself when that is mended.",
    ),
    _code(
        "E-MESSAGES-MISSING",
        ExitStatus.UNHEALTHY,
        "Messages left one node and neither arrived at the other nor are known to be lost; or a node took some in and "
        "did nothing with them. That is a defect of ours: tells are gone, and asks ended at their deadlines.",
        "Report it with the types that are named. 'promovolvectl cluster check --messages' looks again; the counts "
        "begin anew when either node restarts.",
    ),
    _code(
        "E-NODE-UNREACHABLE",
        ExitStatus.UNHEALTHY,
        "A node is not heard any more. Its shards move when the cluster has decided that it is gone.",
        "'promovolvectl node start NAME' when its process ended.",
    ),
    _code(
        "E-NODE-LATE",
        ExitStatus.UNHEALTHY,
        "A node says that its own event loop runs late: it, not the network, is why others find it unreachable.",
        "Look for what keeps its processor or disk busy; 'promovolvectl node show NAME' tells its load.",
    ),
    _code(
        "E-CLOCK-AHEAD",
        ExitStatus.UNHEALTHY,
        "A node's wall clock is more than a minute ahead of the others'. What it writes to the index is refused.",
        "Set its clock; 'timedatectl' or the host's time daemon tells more. Nothing has to be restarted.",
    ),
    _code(
        "E-LEADER-BLOCKED",
        ExitStatus.UNHEALTHY,
        "The leader can't let nodes in or out, because those named have not seen the same state or can't be reached.",
        "Wait for the split-brain rule, or look at the nodes that the message names.",
    ),
    _code(
        "E-DECISION-LOG",
        ExitStatus.UNHEALTHY,
        "A split-brain decision was taken, yet could not be written to a node's disk, or not be read from it.",
        "Look at the node's data folder: is it full, or another release's?",
    ),
    _code(
        "E-REPLICA-CONDEMNED",
        ExitStatus.UNHEALTHY,
        "A node's ServeIndex file can't be read to its end; it is set aside at the node's next start.",
        "Stop the node and start it again: it streams its replica anew from the others.",
    ),
    _code(
        "E-ENTRY-DAMAGED",
        ExitStatus.UNHEALTHY,
        "Entries of a replica are not what was written and are kept from sight.",
        "'promovolvectl serveindex repair' fetches them from another replica.",
    ),
    _code(
        "E-INDEX-INCOMPLETE",
        ExitStatus.UNHEALTHY,
        "A node that has just started still learns which keys its replica holds: a list may lack some.",
        "Ask again in some seconds, or ask another node with --node.",
    ),
    _code(
        "E-REMOVAL-PENDING",
        ExitStatus.TIMED_OUT,
        "A removal is on no majority of the replicas yet. It is durable at its owner and retried until it succeeds.",
        "'promovolvectl serveindex pending' names who is awaited; 'serveindex roster remove' gives up on a replica.",
    ),
    _code(
        "E-QUARANTINED",
        ExitStatus.UNHEALTHY,
        "An entity failed too often and was stopped. What is sent to it is refused; others are not affected.",
        "'promovolvectl entity quarantine list' tells why; 'entity quarantine release TYPE ID' lets it run again.",
    ),
    _code(
        "E-NODE-ABSENT",
        ExitStatus.UNHEALTHY,
        "A node of the roster is no member, and nobody wanted it to be away: it has died, was removed, never came, or "
        "did not come back from a restart that told it to go.",
        "'promovolvectl node start NAME'.",
    ),
    _code(
        "E-NODE-ENDED",
        ExitStatus.FAILED,
        "A process that 'up' started ended before the cluster served; the message names its log.",
        "Read the log's last lines, then run 'up' again.",
    ),
    _code(
        "E-SIM",
        ExitStatus.FAILED,
        "The simulator ended without a report; the message holds its last words.",
        "A file of hosts with many nodes, or many hours, may want more memory: try fewer. Else it is our mistake.",
    ),
    _code(
        "E-DATA",
        ExitStatus.UNUSABLE_CONFIG,
        "The data directory holds no cluster, or another one than was expected.",
        "Name the right folder with --data, or another profile with -p.",
    ),
    _code(
        "E-DEMO",
        ExitStatus.FAILED,
        "The demonstration data could not be loaded.",
        "Run 'promovolvectl up --demo' again: it goes on where it stopped.",
    ),
    _code(
        "E-PORT",
        ExitStatus.LOCAL_FILE,
        "A port that a node needs is taken, or no free one was found.",
        "The message names it: stop what listens there, or name another data folder.",
    ),
    _code(
        "E-BUG",
        ExitStatus.BUG,
        "A mistake of ours. What we need to find it was saved in a file that holds none of your data.",
        "Send us the report that the message names.",
    ),
)
CODES: Final = {code.code: code for code in (*_ALL, *NODE_CODES, *STORE_CODES, *KEY_CODES, *DASHBOARD_CODES)}
