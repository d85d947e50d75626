"""Which stripe was heard when: silence takes half a minute, and a short list takes nobody off the watch."""

from node.singleton.demand_liveness import ANSWER_MS, PROBE_MS, SILENT_MS, StripeWatch


def test_who_does_not_answer_is_silent_until_it_does() -> None:
    watch = StripeWatch()
    watch.expect({"a|0", "a|1"}, 1_000, all_known=True)
    watch.heard("a|0", 20_000)
    watch.heard("never expected", 20_000)
    assert watch.silent(1_000 + SILENT_MS - 1) == {}
    assert watch.silent(1_000 + SILENT_MS) == {"a|1": SILENT_MS}
    watch.heard("a|1", 40_000)
    assert watch.silent(40_000) == {}
    assert watch.ages_ms(41_000) == {"a|0": 21_000, "a|1": 1_000}


def test_only_a_whole_list_takes_somebody_off_the_watch() -> None:
    watch = StripeWatch()
    watch.expect({"a|0", "b|0"}, 0, all_known=True)
    watch.expect({"a|0"}, 10, all_known=False)
    assert set(watch.silent(SILENT_MS)) == {"a|0", "b|0"}, "a directory that has just started knows few"
    watch.expect({"a|0"}, 20, all_known=True)
    assert set(watch.silent(SILENT_MS)) == {"a|0"}


def test_an_alarm_is_neither_late_nor_rash() -> None:
    """Within a minute of the last answer, and not before two questions went without one."""
    assert PROBE_MS + ANSWER_MS < SILENT_MS <= 60_000
