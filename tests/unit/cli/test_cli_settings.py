"""Profiles and settings: what holds, where it comes from, and what a broken file is told."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from conftest import Invoke

from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.profiles import Endpoint, Profile, load_file, write_profile

KEY = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"


def document(invoke: Invoke, *words: str, status: int = 0) -> dict[str, object]:
    code, out, err = invoke(*words, "-o", "json")
    assert code == status, err
    found: dict[str, object] = json.loads(out)
    return found


def origins(invoke: Invoke, *words: str) -> dict[str, tuple[str, str]]:
    code, out, err = invoke("config", "view", "--origin", *words, "-o", "jsonl")
    assert code == 0, err
    rows = [json.loads(line) for line in out.splitlines()]
    return {row["setting"]: (row["value"], row["origin"]) for row in rows}


def test_each_origin_wins_over_the_next(invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "config.toml"
    assert origins(invoke)["timeout"] == ("10s", "default")
    write_profile(config, Profile(name="a", timeout="20s", endpoints=(Endpoint(admin="h:1"),)), make_current=True)
    write_profile(config, Profile(name="b", timeout="25s"), make_current=False)
    found = origins(invoke)
    assert found["timeout"] == ("20s", "profile a")
    assert found["profile"] == ("a", f"current in {config}")
    assert found["endpoint"] == ("h:1", "profile a")
    assert origins(invoke, "-p", "b")["timeout"] == ("25s", "profile b")
    monkeypatch.setenv("PROMOVOLVECTL_TIMEOUT", "30s")
    assert origins(invoke)["timeout"] == ("30s", "environment PROMOVOLVECTL_TIMEOUT")
    assert origins(invoke, "-t", "40s")["timeout"] == ("40s", "flag --timeout")
    assert origins(invoke)["output"] == ("jsonl", "flag --output")
    assert invoke("config", "view")[1].splitlines()[0].split() == ["SETTING", "VALUE"]
    assert invoke("config", "view", "-p", "c")[0] == 3


def test_every_command_finds_the_cluster_s_folder_where_settings_say(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`config path` named the default folder, whatever PROMOVOLVECTL_DATA and the profile said; `node start` looked
    there, too, with the variable set."""
    config, kept, named = tmp_path / "config.toml", tmp_path / "kept", tmp_path / "named"
    named.mkdir()

    def path() -> tuple[str, bool]:
        items: Any = document(invoke, "config", "path")["items"]
        [found] = [item for item in items if item["what"] == "data"]
        return found["path"], found["exists"]

    def looked(*words: str) -> str:
        code, _, err = invoke("node", "start", "n-1", *words)
        assert code == 16
        return err

    write_profile(config, Profile(name="a", data=str(kept)), make_current=True)
    assert path() == (str(kept), False)
    assert origins(invoke)["data"] == (str(kept), "profile a")
    assert str(kept) in looked()
    monkeypatch.setenv("PROMOVOLVECTL_DATA", str(named))
    assert path() == (str(named), True)
    assert origins(invoke)["data"] == (str(named), "environment PROMOVOLVECTL_DATA")
    assert str(named) in looked()
    assert str(tmp_path / "given") in looked("--data", str(tmp_path / "given"))
    assert invoke("node", "start", "n-1", "-p", "b")[0] == 3
    config.write_text("nonsense =")
    assert path() == (str(named), True), "where files lie is told when they can't be read, too"


def test_set_writes_one_profile_and_says_whether_that_changed_it(invoke: Invoke, tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    write_profile(config, Profile(name="a"), make_current=True)
    write_profile(config, Profile(name="b"), make_current=False)
    assert document(invoke, "config", "set", "timeout", "30s")["changed"] is True
    assert document(invoke, "config", "set", "timeout", "30s")["changed"] is False
    assert document(invoke, "config", "get", "timeout")["value"] == "30s"
    assert load_file(config).profiles["b"].timeout == ""
    assert document(invoke, "config", "diff", "b", status=13)["differences"] == [
        {"setting": "timeout", "left": "", "right": "30s"}
    ]
    assert document(invoke, "config", "set", "timeout", "", "-p", "a")["changed"] is True
    assert document(invoke, "config", "diff", "b")["differences"] == []
    for words in (("timout", "3s"), ("timeout", "3"), ("output", "jsno"), ("key_file", str(tmp_path / "none"))):
        code, _, err = invoke("config", "set", *words)
        assert (code, "(E-USAGE)" in err) == (2, True)
    assert invoke("config", "get", "timout")[0] == 3
    assert stat.S_IMODE(config.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("current = 'a'\nprofiles = [", 2, ""),
        ("\ncurent = 'a'", 2, "Did you mean 'current'?"),
        ("[profiles.b]\n[profiles.a]\noutptu = 'json'", 3, "Did you mean 'output'?"),
        ("[profiles.a]\noutput = 'jsno'", 2, "'jsno' is not a format"),
        ("[profiles.a]\n\ntimeout = '3'", 3, "length of time"),
        ("[profiles.a]\ntimeout = 3", 2, "Expected `str`, got `int`"),
        ("current = 'b'\n[profiles.a]", 1, "there is no profile 'b'"),
        ("[[profiles.a.endpoints]]\nadmin = 'h:1'\nkye = ''", 3, "Did you mean 'key'?"),
        ("[profiles.a]\nkey_file = '/none/of/this'", 2, "can't be read"),
    ],
)
def test_validate_names_the_line_of_a_fault(text: str, line: int, part: str, invoke: Invoke, tmp_path: Path) -> None:
    file = tmp_path / "other.toml"
    file.write_text(text)
    found = document(invoke, "config", "validate", str(file), status=16)
    assert found["ok"] is False
    faults = found["faults"]
    assert isinstance(faults, list)
    assert faults[0]["line"] == line
    assert part in faults[0]["text"]


