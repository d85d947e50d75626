"""The archive of a state store: one format, whatever store it came from and whatever store it goes into.

    magic                       16 bytes
    frame, frame, …             part (1), rows (4), bytes (4), rows as msgpack, xxh64 of all that (8)
    frame of part MANIFEST      its payload is JSON: whose archive this is, and what has to be in it
    end mark                    8 bytes, and nothing behind them

Numbers are big endian. Every byte is under a checksum or compared as it is: an archive that was cut or in which a bit
was flipped can't be read to its end. The manifest comes last, as only then the counts are known; an archive without
one is no archive. Each part's payloads together have a BLAKE2 digest in the manifest, so that no frame can be taken
out or doubled.

It holds what a cluster can't make again: identity, incarnations, leases (only their terms matter), placement, the
coordinator's book, states and tombstones, consumers with their rows, facts; and the roster, which has public keys only.
"""

from __future__ import annotations

import enum
import hashlib
import struct
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

import msgspec
import xxhash

from node.core import limits
from node.core.errors import OperatingError
from node.store.port import BookEntry, Identity, ShardRow, StoredFact

ARCHIVE_FORMAT: Final = 1
MAGIC: Final = b"promovolve-bak1\n"
END: Final = b"-ended-\n"
_FRAME: Final = struct.Struct(">BII")
_SUM: Final = struct.Struct(">Q")


class Part(enum.IntEnum):
    """What a frame holds; an archive has them in this order."""

    IDENTITY = 1
    ROSTER = 2
    INCARNATIONS = 3
    LEASES = 4
    COUNTERS = 5
    PLACEMENT = 6
    BOOK = 7
    STATES = 8
    CONSUMERS = 9
    PROJECTIONS = 10
    FACTS = 11
    MANIFEST = 255


class RosterText(msgspec.Struct, frozen=True, array_like=True):
    """The roster as its file says it: names, roles and public keys."""

    toml: str


class IncarnationRow(msgspec.Struct, frozen=True, array_like=True):
    node: str
    number: int


class LeaseRow(msgspec.Struct, frozen=True, array_like=True):
    name: str
    term: int


class CounterRow(msgspec.Struct, frozen=True, array_like=True):
    """`facts`: the last offset; `placement`: the table's version."""

    name: str
    value: int


class StateRow(msgspec.Struct, frozen=True, array_like=True):
    """A state, or the tombstone of a deleted one, whose body is empty."""

    kind: str
    id: str
    shard: int
    revision: int
    epoch: int
    deleted: bool
    body: bytes


class ConsumerRow(msgspec.Struct, frozen=True, array_like=True):
    name: str
    offset: int


class DerivedRow(msgspec.Struct, frozen=True, array_like=True):
    """A row that a consumer has made."""

    consumer: str
    key: str
    body: bytes


Row = (
    Identity
    | RosterText
    | IncarnationRow
    | LeaseRow
    | CounterRow
    | ShardRow
    | BookEntry
    | StateRow
    | ConsumerRow
    | DerivedRow
    | StoredFact
)

_SHAPES: Final[dict[Part, type[msgspec.Struct]]] = {
    Part.IDENTITY: Identity,
    Part.ROSTER: RosterText,
    Part.INCARNATIONS: IncarnationRow,
    Part.LEASES: LeaseRow,
    Part.COUNTERS: CounterRow,
    Part.PLACEMENT: ShardRow,
    Part.BOOK: BookEntry,
    Part.STATES: StateRow,
    Part.CONSUMERS: ConsumerRow,
    Part.PROJECTIONS: DerivedRow,
    Part.FACTS: StoredFact,
}
_PART_OF: Final = {shape: part for part, shape in _SHAPES.items()}
_DECODERS: Final[dict[Part, msgspec.msgpack.Decoder[Any]]] = {
    part: msgspec.msgpack.Decoder(list[shape])  # type: ignore[valid-type]
    for part, shape in _SHAPES.items()
}


class PartSum(msgspec.Struct, frozen=True):
    """What a part has to be: its rows, the bytes of its payloads, and their digest."""

    part: str
    rows: int
    bytes: int
    digest: str


class Manifest(msgspec.Struct, frozen=True):
    """`store_kind` is that of the store it came from, `store_format` the layout it had there; `last_offset` is that of
    the last fact in it; `taken_at_ms` is the wall clock of the moment that it shows."""

    format: int
    cluster_id: str
    cluster_name: str
    store_kind: str
    store_format: int
    release: str
    taken_at_ms: int
    last_offset: int
    placement_version: int
    parts: tuple[PartSum, ...] = ()

    def rows(self, part: Part) -> int:
        return next((known.rows for known in self.parts if known.part == part.name.lower()), 0)


class ArchiveDamaged(OperatingError):
    """The file is no whole archive; `where` is the byte at which that was seen."""

    def __init__(self, where: int, detail: str) -> None:
        super().__init__(
            "E-BACKUP-DAMAGED", f"at byte {where}: {detail}", hint="use another backup; this one can't be trusted"
        )


class _Tally:
    """What was seen of one part."""

    def __init__(self) -> None:
        self.rows = 0
        self.bytes = 0
        self._digest = hashlib.blake2b(digest_size=16)

    def add(self, rows: int, payload: bytes) -> None:
        self.rows += rows
        self.bytes += len(payload)
        self._digest.update(payload)

    def sum_of(self, part: Part) -> PartSum:
        return PartSum(part.name.lower(), self.rows, self.bytes, self._digest.hexdigest())


