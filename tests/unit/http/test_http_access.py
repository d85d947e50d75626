"""Bearer tokens: each refusal under its own code (C9), and the file that they stand in."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from node.core import limits
from node.core.clock import MS, ManualClock
from node.core.errors import BadInput, OperatingError
from node.engine.faults import Faults
from node.http.access import Access, Token, check_scope, parse_access
from node.http.access_file import FAULT, AccessFile
from node.http.problem import ProblemError

GIVEN = "t" * 43
HASH = hashlib.sha256(GIVEN.encode()).hexdigest()
FILE = f'[[token]]\nname = "panel"\nsha256 = "{HASH}"\nscopes = ["sites:read"]\n'
END = "expires_at = 2030-01-01T00:00:00Z\n"
END_MS = 1_893_456_000_000


def code(access: Access, header: str, now_ms: int = 0) -> str:
    with pytest.raises(ProblemError) as caught:
        access.bearer(header, now_ms)
    assert (caught.value.status, caught.value.about) == (401, "Authorization")
    response = caught.value.response()
    assert ("www-authenticate", "Bearer") in response.headers
    assert GIVEN.encode() not in response.body
    return caught.value.code


def test_c9_a_bearer_token_that_is_missing_malformed_wrong_or_expired_is_refused_each_with_its_code() -> None:
    access = parse_access(FILE + END)
    assert access.bearer(f"Bearer {GIVEN}", END_MS - 1).name == "panel"
    assert access.bearer(f"bearer {GIVEN}", 0).name == "panel"
    assert code(access, "") == "token_missing"
    for header in (GIVEN, f"Basic {GIVEN}", "Bearer ", "Bearer a b", "Bearer " + "x" * 600, "Bearer ä"):
        assert code(access, header) == "token_malformed", header
    for header in (f"Bearer {GIVEN}x", f"Bearer {HASH}", "Bearer x"):
        assert code(access, header) == "token_unknown"
    assert code(access, f"Bearer {GIVEN}", END_MS) == "token_expired"
    assert code(Access(), f"Bearer {GIVEN}") == "token_unknown"


def test_c9_a_scope_that_the_token_does_not_have_is_refused() -> None:
    token = parse_access(FILE).tokens[0]
    check_scope(token, "sites:read")
    with pytest.raises(ProblemError) as caught:
        check_scope(token, "sites:write")
    assert (caught.value.status, caught.value.code) == (403, "scope_missing")


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("[[token", "access"),
        ("[[operator]]\nname = 'x'", "access"),
        (FILE + "colour = 'red'\n", "access"),
        (FILE + "requests_per_s = 0.0\n", "token.requests_per_s"),
        (FILE + "publisher = 'a'\nadvertiser = 'b'\n", "token.publisher"),
        (FILE + "expires_at = 2030-01-01T00:00:00\n", "token.expires_at"),
        (FILE.replace("panel", "Panel one"), "token.name"),
        (FILE.replace(HASH, GIVEN), "token.sha256"),
        (FILE.replace("sites:read", "sites:all"), "token.scopes"),
        (FILE.replace('["sites:read"]', "[]"), "token.scopes"),
        (FILE + FILE, "token.name"),
        (FILE + FILE.replace("panel", "other"), "token.sha256"),
    ],
)
def test_a_file_with_a_mistake_is_refused_whole(text: str, field: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_access(text)
    assert caught.value.field == field
    assert HASH not in caught.value.message


def test_a_token_shows_as_no_operator_can_be_named() -> None:
    assert Token("panel", HASH, ("sites:read",)).who == "token/panel"


class Kept:
    def __init__(self, folder: Path) -> None:
        self.path = folder / "access.toml"
        self.clock = ManualClock()
        self.faults = Faults(self.clock)

    def write(self, text: str, mode: int = 0o600) -> None:
        new = self.path.with_suffix(".new")
        new.write_text(text)
        new.chmod(mode)
        new.replace(self.path)

    def names(self, file: AccessFile, after_ms: int = limits.http_access_look_ms) -> list[str]:
        self.clock.advance_ns(after_ms * MS)
        return [token.name for token in file.now().tokens]


def test_a_changed_file_counts_within_a_second_and_an_unfit_one_is_a_fault(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.write(FILE)
    file = AccessFile(kept.path, kept.clock, kept.faults)
    assert kept.names(file) == ["panel"]
    kept.write(FILE.replace("panel", "other"))
    assert kept.names(file, 1) == ["panel"]
    assert kept.names(file) == ["other"]
    for text, mode in (("[[", 0o600), (FILE, 0o644)):
        kept.write(text, mode)
        assert kept.names(file) == ["other"]
        assert [fault.code for fault in kept.faults.all()] == [FAULT]
    kept.path.unlink()
    assert kept.names(file) == ["other"]
    kept.write("")
    assert kept.names(file) == []
    assert kept.faults.all() == ()


@pytest.mark.parametrize(("text", "mode"), [("[[", 0o600), (FILE, 0o640), (None, 0)])
def test_a_node_does_not_start_with_a_file_that_it_cannot_use(tmp_path: Path, text: str | None, mode: int) -> None:
    kept = Kept(tmp_path)
    if text is not None:
        kept.write(text, mode)
    with pytest.raises(OperatingError) as caught:
        AccessFile(kept.path, kept.clock, kept.faults)
    assert str(kept.path) in caught.value.message


def test_without_a_file_nobody_has_a_token() -> None:
    clock = ManualClock()
    assert AccessFile(None, clock, Faults(clock)).now().tokens == ()