def test_a_key_file_that_others_can_read_is_a_fault(invoke: Invoke, tmp_path: Path) -> None:
    key = tmp_path / "operator.key"
    key.write_text("")
    key.chmod(0o644)
    config = tmp_path / "config.toml"
    write_profile(config, Profile(name="a", key_file=str(key)), make_current=True)
    assert f"chmod 600 {key}" in invoke("config", "validate")[1]
    key.chmod(0o600)
    assert invoke("config", "validate")[0] == 0


def test_who_was_handed_a_key_is_not_told_to_start_a_cluster(invoke: Invoke, tmp_path: Path) -> None:
    assert invoke("profile", "create", "mine")[0] == 0
    assert invoke("profile", "create", "theirs", "--key-file", str(tmp_path / "ro.key"))[0] == 0
    hints = [invoke("cluster", "status", "-p", name)[2].splitlines()[-1] for name in ("mine", "theirs")]
    assert hints == [
        "hint: promovolvectl up -p mine",
        "hint: promovolvectl profile create NAME --key-file FILE --node NAME,HOST:PORT,KEY",
    ]


def test_up_takes_local_whichever_profile_is_current_and_says_so(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []

    def start(folder: Path, *, profile: str, **_: Any) -> None:
        started.append(profile)
        raise CommandFailed(ExitStatus.FAILED, "E-NODE-ENDED", "it ended")

    monkeypatch.setattr("promovolvectl.local.cluster.up", start)
    assert invoke("up")[2].startswith("error: "), "there is no other"
    write_profile(tmp_path / "config.toml", Profile(name="mine"), make_current=True)
    said = "this is the cluster of the profile 'local'; that of 'mine': promovolvectl up -p mine\n"
    assert invoke("up")[2].startswith(said)
    assert invoke("up", "-p", "mine")[2].startswith("error: ")
    monkeypatch.setenv("PROMOVOLVECTL_PROFILE", "third")
    assert invoke("up")[2].startswith("error: ")
    assert started == ["local", "local", "mine", "third"]


def test_a_file_that_is_not_there_is_usable_and_one_that_was_named_is_not(invoke: Invoke, tmp_path: Path) -> None:
    assert invoke("config", "validate")[0] == 0
    assert invoke("config", "validate", str(tmp_path / "none"))[0] == 17


def test_profiles_are_made_used_renamed_and_deleted(invoke: Invoke, tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    node = ("--node", f"n-1,10.0.0.1:7401,{KEY}")
    assert document(invoke, "profile", "create", "a", *node)["changed"] is True
    assert document(invoke, "profile", "create", "a", *node)["changed"] is False
    assert invoke("profile", "create", "a")[0] == 4
    for lacking in ("n-1,10.0.0.1:7401", "n-1,nowhere,KEY", "n-1,10.0.0.1:7401,short"):
        code, _, err = invoke("profile", "create", "b", "--node", lacking)
        assert (code, "hint: promovolvectl node list -o value --columns name,admin,public_key\n" in err) == (2, True)
    code, _, err = invoke("profile", "create", "b", "--endpoint", "10.0.0.1:7401")
    assert (code, "hint: promovolvectl node list -o value --columns name,admin,public_key\n" in err) == (2, True), (
        "an address alone is not trusted"
    )
    assert invoke("profile", "create", "b")[0] == 0
    assert document(invoke, "profile", "current")["name"] == "a"
    assert document(invoke, "profile", "use", "b")["changed"] is True
    assert document(invoke, "profile", "use", "b")["changed"] is False
    assert document(invoke, "profile", "rename", "b", "c")["name"] == "c"
    assert load_file(config).current == "c"
    assert invoke("profile", "rename", "c", "a")[0] == 4
    assert document(invoke, "profile", "set", "c", "timeout=30s", "output=csv")["timeout"] == "30s"
    assert invoke("profile", "set", "c", "timeout")[0] == 2
    code, _, err = invoke("profile", "delete", "c")
    assert (code, err.splitlines()[-1]) == (6, "hint: promovolvectl profile delete c --yes")
    assert invoke("profile", "delete", "c", "--yes")[0] == 0
    assert invoke("profile", "list", "-o", "name")[1] == "profile/a\n"
    assert invoke("profile", "show", "c")[0] == 3
    assert load_file(config).profiles["a"].endpoints == (Endpoint(node="n-1", admin="10.0.0.1:7401", key=KEY),)


def test_a_prompt_is_letters_or_nothing_and_never_an_error(invoke: Invoke, tmp_path: Path) -> None:
    assert invoke("profile", "prompt") == (0, "", "")
    write_profile(tmp_path / "config.toml", Profile(name="a", cluster="ads"), make_current=True)
    assert invoke("profile", "prompt", "--format", "[{name}@{cluster}]")[1] == "[a@ads]\n"
    (tmp_path / "config.toml").write_text("not toml")
    assert invoke("profile", "prompt") == (0, "", "")


def test_paths_say_where_files_lie(invoke: Invoke, tmp_path: Path) -> None:
    code, out, _ = invoke("config", "path", "-o", "value", "--columns", "path")
    assert code == 0
    assert out.splitlines()[0] == os.environ["PROMOVOLVECTL_CONFIG"]
