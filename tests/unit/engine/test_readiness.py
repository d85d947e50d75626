"""Readiness: what latches stays good, what does not follows at once."""

from __future__ import annotations

from node.engine.readiness import Check, Latches


def test_only_what_latches_stays_good_once_it_was() -> None:
    latches = Latches()

    def look(placement: str, joined: str) -> list[str]:
        checks = latches.look((Check("placement", placement, latches=True), Check("joined", joined)))
        return [check.reason for check in checks if not check.ok]

    assert look("placement not known", "not joined") == ["placement not known", "not joined"]
    assert look("", "") == []
    assert look("placement not known", "") == [], "a lost coordinator takes no node out of service"
    assert look("placement not known", "not joined") == ["not joined"]
