"""The scrub goes round slowly, names what it finds, and forgets what was mended."""

from __future__ import annotations

from node.core import limits
from node.core.clock import MS
from node.store.port import StoreFailed
from node.store.scrub import Scrub, Verified, VerifyRecords

PAUSE_NS = limits.scrub_pause_ms * MS


def test_it_goes_on_where_it_was_and_keeps_what_the_last_round_found() -> None:
    scrub = Scrub()
    assert scrub.tick(0) == VerifyRecords(b"")
    assert scrub.tick(5 * PAUSE_NS) is None, "the answer is awaited"
    scrub.answered(Verified(100, ("Ssite:x",), b"Ssite\0x"))
    assert scrub.tick(PAUSE_NS - 1) is None
    assert scrub.tick(PAUSE_NS) == VerifyRecords(b"Ssite\0x")
    scrub.answered(StoreFailed("E-STORE-DISK", "", definite=True))
    assert scrub.tick(2 * PAUSE_NS) == VerifyRecords(b"Ssite\0x"), "asked again"
    scrub.answered(Verified(7, (), b""))
    assert (scrub.damaged, scrub.checked, scrub.rounds) == (("Ssite:x",), 107, 1)
    for round_ in (3, 4):
        assert scrub.tick(round_ * PAUSE_NS) == VerifyRecords(b"")
        scrub.answered(Verified(107, (), b""))
    assert scrub.damaged == ()