class ArchiveWriter:
    """Writes rows, in the order of their parts, into a stream that the caller syncs and closes."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._part = Part.IDENTITY
        self._waiting: list[Row] = []
        self._size = 0
        self._tallies: dict[Part, _Tally] = {}
        self.rows = 0
        self.bytes = stream.write(MAGIC)

    def add(self, row: Row) -> None:
        """One more row; a row of an earlier part is a mistake of the caller's."""
        part = _PART_OF[type(row)]
        if part is not self._part:
            if part < self._part:
                raise ValueError(f"{part.name} after {self._part.name}")
            self._flush()
            self._part = part
        self._waiting.append(row)
        self.rows += 1
        self._size += len(getattr(row, "body", b""))
        if self._size >= limits.backup_frame_bytes or len(self._waiting) >= limits.backup_frame_rows_max:
            self._flush()

    def end(self, manifest: Manifest) -> Manifest:
        """Writes the manifest, with what was written, and the end; returns it."""
        self._flush()
        whole = msgspec.structs.replace(manifest, parts=self.sums())
        self._frame(Part.MANIFEST, 1, msgspec.json.encode(whole))
        self.bytes += self._stream.write(END)
        return whole

    def sums(self) -> tuple[PartSum, ...]:
        return tuple(tally.sum_of(part) for part, tally in sorted(self._tallies.items()))

    def _flush(self) -> None:
        if not self._waiting:
            return
        payload = msgspec.msgpack.encode(self._waiting)
        self._tallies.setdefault(self._part, _Tally()).add(len(self._waiting), payload)
        self._frame(self._part, len(self._waiting), payload)
        self._waiting, self._size = [], 0

    def _frame(self, part: Part, rows: int, payload: bytes) -> None:
        framed = _FRAME.pack(part, rows, len(payload)) + payload
        self.bytes += self._stream.write(framed + _SUM.pack(xxhash.xxh64_intdigest(framed)))


class ArchiveReader:
    """Reads an archive from its beginning. `manifest` is there once `rows` has come to its end: what was read before
    must not be used for good until then."""

    def __init__(self, stream: BinaryIO) -> None:
        """Raises ArchiveDamaged for a file that is something else."""
        self._stream = stream
        self._at = 0
        self.manifest: Manifest | None = None
        if self._exactly(len(MAGIC), "its first bytes") != MAGIC:
            raise ArchiveDamaged(0, "this is no backup of a state store, or one of another format")

    def rows(self) -> Iterator[Row]:
        """All rows in order; raises ArchiveDamaged at the first thing that is not as it was written."""
        tallies: dict[Part, _Tally] = {}
        last = Part.IDENTITY
        while True:
            began = self._at
            part, count, payload = self._frame()
            if part is Part.MANIFEST:
                self._close(began, payload, tallies)
                return
            if part < last:
                raise ArchiveDamaged(began, f"{part.name.lower()} behind {last.name.lower()}")
            last = part
            try:
                found = _DECODERS[part].decode(payload)
            except (msgspec.DecodeError, RecursionError) as error:
                raise ArchiveDamaged(began, f"{part.name.lower()} can't be read: {error}") from error
            if len(found) != count:
                raise ArchiveDamaged(began, f"{len(found)} rows of {part.name.lower()} where {count} were written")
            tallies.setdefault(part, _Tally()).add(count, payload)
            yield from found

    @property
    def position(self) -> int:
        """Bytes read so far."""
        return self._at

    def _frame(self) -> tuple[Part, int, bytes]:
        began = self._at
        head = self._exactly(_FRAME.size, "a frame's head")
        number, rows, size = _FRAME.unpack(head)
        if size > limits.backup_frame_bytes_max:
            raise ArchiveDamaged(began, f"a frame of {size} bytes, more than {limits.backup_frame_bytes_max}")
        payload = self._exactly(size, "a frame")
        (wanted,) = _SUM.unpack(self._exactly(_SUM.size, "a frame's checksum"))
        if xxhash.xxh64_intdigest(head + payload) != wanted:
            raise ArchiveDamaged(began, "the checksum of a frame is wrong")
        try:
            return Part(number), rows, payload
        except ValueError:
            raise ArchiveDamaged(began, f"a part {number}, which this release does not know") from None

    def _close(self, began: int, payload: bytes, tallies: dict[Part, _Tally]) -> None:
        try:
            manifest = msgspec.json.decode(payload, type=Manifest)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ArchiveDamaged(began, f"the manifest can't be read: {error}") from error
        found = tuple(tally.sum_of(part) for part, tally in sorted(tallies.items()))
        if found != manifest.parts:
            wrong = sorted({part.part for part in set(found) ^ set(manifest.parts)})
            raise ArchiveDamaged(began, f"the manifest does not fit what is there: {', '.join(wrong)}")
        if self._exactly(len(END), "the end mark") != END or self._stream.read(1):
            raise ArchiveDamaged(self._at, "something else where the archive ends")
        self.manifest = manifest

    def _exactly(self, size: int, what: str) -> bytes:
        data = self._stream.read(size)
        if len(data) != size:
            raise ArchiveDamaged(self._at + len(data), f"the file ends within {what}")
        self._at += size
        return data
