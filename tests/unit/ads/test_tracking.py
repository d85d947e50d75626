import msgspec
import pytest

from node.ads import tracking as t
from node.core.errors import BadInput

SECRET = b"test-secret-bytes-min-32-bytes-long"
EVENT = t.TrackedEvent(
    pub="publisher-1",
    url="https://example.com/article",
    slot="leader-top",
    creative="ad_7f3a9b",
    version="1234567890",
    bucket="29000000",
    event="imp",
    campaign="camp-legit",
    advertiser="adv-legit",
    cpm="2.5",
    request_id="01H0RID",
)
UNBOUND = msgspec.structs.replace(EVENT, campaign=None, advertiser=None, cpm=None, request_id=None)
NOW_MS = 29_000_000 * 60_000


def test_h14_canonical_bind_and_token() -> None:
    assert t.canonical(EVENT) == (
        "publisher-1|https://example.com/article|leader-top|ad_7f3a9b|1234567890|29000000|imp"
    )
    assert t.bind("camp-legit", "adv-legit", "2.5", "01H0RID") == "|=camp-legit|=adv-legit|=2.5|=01H0RID"
    assert t.sign(EVENT, SECRET) == "BXclA4EYW8s_XOkJOd8Qk5EgYo64jerjfEq1jgQjhJU"


@pytest.mark.parametrize(
    ("event", "token"),
    [
        (msgspec.structs.replace(EVENT, event="click"), "kcsI3N3EKcwlCh3fu1qpJGcOVq3-_CyLZDl8ERgVAEg"),
        (msgspec.structs.replace(UNBOUND, request_id="01H0RID"), "3iNPUWPrTOFNT8s3SQkWxNpExnSPaaevPJDZx6qfCbA"),
    ],
)
def test_h15_tokens(event: t.TrackedEvent, token: str) -> None:
    assert t.sign(event, SECRET) == token


def test_h15_token_without_bound_fields() -> None:
    assert t.mac(t.canonical(EVENT), SECRET) == "wSNrIzo3wccNOGYk2BODKmxxkGUgR26-NmTO-twjJyI"
    assert t.sign(UNBOUND, SECRET) == t.mac(t.canonical(EVENT) + "||||", SECRET)


def test_h16_bind_is_injective() -> None:
    assert t.bind("a", "b", "c") == "|=a|=b|=c"
    assert t.bind("a", None, "c") == "|=a||=c"
    assert t.bind(None, None, None) == "|||"
    assert t.bind("a", "b") != t.bind("b", "a")
    assert t.bind("c|a") != t.bind("c", "a")
    assert t.bind("") != t.bind(None)
    assert t.bind("a b*~é") == "|=a+b*%7E%C3%A9"


@pytest.mark.parametrize("minutes", [-3, 0, 3])
def test_a_token_lives_three_minutes_either_way(minutes: int) -> None:
    token = t.sign(EVENT, SECRET)
    assert t.verify(EVENT, token, SECRET, now_ms=NOW_MS + minutes * 60_000) is t.Verdict.VALID


@pytest.mark.parametrize("minutes", [-4, 4])
def test_outside_it_has_expired(minutes: int) -> None:
    token = t.sign(EVENT, SECRET)
    assert t.verify(EVENT, token, SECRET, now_ms=NOW_MS + minutes * 60_000) is t.Verdict.EXPIRED


@pytest.mark.parametrize("field", EVENT.__struct_fields__)
def test_no_field_can_be_changed(field: str) -> None:
    token = t.sign(EVENT, SECRET)
    forged = msgspec.structs.replace(EVENT, **{field: "29000001" if field == "bucket" else "x"})
    assert t.verify(forged, token, SECRET, now_ms=NOW_MS) is t.Verdict.BAD_SIGNATURE
    assert t.verify(EVENT, token, b"another-secret-of-at-least-32-bytes!", now_ms=NOW_MS) is t.Verdict.BAD_SIGNATURE


@pytest.mark.parametrize("field", ["pub", "url", "slot", "creative", "version", "event"])
def test_a_separator_is_refused(field: str) -> None:
    event = msgspec.structs.replace(EVENT, **{field: "a|b"})
    with pytest.raises(BadInput, match=r"\|"):
        t.sign(event, SECRET)
    assert t.verify(event, "x", SECRET, now_ms=NOW_MS) is t.Verdict.MALFORMED


@pytest.mark.parametrize("bucket", ["", "-1", "1e3", "٣", "9" * 13, "29000000.0"])
def test_a_strange_bucket_is_malformed(bucket: str) -> None:
    event = msgspec.structs.replace(EVENT, bucket=bucket)
    assert t.verify(event, "x", SECRET, now_ms=NOW_MS) is t.Verdict.MALFORMED


def test_short_secrets_and_odd_tokens() -> None:
    with pytest.raises(BadInput) as caught:
        t.sign(EVENT, b"short")
    assert caught.value.field == "secret"
    assert t.verify(EVENT, "é", SECRET, now_ms=NOW_MS) is t.Verdict.MALFORMED
    assert t.bucket_of(59_999) == 0
