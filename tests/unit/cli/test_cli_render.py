"""Every kind of answer in every format: what scripts parse and what a pipe must never carry."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex

import jsonschema
import msgspec
import pytest
import yaml
from fake_server import META
from samples import SAMPLES, payload, plan, status

from node.admin import protocol as p
from node.admin.protocol import Missing
from promovolvectl.cli.render import FORMATS, Answer, View, answer_of, envelope, render
from promovolvectl.cli.schemas import TYPES, schema_of
from promovolvectl.cli.select import Selection
from promovolvectl.cli.shapes import SHAPES
from promovolvectl.cli.terminal import resolve
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus

PIPE = resolve({"COLUMNS": "40"}, tty=False, columns=80)
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")


def answer(kind: str) -> Answer:
    return Answer(kind, payload(kind), META, raw=kind == "Schema")


def shown(kind: str, form: str, **chosen: object) -> str:
    return render(answer(kind), View(form, chosen=Selection(**chosen)), PIPE)  # type: ignore[arg-type]


def test_every_kind_with_a_shape_has_a_schema_and_the_other_way_round() -> None:
    assert set(TYPES) | {"Schema"} == set(SHAPES)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("kind", sorted(SHAPES))
def test_every_kind_in_every_format_off_a_terminal(kind: str, form: str) -> None:
    text = shown(kind, form)
    assert text.endswith("\n")
    assert not CONTROL.search(text.replace("\t", " "))
    assert not re.search("[│┃─━┌┏…]", text)
    match form:
        case "json":
            document = json.loads(text)
            if kind != "Schema":
                assert list(document)[:3] == ["api_version", "kind", "cluster"]
                assert document == json.loads(json.dumps(envelope(answer(kind))))
        case "yaml":
            assert yaml.safe_load(text) == json.loads(shown(kind, "json"))
        case "jsonl":
            document = json.loads(shown(kind, "json"))
            assert [json.loads(line) for line in text.splitlines()] == document.get("items", [document])
        case "csv":
            head, *rows = csv.reader(io.StringIO(text))
            assert rows
            assert all(len(row) == len(head) for row in rows)
        case "name":
            assert all(re.fullmatch(r"[a-z]+/\S.*", line) for line in text.splitlines())


@pytest.mark.parametrize("kind", sorted(TYPES))
def test_output_fits_its_schema(kind: str) -> None:
    schema = schema_of(kind)
    jsonschema.Draft202012Validator.check_schema(schema)
    document = json.loads(shown(kind, "json"))
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(document)
    for field in document:
        assert not validator.is_valid({key: value for key, value in document.items() if key != field})


@pytest.mark.parametrize("kind", sorted(TYPES))
def test_no_field_of_a_payload_hides_behind_the_envelope(kind: str) -> None:
    around = set(envelope(Answer("Down", {}, META)))
    assert not around & set(payload(kind))


def test_a_pipe_gets_one_whole_row_a_line_whatever_the_width() -> None:
    lines = shown("NodeList", "table").splitlines()
    assert len(lines) == 3
    assert lines[1].split()[:4] == ["node-10", "entity,crawler", "up", "yes"]
    assert "http://127.0.0.1:8080" in lines[1]


def test_a_narrow_terminal_loses_columns_before_letters_and_never_wraps() -> None:
    narrow = resolve({"COLUMNS": "40"}, tty=True, columns=200)
    text = render(answer("NodeList"), View(), narrow)
    plain = [re.sub("\x1b\\[[0-9;]*m", "", line) for line in text.splitlines()]
    assert max(map(len, plain)) <= 40
    assert "node-10" in plain[1]
    assert "RSS BYTES" not in plain[0]
    wide = render(answer("NodeList"), View("wide"), narrow)
    assert "INCARNATION" in wide
    assert "…" not in wide


def test_colour_comes_with_a_word_and_only_where_it_is_decided() -> None:
    colour = resolve({}, tty=True, columns=200)
    text = render(answer("ClusterStatus"), View(), colour)
    assert "\x1b[31m" in text
    assert "○ down" in text
    ascii_only = resolve({"NO_COLOR": "1"}, tty=True, columns=200, encoding="ascii")
    plain = render(answer("ClusterStatus"), View(), ascii_only)
    assert "\x1b" not in plain
    assert "[DN] down" in plain


def test_what_did_not_answer_is_listed_and_makes_it_incomplete() -> None:
    meta = msgspec.structs.replace(META, missing=(Missing(node="node-3", reason="unreachable", since="x"),))
    document = envelope(answer_of("ClusterStatus", status(), meta))
    assert document["complete"] is False
    assert document["missing"] == [{"node": "node-3", "reason": "unreachable", "since": "x"}]


def test_rows_are_filtered_sorted_and_cut_the_same_in_every_format() -> None:
    assert shown("NodeList", "name", sort="name") == "node/node-9\nnode/node-10\n"
    assert shown("NodeList", "name", sort="name:desc", limit=1) == "node/node-10\n"
    found = json.loads(shown("ClusterStatus", "json", filter="status=up,shards>90", sort="name:desc"))
    assert [item["name"] for item in found["nodes"]] == ["node-10", "node-1"]
    assert shown("ClusterStatus", "value", filter="reachable=no", columns="name,http") == "node-2\t\n"
    assert shown("NodeList", "csv", columns="name,pid", filter="name~9") == "name,pid\nnode-9,4123\n"
    assert shown("ShardList", "name", filter="node=-") == "shard/9\n"


@pytest.mark.parametrize("text", ["name=~[", "name!=~x", "status=up,name=~^no.*"])
def test_a_pattern_is_refused_since_nothing_would_match_it(text: str) -> None:
    with pytest.raises(CommandFailed) as refused:
        shown("NodeList", "name", filter=text)
    assert (refused.value.status, "there are no patterns" in refused.value.message) == (ExitStatus.USAGE, True)
    _, _, expression = refused.value.hint.partition("--filter ")
    shown("NodeList", "name", filter=shlex.split(expression)[0])


def test_a_text_of_lines_that_is_all_of_the_output_is_not_made_one_line() -> None:
    key = 'public_key = "a"\nsecret_key = "\x1b"\n'
    made = Answer("OperatorKeyMade", {**payload("OperatorKeyMade"), "key": key}, META, text=key)
    shown_key = key.replace("\x1b", "\\x1b")
    assert render(made, View("value", chosen=Selection(columns="key")), PIPE) == shown_key
    assert render(made, View("value", chosen=Selection(columns="name,key")), PIPE).count("\n") == 1
    assert render(made, View("value"), PIPE) == key


def test_a_query_prints_bare_scalars_or_a_table() -> None:
    assert shown("ClusterStatus", "value", query="nodes[].name") == "node-1\nnode-2\nnode-10\n"
    assert shown("ClusterStatus", "value", query="converged") == "true\n"
    assert json.loads(shown("ClusterStatus", "json", query="shards.total")) == 256
    assert shown("ClusterStatus", "table", query="nodes[].{n: name, s: shards}").splitlines()[1].split() == [
        "node-1",
        "94",
    ]
    assert shown("ClusterStatus", "value", query="nothing") == ""


@pytest.mark.parametrize(
    ("chosen", "part"),
    [
        ({"columns": "nmae"}, "Did you mean 'name'?"),
        ({"columns": "help"}, "incarnation"),
        ({"filter": "status"}, "FIELD=VALUE"),
        ({"filter": "statsu=up"}, "Did you mean 'status'"),
        ({"filter": "shards>many"}, "not a number"),
        ({"sort": "name:down"}, "not an order"),
        ({"query": "nodes["}, "JMESPath"),
    ],
)
def test_flags_that_do_not_fit_are_usage_errors(chosen: dict[str, str], part: str) -> None:
    with pytest.raises(CommandFailed) as caught:
        shown("NodeList", "table", **chosen)
    assert caught.value.status is ExitStatus.USAGE
    assert part in caught.value.message


def test_a_text_without_a_category_and_a_slot_without_an_ad_say_why_once() -> None:
    empty = p.ClassificationShow(categories=(), provider="local", elapsed_ms=1.25)
    told = render(answer_of("Classification", empty, META), View("table"), PIPE)
    assert told.splitlines()[1] == "no category: the text gave too little evidence for one"
    for why in ("nothing was served: no pool", "no pool"):
        nothing = msgspec.structs.replace(SAMPLES["ServeExplanation"], served=False, why=why)
        told = render(answer_of("ServeExplanation", nothing, META), View("table"), PIPE)
        assert told.splitlines()[0].endswith("nothing served: no pool")


def test_a_fallback_s_judgement_is_said_to_be_one() -> None:
    instead = p.ClassificationShow(categories=(), provider="local", elapsed_ms=1.25, fallback=True)
    told = render(answer_of("Classification", instead, META), View("table"), PIPE)
    assert told.splitlines()[0].startswith("PROVIDER local in place of the provider that should have judged")
    auction = p.ExplainedAuction(at="2026-11-29T14:00:00.000Z", trigger="t", categories=("653",), fallback=True)
    explained = msgspec.structs.replace(SAMPLES["ServeExplanation"], auction=auction)
    told = render(answer_of("ServeExplanation", explained, META), View("table"), PIPE)
    assert "categories 653 (a fallback's judgement)" in told


def test_an_auction_of_another_page_names_it() -> None:
    """`AUCTION … categories 547` of a page about cycling read as that page's own judgement."""
    asked = SAMPLES["ServeExplanation"]
    for page, named in (("https://example.com/b", True), (asked.page, False), ("", False)):
        auction = p.ExplainedAuction(at="2026-11-29T14:00:00.000Z", trigger="bids", categories=("547",), page=page)
        explained = msgspec.structs.replace(asked, auction=auction)
        told = render(answer_of("ServeExplanation", explained, META), View("table"), PIPE)
        assert ("by bids of another page, https://example.com/b, categories 547" in told) is named
        assert ("by bids, categories 547" in told) is not named


