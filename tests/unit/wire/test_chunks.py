"""W20: chunked transfer; missing, repeated, overlapping, endless and foreign pieces, and a sender that resumes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.core import limits
from node.core.clock import MS
from node.core.errors import RemoteProtocolError
from node.wire.chunks import Inbox, Piece, cut


@given(st.binary(min_size=1, max_size=400), st.integers(1, 90), st.data())
def test_w20_a_document_arrives_whole_whatever_is_tried_in_between(
    document: bytes, size: int, data: st.DataObject
) -> None:
    """W20: after each piece any other piece is tried as well; only the one that is wanted is taken."""
    pieces, inbox, held = list(cut(document, size)), Inbox(), 0
    for piece in pieces:
        assert inbox.claim("k") is None
        for other in data.draw(st.lists(st.sampled_from(pieces), max_size=3)):
            if other.offset != held and held:
                with pytest.raises(RemoteProtocolError) as caught:
                    inbox.take("k", other, 0)
                assert caught.value.reason == ("gap" if other.offset > held else "repeated")
                assert inbox.take("k", replace(other, data=b""), 0) == held, "a sender may ask, and resumes there"
        held = inbox.take("k", piece, 0)
        assert held == piece.offset + len(piece.data)
    assert inbox.claim("k") == document
    assert inbox.claim("k") is None
    assert list(cut(document, size, pieces[-1].offset)) == pieces[-1:]


def refused(inbox: Inbox, piece: Piece, key: str = "k") -> str:
    with pytest.raises(RemoteProtocolError) as caught:
        inbox.take(key, piece, 0)
    return caught.value.reason


def test_w20_what_can_not_become_whole_is_refused() -> None:
    """W20: endless, overlapping, damaged, of another document, too large at once."""
    (first, second), inbox = cut(b"x" * 100, 60), Inbox()
    assert refused(inbox, second) == "gap"
    assert inbox.take("k", first, 0) == 60
    assert refused(inbox, replace(second, offset=59)) == "repeated"
    assert refused(inbox, replace(second, size=101)) == "another_document"
    assert refused(inbox, replace(second, digest="0" * 64)) == "another_document"
    assert refused(inbox, replace(second, data=b"y" * (limits.chunk_bytes + 1))) == "piece_too_large"
    assert refused(inbox, replace(second, data=b"x" * 41)) == "endless"
    assert refused(inbox, second) == "gap", "it was forgotten"
    assert inbox.take("k", first, 0) == 60
    assert refused(inbox, replace(second, data=b"y" * 40)) == "damaged"
    assert inbox.claim("k") is None
    assert refused(inbox, replace(first, size=0)) == refused(inbox, replace(first, size=-1)) == "no_room"
    assert inbox.take("k", first, 0) == 60
    assert inbox.take("k", second, 0) == 100


def test_w20_what_is_announced_is_bounded_and_what_is_left_lying_is_forgotten() -> None:
    inbox = Inbox()
    large = Piece(limits.chunked_bytes_max, "0" * 64, 0, b"x")
    assert inbox.take("a", large, 0) == 1
    assert refused(inbox, replace(large, size=1), "b") == "no_room"
    later_ns = (limits.chunks_idle_ms_max + 1) * MS
    assert inbox.take("b", next(cut(b"x")), later_ns) == 1
    assert inbox.claim("a") is None
    for number in range(limits.chunked_open_max - 1):
        inbox.take(number, next(cut(b"xy", 1)), later_ns)
    with pytest.raises(RemoteProtocolError, match="no_room"):
        inbox.take("c", next(cut(b"x")), later_ns)
