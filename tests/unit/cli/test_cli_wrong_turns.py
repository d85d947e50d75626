"""What a newcomer types instead of a command: every noun with every usual verb, a verb before its noun, a noun alone.

Each is answered by the line that does it, and a word that looks is never answered by one that changes something.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from conftest import Invoke
from fake_server import FakeNode
from msgspec.structs import replace
from samples import SAMPLES

from node.admin import protocol as p
from node.admin.protocol.diagnosis import EntityPlace, GetEntityPlace
from node.admin.protocol.drills import PROVES
from node.admin.protocol.operators import GetPermission
from promovolvectl.cli import naming
from promovolvectl.cli.nouns import NOUNS
from promovolvectl.cli.senses import ELSEWHERE, SENSES, sense_of
from promovolvectl.cli.topics import TOPICS
from promovolvectl.cli.tree import root
from promovolvectl.cli.walk import leaves

LEAVES = {leaf.name: leaf for leaf in leaves()}
GROUPS = sorted({" ".join(leaf.words[:-1]) for leaf in LEAVES.values() if len(leaf.words) > 1})
USUAL = (
    *("status", "show", "list", "get", "describe", "ls", "rm", "create", "delete", "stop", "cancel", "info", "start"),
    *("edit", "view", "ps", "remove", "add"),
)
READING = ("Reads only", *(LEAVES[name].about.changes for name in ("doctor", "store status", "config view")))
# Nothing of the kind is there: what there is, is listed.
NOTHING = {
    "advertiser": "",
    "audit": "rm create delete stop cancel edit remove add start",
    "auth": "stop cancel start edit",
    "auth key": "start edit stop cancel",
    "bench": "rm delete stop cancel remove edit create add",
    "campaign": "",
    "cluster": "edit",
    "cluster drill": "rm delete stop cancel remove edit create add",
    "config": "stop cancel start",
    "coverage": "rm create delete stop cancel edit remove add",
    "creative": "edit",
    "deadletter": "create add start edit",
    "debug": "rm delete stop cancel start edit remove",
    "entity": "rm create delete edit remove add",
    "entity quarantine": "create edit add start stop cancel",
    "facts": "rm create delete stop cancel edit remove add start",
    "ledger": "rm create delete stop cancel edit remove add start",
    "node": "edit",
    "op": "edit",
    "page": "rm delete stop cancel edit remove start",
    "placement": "rm create delete stop cancel edit remove add start",
    "plan": "edit",
    "profile": "stop cancel start",
    "replay": "edit",
    "serve": "rm create delete stop cancel edit remove add start",
    "serveindex": "stop cancel edit",
    "serveindex roster": "create add start edit stop cancel",
    "shard": "rm create delete stop cancel start edit remove add",
    "sim": "status show list get describe ls info view ps rm create delete stop cancel edit remove add",
    "site": "",
    "store": "rm delete stop cancel start edit remove",
}


def of_hint(err: str) -> list[str]:
    [hint] = [line.removeprefix("hint: promovolvectl ") for line in err.splitlines() if line.startswith("hint: ")]
    return shlex.split(hint)


@pytest.mark.parametrize("noun", GROUPS)
def test_every_usual_verb_is_answered_by_the_command_that_does_it(noun: str, invoke: Invoke) -> None:
    verbs = {name.removeprefix(f"{noun} ").split()[0] for name in LEAVES if name.startswith(f"{noun} ")}
    unanswered = set()
    for word in sorted({*USUAL} - verbs):
        code, out, err = invoke(*noun.split(), word)
        assert (code, out) == (2, ""), (noun, word)
        meant = of_hint(err)
        if meant == [*noun.split(), "--help"]:
            unanswered.add(word)
            assert all(verb in err for verb in verbs), err
            continue
        if meant[0] == "help":
            assert meant[1:] == ["bench"] or meant[1] in TOPICS
            continue
        command = naming.named(meant)
        assert " ".join(command) in LEAVES, err
        sense = sense_of(word)
        assert sense is not None
        if sense.looks:
            assert LEAVES[" ".join(command)].about.changes.startswith(READING), err
    assert unanswered == set(NOTHING[noun].split()) - verbs


def test_no_word_is_of_two_senses_that_differ_in_harm() -> None:
    looking = [word for sense in SENSES if sense.looks for word in sense.words]
    changing = {word for sense in SENSES if not sense.looks for word in sense.words}
    assert not changing & set(looking)
    assert len(looking) == len(set(looking))


def test_what_is_done_elsewhere_is_done_there() -> None:
    """Each stands for a verb that its noun has not, and names a command or a text that there is."""
    for (noun, word), line in ELSEWHERE.items():
        assert f"{noun} {word}" not in LEAVES
        assert noun in GROUPS
        words = line.split()
        assert naming.named(words) or words == ["help", "bench"], line
        if words[0] == "help":
            assert words[1] in TOPICS or words[1] in NOUNS


def test_what_nouns_are_called_is_there() -> None:
    command = root()
    for called, name in naming.CALLED.items():
        assert called not in NOUNS
        found = command
        for word in name.split():
            found = found.get_command(None, word)
            assert found is not None, name


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("status", "cluster status"),
        ("nodes", "node --help"),
        ("operations list", "op list"),
        ("get nodes", "node show entity-1"),
        ("describe node entity-2", "node show entity-2"),
        ("list sites", "site list"),
        ("drain node entity-2", "node drain entity-2"),
        ("drain node/entity-2 --dry-run", "node drain entity-2 --dry-run"),
        ("rm site a.example", "site delete a.example"),
        ("explain placement 113", "placement explain 113"),
        ("events list", "events"),
        ("doctor status -q", "doctor -q"),
        ("replay status r-1", "replay show r-1"),
        ("replay status", "replay list"),
        ("replay statsu", "replay list"),
        ("op stop op-1", "op cancel op-1"),
        ("coverage status", "replay coverage"),
        ("cluster start", "up"),
        ("store show", "store status"),
        ("auth key rm guest", "auth key revoke guest"),
        ("nod list", "node list"),
        ("qqq", "--help"),
        ("coverage explain a.example --slot top", "coverage explain --help"),
        ("coverage explain --slot top", "coverage explain top"),
        ("shard move a.example --to entity-2", "shard where a.example"),
        ("shard show site/a.example", "shard where site/a.example"),
        ("shard pin 17 a.example --to entity-2", "shard where a.example"),
        ("shard show 1.5", "shard list"),
        ("serve explain |", "serve explain example.com|top"),
    ],
)
def test_a_wrong_turn_is_answered_by_the_line_that_was_meant(typed: str, meant: str, invoke: Invoke) -> None:
    code, out, err = invoke(*typed.split())
    assert (code, out) == (2, "")
    assert " ".join(of_hint(err)) == meant, err


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("shard repair --kind stale", "shard repair --kind stale-epoch"),
        ("node drain entity-1 --force majorty -y", "node drain entity-1 --force majority -y"),
        ("--color nevr cluster status", "--color never cluster status"),
        ("op list --state=fail", "op list --state failed"),
        ("node logs --level warn", "node logs --level warning"),
        ("shard repair --kind orphan --kind qqq", "shard repair --kind orphan --kind orphan"),
    ],
)
def test_of_few_words_the_nearest_is_hinted_at(typed: str, hint: str, invoke: Invoke) -> None:
    code, _, err = invoke(*typed.split())
    assert (code, err.splitlines()[-1]) == (2, f"hint: promovolvectl {hint}"), err


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (("node", "drain"), "node drain"),
        (("node", "drain", "entity-1"), "node drain"),
        (("drain", "node"), "node drain"),
        (("drain", "node/entity-1"), "node drain"),
        (("promovolvectl", "node", "drain"), "node drain"),
        (("auth", "key", "create", "guest"), "auth key create"),
        (("create", "auth key"), "auth key create"),
        (("auth key create",), "auth key create"),
        (("replay", "deadletter"), "deadletter replay"),
        (("replay", "start"), "replay start"),
        (("explain", "placement"), "placement explain"),
    ],
)
def test_a_commands_name_is_taken_as_it_is_typed(
    words: tuple[str, ...], asked: str, tmp_path: Path, invoke: Invoke
) -> None:
    with FakeNode({GetPermission: lambda _: SAMPLES["Permission"]}) as node:
        node.write(tmp_path)
        assert invoke("auth", "can-i", *words)[0] in (0, 7)
    assert node.seen == [GetPermission(words=asked)]
    code, out, _ = invoke("help", *words)
    assert code == 0
    assert f"promovolvectl {asked} [OPTIONS]" in out


@pytest.mark.parametrize(
    ("words", "meant"),
    [("node drian", "node drain"), ("nodes drain", "node drain"), ("replay status", "replay list"), ("qqq", "")],
)
def test_who_asks_for_a_command_that_is_none_is_told_which_there_is(words: str, meant: str, invoke: Invoke) -> None:
    code, _, err = invoke("auth", "can-i", *words.split())
    assert code == 3
    assert " ".join(of_hint(err)) == (f"auth can-i {meant}" if meant else "--help")


def placed(known: frozenset[str]) -> FakeNode:
    def place(asked: GetEntityPlace) -> EntityPlace:
        return EntityPlace(
            kind=asked.kind, id=asked.id, shard=1, node="n1", epoch=1, state="running", known=asked.kind in known
        )

    return FakeNode({GetEntityPlace: place})


@pytest.mark.parametrize(
    ("kinds", "code", "hint"),
    [
        ("site", 0, ""),
        ("campaign", 0, ""),
        ("publisher", 0, ""),
        ("site publisher", 2, "entity where site/name"),
        ("", 3, "entity where site/name"),
    ],
)
def test_an_id_alone_is_that_of_the_one_thing_that_has_it(
    kinds: str, code: int, hint: str, tmp_path: Path, invoke: Invoke
) -> None:
    with placed(frozenset(kinds.split())) as node:
        node.write(tmp_path)
        found, out, err = invoke("entity", "where", "name", "-o", "json")
        typed = invoke("entity", "where", "name") if hint else (0, "", "")
    assert found == code, err
    assert {type(each) for each in node.seen} == {GetEntityPlace}, "nothing is started to find out"
    if hint:
        assert " ".join(of_hint(typed[2])) == hint
    else:
        assert f'"kind": "{kinds}"' in out or f'"type": "{kinds}"' in out


@pytest.mark.parametrize("typed", ["site:name", "site/name"])
def test_type_and_id_at_once_are_joined_either_way(typed: str, tmp_path: Path, invoke: Invoke) -> None:
    with placed(frozenset(("site",))) as node:
        node.write(tmp_path)
        assert invoke("entity", "where", typed)[0] == 0
        asked = [each for each in node.seen if isinstance(each, GetEntityPlace)]
    assert [(each.kind, each.id) for each in asked] == [("site", "name")]


def test_a_drill_that_is_none_is_refused_before_its_site_is_missed(invoke: Invoke) -> None:
    code, _, err = invoke("cluster", "drill", "run", "stale-owner")
    assert code == 2
    assert all(name in err for name in PROVES)
    assert of_hint(err) == ["cluster", "drill", "list"]
    assert all(name in invoke("cluster", "drill", "run", "--help")[1] for name in PROVES)
    code, _, err = invoke("cluster", "drill", "run", "fence")
    assert (code, of_hint(err)) == (2, shlex.split("cluster drill run fence --site example.com"))


def site(*slots: str) -> p.SiteShow:
    sample = SAMPLES["SiteShow"]
    return p.SiteShow(
        site=sample.site,
        host=sample.host,
        publisher=sample.publisher,
        verified_host=None,
        slots=tuple(p.Slot(slot=name, width=1, height=1) for name in slots),
        pages_fresh=0,
        suspended=False,
    )


def pages(*urls: tuple[str, bool]) -> p.PageList:
    row = SAMPLES["PageList"].items[0]
    return p.PageList(items=tuple(replace(row, url=url, fresh=fresh) for url, fresh in urls))


@pytest.mark.parametrize(
    ("words", "slots", "known", "asked"),
    [
        ("a", ("top",), (("https://a/1", True), ("https://a/2", False)), ("top", "https://a/1")),
        ("a|top", ("top", "side"), (("https://a/1", False), ("https://a/2", False)), ("top", "https://a/2")),
        ("a|side --page https://a/9", (), (), ("side", "https://a/9")),
    ],
)
def test_a_probe_knows_a_page_and_the_only_slot(
    words: str,
    slots: tuple[str, ...],
    known: tuple[tuple[str, bool], ...],
    asked: tuple[str, str],
    tmp_path: Path,
    invoke: Invoke,
) -> None:
    answers = {
        p.GetSite: lambda _: site(*slots),
        p.GetPages: lambda _: pages(*known),
        p.GetProbe: lambda _: SAMPLES["ServeExplanation"],
    }
    with FakeNode(answers) as node:
        node.write(tmp_path)
        code, _, err = invoke("serve", "probe", *words.split())
    assert code == 0, err
    assert node.seen[-1] == p.GetProbe(site="a", slot=asked[0], page=asked[1])


@pytest.mark.parametrize(
    ("slots", "words", "code", "hint"),
    [
        (("top", "side"), "a", 2, "serve probe a|top"),
        ((), "a", 2, "serve probe a|SLOT"),
        (("top",), "a", 3, "serve probe a|top --page https://a/"),
    ],
)
def test_a_probe_that_can_not_be_completed_says_how(
    slots: tuple[str, ...], words: str, code: int, hint: str, tmp_path: Path, invoke: Invoke
) -> None:
    with FakeNode({p.GetSite: lambda _: site(*slots), p.GetPages: lambda _: pages()}) as node:
        node.write(tmp_path)
        found, _, err = invoke("serve", "probe", *words.split())
    assert (found, " ".join(of_hint(err))) == (code, hint)