def test_coverage_says_where_page_views_without_an_ad_are_told() -> None:
    told = render(answer_of("CoverageExplanation", SAMPLES["CoverageExplanation"], META), View("table"), PIPE)
    assert told.splitlines()[1].endswith("promovolvectl site explain example.com")


def test_a_plan_that_is_not_staged_has_no_id_and_no_placement() -> None:
    plan = p.Plan(id="", verb="down", target="/srv/x", base_version=0, moves=(), notes=("n-1 is stopped, process 7",))
    told = render(answer_of("Plan", plan, META), View("table"), PIPE)
    assert told.splitlines()[:2] == ["PLAN down /srv/x", "  n-1 is stopped, process 7"]


def test_a_plan_s_table_sums_up_what_is_the_same_and_other_formats_have_each_move() -> None:
    def moves(source: str, to: str, shards: range) -> list[p.PlanMove]:
        return [p.PlanMove(shard=shard, from_node=source, to=to, entities=2, why="r") for shard in shards]

    both = (*moves("one", "two", range(100)), p.PlanMove(shard=100, from_node="two", to="one", entities=5, why="r"))
    found = plan(verb="restart", moves=both, notes=("warning: nobody answers",), expected_ms=24_400)
    told = answer_of("Plan", found, META)

    def in_format(form: str, **chosen: str) -> list[str]:
        return render(told, View(form, chosen=Selection(**chosen)), PIPE).splitlines()  # type: ignore[arg-type]

    head, rows = in_format("table")[:3], [line.split("  ")[0] for line in in_format("table")[-2:]]
    assert head[1:] == ["  warning: nobody answers", "  101 shards, expected in about 25 s"]
    assert rows == ["100 shards", "100"]
    assert in_format("table")[-2].split()[2:5] == ["one", "two", "200"]
    assert not [line for line in in_format("table") if "→" in line], "what a restart's moves come to is no end"
    assert len(in_format("csv")) == len(in_format("wide", columns="shard")) == 102
    assert len(in_format("table", filter="from=one")) > 100
    few = answer_of("Plan", plan(moves=both[:3]), META)
    assert len(render(few, View(), PIPE).splitlines()) == len(few.payload["moves"]) + 5


def test_a_heading_names_no_unit_that_its_cells_name_and_none_twice() -> None:
    for kind, shape in SHAPES.items():
        for columns in (shape.columns, *(detail.columns for detail in shape.details)):
            headings = [column.heading for column in columns]
            assert len(set(headings)) == len(headings), kind
            own = {column.heading for column in columns if column.form in ("seconds", "ms", "bytes")}
            assert not [heading for heading in own if heading.endswith((" S", " MS", " BYTES"))], kind
