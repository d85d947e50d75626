"""The envelope of stored values finds every damage and is bound to its key."""

from __future__ import annotations

import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from node.store import record
from node.store.record import RecordDamaged, RecordTooNew, Sealed, body_sum, seal, unseal

U64 = st.integers(0, 2**64 - 1)


@given(key=st.binary(max_size=20), body=st.binary(max_size=50), revision=U64, epoch=U64)
def test_what_was_sealed_is_unsealed(key: bytes, body: bytes, revision: int, epoch: int) -> None:
    value = seal(key, body, revision=revision, epoch=epoch)
    assert unseal(key, value) == Sealed(revision, epoch, body)
    assert seal(key, body, revision=revision, epoch=epoch, summed=body_sum(body)) == value


@given(body=st.binary(max_size=30), data=st.data())
def test_any_flipped_bit_is_damage(body: bytes, data: st.DataObject) -> None:
    value = bytearray(seal(b"k", body, revision=3, epoch=4))
    bit = data.draw(st.integers(0, len(value) * 8 - 1))
    value[bit // 8] ^= 1 << bit % 8
    with pytest.raises(RecordDamaged) as caught:
        unseal(b"k", bytes(value))
    assert (caught.value.code, caught.value.key) == ("E-RECORD-DAMAGED", b"k")


@given(body=st.binary(max_size=30), data=st.data())
def test_any_cut_is_damage(body: bytes, data: st.DataObject) -> None:
    value = seal(b"k", body)
    with pytest.raises(RecordDamaged):
        unseal(b"k", value[: data.draw(st.integers(0, len(value) - 1))])


def test_a_value_under_another_key_is_damage() -> None:
    with pytest.raises(RecordDamaged):
        unseal(b"other", seal(b"key", b"body"))


def test_bytes_do_not_move_between_key_and_numbers() -> None:
    """A key that ends as the numbers begin must not make the same checksum."""
    value = seal(b"key", b"")
    with pytest.raises(RecordDamaged):
        unseal(b"key" + value[:1], value)


def test_a_newer_format_is_refused_with_both_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "RECORD_FORMAT", 9)
    value = seal(b"k", b"body")
    monkeypatch.undo()
    with pytest.raises(RecordTooNew, match="format 9, this release reads 1"):
        unseal(b"k", value)


def test_the_layout_on_disk_stays() -> None:
    """Bytes that a released store holds must stay readable: this value is written out, not computed by `seal`."""
    numbers = bytes([1]) + (2).to_bytes(8, "big") + (3).to_bytes(8, "big")
    covered = (1).to_bytes(8, "big") + b"k" + numbers + xxhash.xxh64(b"body").digest()
    assert seal(b"k", b"body", revision=2, epoch=3) == numbers + xxhash.xxh64(covered).digest() + b"body"
