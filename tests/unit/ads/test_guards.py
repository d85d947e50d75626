"""Guards: the rows H10 to H20, V1 to V3 and V8 to V13 of the vectors, and the laws behind them."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from node.ads import fold_token as f
from node.ads.guards import limiter as lim
from node.ads.guards import replay
from node.ads.guards.bloom import Bloom, size_for
from node.ads.guards.cuckoo import Cuckoo
from node.ads.guards.engagement import TTL_MS, EngagementGuard, Judgement
from node.ads.guards.rate_gate import RateGate
from node.core.errors import BadInput
from node.core.limits import rate_gate_keys_max
from node.wire.codec import CODEC

SECRET = b"test-secret-bytes-min-32-bytes-long"
MINUTE_MS = 60_000


@pytest.mark.parametrize(
    ("text", "expected", "partition"),
    [
        ("", "cbf29ce484222325", 1),
        ("a", "af63dc4c8601ec8c", 0),
        ("key-1", "71135af295f27ea6", 20),
        ("pub=abc&url=http://example.com&slot=1&cid=xyz&v=1&b=100&evt=imp", "7ba768dff9145b90", 15),  # H11
        ("pub=abc&url=http://example.com&slot=1&cid=xyz&v=1&b=101&evt=imp", "d5897ed468948d6b", 63),
    ],
)
def test_h10_h11_fnv(text: str, expected: str, partition: int) -> None:
    assert f"{replay.fnv1a64(text):016x}" == expected
    assert replay.partition_of(text) == partition


@pytest.mark.parametrize(
    ("expected", "share", "bits", "probes", "octets"),
    [
        (1_000, 0.01, 9_600, 7, 1_200),
        (1_000, 0.001, 14_400, 10, 1_800),
        (1_000, 0.0001, 19_200, 13, 2_400),
        (5_000, 0.0001, 95_872, 13, 11_984),
        (10_000, 0.0001, 191_744, 13, 23_968),
        (50_000, 0.0001, 958_528, 13, 119_816),  # H13
    ],
)
def test_h12_h13_bloom_sizes(expected: int, share: float, bits: int, probes: int, octets: int) -> None:
    size = size_for(expected, share)
    assert (size.bits, size.probes, size.octets) == (bits, probes, octets)


def test_v13_a_bloom_filter_errs_seldom_and_to_one_side_only() -> None:
    bloom = Bloom(size_for(1_000, 1e-4))
    for n in range(1_000):
        bloom.add(f"known-{n}")
    assert all(f"known-{n}" in bloom for n in range(1_000))
    assert sum(f"unknown-{n}" in bloom for n in range(10_000)) <= 3
    assert bloom.estimated_count() == pytest.approx(1_000, rel=0.3)
    again = Bloom(bloom.size, bloom.octets)
    assert (again.octets, "known-7" in again) == (bloom.octets, True)
    assert 10_000 <= size_for(5_000, 1e-4).octets <= 15_000
    bloom.clear()
    assert "known-7" not in bloom
    assert Bloom(size_for(10, 0.5), b"\xff" * 100).estimated_count() == math.inf


def test_v12_a_cuckoo_filter_forgets() -> None:
    cuckoo = Cuckoo(100)
    assert all(cuckoo.add(name) for name in ("a", "b", "c"))
    assert cuckoo.discard("b")
    assert not cuckoo.discard("never")
    assert (cuckoo.count, "a" in cuckoo, "b" in cuckoo, "c" in cuckoo) == (2, True, False, True)
    again = Cuckoo.from_bytes(cuckoo.to_bytes())
    assert (again.count, "a" in again, "b" in again) == (2, True, False)
    full = Cuckoo(500)
    assert all(full.add(f"site-{n}") for n in range(500))
    assert sum(f"other-{n}" in full for n in range(1_000)) < 5
    assert len(full.to_bytes()) == 256 * 4 * 2, "a fingerprint of 16 bits in each of 4 slots of 256 buckets"
    with pytest.raises(BadInput):
        Cuckoo.from_bytes(b"x" * 24)


def test_a_full_cuckoo_filter_says_so_and_keeps_what_it_has() -> None:
    cuckoo = Cuckoo(1)
    kept = [f"k{n}" for n in range(9) if cuckoo.add(f"k{n}")]
    before = cuckoo.to_bytes()
    assert len(kept) < 9
    assert not cuckoo.add("one more")
    assert cuckoo.to_bytes() == before
    assert all(name in cuckoo for name in kept)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 30)), max_size=60))
def test_a_cuckoo_filter_never_denies_what_it_holds(steps: list[tuple[bool, int]]) -> None:
    cuckoo, held = Cuckoo(64), set[str]()
    for adding, number in steps:
        name = f"k{number}"
        if adding and name not in held:
            assert cuckoo.add(name)
            held.add(name)
        elif not adding and name in held:
            assert cuckoo.discard(name)
            held.discard(name)
        assert cuckoo.count == len(held)
        assert all(known in cuckoo for known in held)


# ---- the fold token


def claim(now_ms: int = 1_700_000_000_000) -> f.FoldClaim:
    return f.FoldClaim(
        "publisher-1",
        "https://example.com/article",
        "leader-top",
        "ad_7f3a9b",
        "1234567890",
        str(now_ms // MINUTE_MS),
        "camp-42",
        "adv-7",
        f.nonce_text(bytes(16)),
    )


def test_h17_the_fold_token() -> None:
    assert claim().bucket == "28333333"
    token = f.fold_token(claim(), SECRET)
    assert token.endswith(".PE2yinJPw519sz-zcBVY3KvxEkvQdrEGq6_rsb8Ak54")
    assert f.claim_of(token) == claim()
    bucket = int(claim().bucket)
    assert [f.is_fresh(bucket, (bucket + minutes) * MINUTE_MS) for minutes in (29, -29, 31, -31)] == [
        True,
        True,
        False,
        False,
    ]


def verdict(token: str, *, slot: str = "leader-top", creative: str = "ad_7f3a9b", minutes: int = 0) -> f.FoldVerdict:
    return f.verify_fold(token, SECRET, slot=slot, creative=creative, now_ms=1_700_000_000_000 + minutes * MINUTE_MS)


def test_a_fold_token_is_judged_for_its_slot_and_creative() -> None:
    token = f.fold_token(claim(), SECRET)
    assert verdict(token) is f.FoldVerdict.VALID
    assert verdict(token, slot="other") is f.FoldVerdict.SLOT_MISMATCH
    assert verdict(token, creative="other") is f.FoldVerdict.CREATIVE_MISMATCH
    assert verdict(token, minutes=31) is f.FoldVerdict.STALE
    assert verdict(token[:-4] + "AAAA") is f.FoldVerdict.BAD_SIGNATURE
    assert verdict("x" * 5_000 + ".y") is f.FoldVerdict.BAD_FORMAT
    assert verdict("no-dot") is f.FoldVerdict.BAD_FORMAT
    assert verdict("!!!!.mac") is f.FoldVerdict.BAD_PAYLOAD
    assert verdict("YWJj.mac") is f.FoldVerdict.BAD_PAYLOAD
    with pytest.raises(BadInput):
        f.fold_token(f.FoldClaim("p", "u", "s", "c", "v", "1", "a|b", "x", "n"), SECRET)


@given(st.text(max_size=80))
def test_no_text_is_a_fold_token_by_accident(text: str) -> None:
    assert verdict(text) is not f.FoldVerdict.VALID


# ---- replay


def test_h18_what_may_still_be_accepted_is_remembered() -> None:
    assert [(replay.bucket_minutes(v), replay.coverage_minutes(v)) for v in (2, 3, 5)] == [(3, 6), (4, 8), (6, 12)]
    url_span = 2 * replay.VALIDITY_MINUTES
    assert replay.coverage_minutes(replay.VALIDITY_MINUTES) - url_span == 2


def test_h19_buckets() -> None:
    assert [replay.bucket_of(at, MINUTE_MS) for at in (0, 59_999, 60_000, 120_000)] == [0, 0, 1, 2]


def test_h20_a_url_is_used_once() -> None:
    bucket_ms = replay.bucket_minutes(3) * MINUTE_MS
    guard = replay.ReplayGuard(expected=1_000)
    assert guard.first_use("a", 0)
    assert not guard.first_use("a", 1)
    assert guard.first_use("b", 2)
    assert not guard.first_use("a", bucket_ms), "the bucket before is looked at"
    assert guard.first_use("a", 3 * bucket_ms), "after a gap of two nothing is left"
    assert not guard.first_use("a", 0), "time does not go back"


@given(st.integers(0, 20 * MINUTE_MS), st.integers(0, 4 * MINUTE_MS), st.lists(st.integers(0, 20), max_size=5))
@example(239_999, 240_000, [])
def test_no_url_is_accepted_twice_while_its_token_lives(at: int, later: int, between: list[int]) -> None:
    guard = replay.ReplayGuard(expected=100)
    assert guard.first_use("n", at)
    for minute in sorted(between):
        if minute * MINUTE_MS <= later:
            guard.first_use(f"other-{minute}", at + minute * MINUTE_MS)
    assert not guard.first_use("n", at + later)


# ---- engagement


def test_v1_a_click_without_its_impression() -> None:
    guard = EngagementGuard()
    assert guard.click("r", 1_000) is Judgement.CHAIN
    assert guard.knows("r")


@pytest.mark.parametrize(
    ("at", "expected"),
    [(1_050, Judgement.TIMING), (1_099, Judgement.TIMING), (1_100, Judgement.OK), (3_000, Judgement.OK)],
)
def test_v2_nobody_clicks_within_a_tenth_of_a_second(at: int, expected: Judgement) -> None:
    guard = EngagementGuard()
    assert guard.impression("r", 1_000) is Judgement.OK
    assert guard.click("r", at) is expected


def test_v3_a_call_to_action_follows_a_click() -> None:
    guard = EngagementGuard()
    assert guard.call_to_action("none", 1) is Judgement.CHAIN
    guard.impression("r", 1_000)
    assert guard.call_to_action("r", 2_000) is Judgement.CHAIN
    guard.click("r", 3_000)
    assert guard.call_to_action("r", 3_050) is Judgement.TIMING
    assert guard.call_to_action("r", 5_000) is Judgement.OK


def test_serves_are_forgotten_after_half_an_hour() -> None:
    guard = EngagementGuard()
    guard.impression("old", 0)
    guard.impression("new", TTL_MS)
    assert (guard.knows("old"), guard.knows("new")) == (False, True)


# ---- rates


def test_v8_a_burst_and_then_a_rate() -> None:
    gate = RateGate(rate_per_s=1, burst=3, idle_ms=5_000)
    assert [gate.allows("k", 0) for _ in range(4)] == [True, True, True, False]
    assert [gate.allows("k", 2_000) for _ in range(3)] == [True, True, False]
    assert gate.allows("other", 2_000)
    gate.sweep(6_999)
    assert len(gate) == 2
    gate.sweep(7_000)
    assert len(gate) == 0


def test_a_gate_counts_so_many_clients_and_no_more() -> None:
    gate = RateGate(rate_per_s=1, burst=1)
    for n in range(rate_gate_keys_max + 1):
        gate.allows(f"k{n}", 0)
    assert len(gate) == rate_gate_keys_max


@given(st.lists(st.integers(0, 3_000), min_size=1, max_size=80), st.integers(1, 5), st.integers(1, 10))
def test_never_more_than_the_burst_and_the_rate(gaps: list[int], rate: int, burst: int) -> None:
    gate, now, passed = RateGate(rate_per_s=rate, burst=burst), 0, 0
    for gap in gaps:
        now += gap
        passed += gate.allows("k", now)
    assert passed <= burst + rate * now / 1_000 + 1e-6


SETTINGS = lim.LimiterSettings(3, 1.0, 2)
LATE = 10**9


def run(
    limiter: lim.Limiter, *callers: int, at: int = 0, expires: int = LATE, settings: lim.LimiterSettings
) -> tuple[lim.Limiter, list[tuple[int, str]]]:
    told: list[tuple[int, str]] = []
    for caller in callers:
        limiter, answers = lim.acquire(limiter, caller, expires, settings, at)
        told += answers
    return limiter, told


def test_v9_first_come_first_served() -> None:
    limiter, told = run(lim.opened(SETTINGS, 0), 1, 2, 3, 4, 5, 6, settings=SETTINGS)
    assert told == [(1, "granted"), (2, "granted"), (3, "granted"), (6, "queue_full")]
    fast = lim.LimiterSettings(1, 10.0, 10)
    limiter, told = run(lim.opened(fast, 0), 0, 1, 2, 3, settings=fast)
    order = [caller for caller, _ in told]
    while limiter.waiting:
        due = lim.next_ms(limiter, fast)
        assert due is not None
        limiter, answers = lim.step(limiter, fast, due)
        order += [caller for caller, verdict in answers if verdict == "granted"]
    assert order == [0, 1, 2, 3]
    assert lim.next_ms(limiter, fast) is None


def test_v10_an_expired_caller_costs_no_token() -> None:
    limiter, told = run(lim.opened(SETTINGS, 0), 9, at=5, expires=5, settings=SETTINGS)
    limiter, more = run(limiter, 1, 2, 3, at=5, settings=SETTINGS)
    assert (told, [verdict for _, verdict in more]) == ([(9, "expired")], ["granted"] * 3)
    limiter, _ = run(limiter, 4, at=5, settings=SETTINGS)
    limiter, _ = run(limiter, 5, at=5, expires=500, settings=SETTINGS)
    limiter, told = run(limiter, 6, at=600, settings=SETTINGS)
    assert told == [(5, "expired")]
    assert [waiter.caller for waiter in limiter.waiting] == [4, 6]
    five = lim.LimiterSettings(5, 1.0, 2)
    one, _ = run(lim.opened(five, 0), 1, settings=five)
    kept = CODEC.decode_record(CODEC.encode_record(one.state(0)))
    assert isinstance(kept, lim.LimiterState)
    assert 3.5 <= kept.tokens <= 5.0


def test_v11_a_smaller_cap_after_a_restart_is_kept() -> None:
    five = lim.LimiterSettings(5, 1e-9, 10)
    limiter = lim.opened(five, 0, lim.LimiterState(9, 0))
    limiter, told = run(limiter, 1, 2, 3, 4, 5, settings=five)
    assert [verdict for _, verdict in told] == ["granted"] * 5
    limiter, told = run(limiter, 6, expires=10, settings=five)
    assert told == []
    assert lim.step(limiter, five, 10)[1] == ((6, "expired"),)


@given(st.lists(st.tuples(st.integers(0, 2_000), st.integers(1, 3_000)), max_size=40))
def test_every_caller_is_answered_once_and_never_above_the_rate(calls: list[tuple[int, int]]) -> None:
    limiter, now, told = lim.opened(SETTINGS, 0), 0, []
    for caller, (gap, patience) in enumerate(calls):
        now += gap
        limiter, answers = lim.acquire(limiter, caller, now + patience, SETTINGS, now)
        told += answers
    limiter, answers = lim.step(limiter, SETTINGS, now + LATE)
    told += answers
    assert sorted(caller for caller, _ in told) == list(range(len(calls)))
    granted = [caller for caller, verdict in told if verdict == "granted"]
    assert granted == sorted(granted)
    assert len(granted) <= 3 + now / 1_000 + 1e-6
