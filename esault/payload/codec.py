"""The codec: values and state as MessagePack, and nothing that runs code on the way back.

None, bool, int, float, str, bytes, lists, tuples, dicts, and at any depth datetime, date, Decimal, set, frozenset and
ints of any size. What arrives is the plain type: **every sequence is a tuple**, bytearray and memoryview
are bytes, and a subclass is its base (a namedtuple is a tuple, an IntEnum an int, a Counter or an OrderedDict
a dict, numpy.float64 a float). An aware datetime keeps its UTC offset, not the name of its zone. `msgpack.Timestamp`
and `msgpack.ExtType` of codes that are not ours arrive as they are. Anything else is a PayloadError with a remedy.

Extension types: the code, and what is in it.

    80  int beyond 64 bits   two's complement, big endian
    81  Decimal              its str()
    82  datetime             year, month, day, hour, minute, second, microsecond, fold[, UTC offset in microseconds]
    83  date                 year, month, day
    84  set                  MessagePack of an array
    85  frozenset            MessagePack of an array
    86, 87, 88               whole columns that are arrays, see `column_wire`; read here, and packed only where `wired` made them
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import msgpack

from esault.errors import FrameError, PayloadError
from esault.payload.column_wire import LibraryMissing, read_arrow, read_numpy, read_records
from esault.payload.portable import ARROW, MAX_DEPTH, MAX_SET_DEPTH, NUMPY, OWN_CODES, RECORDS, explain, find_unportable

__all__ = ["MAX_BYTES", "MAX_DEPTH", "MAX_SET_DEPTH", "Codec", "explain", "find_unportable"]

#: bytes of one packed value or frame at most
MAX_BYTES = 256 * 2**20
#: bytes; shorter input cannot make the unpacker allocate much, whatever it claims
_HARMLESS = 8192

_INT, _DECIMAL, _DATETIME, _DATE, _SET, _FROZENSET = OWN_CODES[:6]

_NAIVE = struct.Struct(">HBBBBBIB")
_AWARE = struct.Struct(">HBBBBBIBq")
_DAY = struct.Struct(">HBB")
_MICROSECOND = timedelta(microseconds=1)


class Codec:
    """Packs and unpacks. Keeps a buffer between calls: one codec for each thread."""

    __slots__ = ("_depth", "_pack", "_unpackers")

    def __init__(self) -> None:
        self._pack = msgpack.Packer(default=self._extend).pack
        self._depth = 0
        self._unpackers: dict[int, Callable[[bytes], Any]] = {
            _INT: lambda data: int.from_bytes(data, "big", signed=True),
            _DECIMAL: lambda data: Decimal(data.decode("ascii")),
            _DATETIME: _read_datetime,
            _DATE: lambda data: date(*_DAY.unpack(data)),
            _SET: lambda data: set(self._read_array(data)),
            _FROZENSET: lambda data: frozenset(self._read_array(data)),
            NUMPY: read_numpy,
            ARROW: read_arrow,
            RECORDS: read_records,
        }

    def pack(self, obj: Any) -> bytes:
        """As bytes. Raises PayloadError, naming type and place inside `obj`, for what cannot travel."""
        self._depth = 0
        try:
            # The packer goes one level deeper than the unpacker: inside a tuple of one, whose first byte is
            # cut off, it can pack only what can be unpacked.
            data: bytes = self._pack((obj,))[1:]
        except MemoryError:
            raise
        except Exception as error:
            raise PayloadError(explain(obj) or f"the value cannot travel: {error}") from None
        if len(data) > MAX_BYTES:
            raise PayloadError(
                f"the value takes {len(data) / 2**20:.0f} MiB, more than the {MAX_BYTES // 2**20} MiB that can travel "
                "at once; split it into several tuples, or write it to a file and send the file's name"
            )
        return data

    def unpack(self, data: bytes | bytearray | memoryview) -> Any:
        """The value in these bytes, all of them. Raises FrameError for anything that `pack` did not make, LibraryMissing."""
        if len(data) > MAX_BYTES:
            raise FrameError(f"{len(data)} bytes are more than the {MAX_BYTES} that can be one frame")
        self._depth = 0
        try:
            return self._read(data)
        except LibraryMissing:
            raise  # the bytes are all right
        except Exception as error:
            raise FrameError(f"bytes that are no packed value: {type(error).__name__}: {error}") from None

    def _read(self, data: bytes | bytearray | memoryview) -> Any:
        if len(data) > _HARMLESS:
            # For an array msgpack at once allocates what the header claims (a slot for each byte of input at most),
            # for up to 1024 open arrays: 1 MB of headers could take 8 GB. A walk that builds nothing first finds
            # the claims that are not kept; it adds a fifth to the time of unpacking.
            unpacker = msgpack.Unpacker(max_buffer_size=MAX_BYTES)
            unpacker.feed(data)
            unpacker.skip()
        return msgpack.unpackb(data, use_list=False, strict_map_key=False, raw=False, ext_hook=self._restore)

    # what msgpack has no type for ---------------------------------------------------------------

    def _extend(self, obj: Any) -> msgpack.ExtType:
        """Called by the packer for what it does not know."""
        if isinstance(obj, int):
            return msgpack.ExtType(_INT, obj.to_bytes(obj.bit_length() // 8 + 1, "big", signed=True))
        if isinstance(obj, Decimal):
            return msgpack.ExtType(_DECIMAL, str(obj).encode())
        if isinstance(obj, datetime):
            return msgpack.ExtType(_DATETIME, _write_datetime(obj))
        if isinstance(obj, date):
            return msgpack.ExtType(_DATE, _DAY.pack(obj.year, obj.month, obj.day))
        if isinstance(obj, (set, frozenset)):
            code = _SET if isinstance(obj, set) else _FROZENSET
            if self._depth == MAX_SET_DEPTH:
                raise PayloadError("sets in sets, too deep")
            self._depth += 1
            data = msgpack.packb((tuple(obj),), default=self._extend)[1:]
            self._depth -= 1
            return msgpack.ExtType(code, data)
        raise PayloadError("unknown type")  # `pack` says which, and where it is

    def _restore(self, code: int, data: bytes) -> Any:
        """Called by the unpacker for an extension type."""
        unpacker = self._unpackers.get(code)
        return msgpack.ExtType(code, data) if unpacker is None else unpacker(data)

    def _read_array(self, data: bytes) -> tuple[Any, ...]:
        if self._depth == MAX_SET_DEPTH:
            raise FrameError("sets in sets, too deep")
        self._depth += 1
        items = self._read(data)
        self._depth -= 1
        if type(items) is not tuple:
            raise FrameError("a set is packed as an array")
        return items


def _write_datetime(moment: datetime) -> bytes:
    if getattr(moment, "nanosecond", 0):
        raise PayloadError("nanoseconds")
    fields = (moment.year, moment.month, moment.day, moment.hour, moment.minute, moment.second, moment.microsecond)
    offset = moment.utcoffset()
    if offset is None:
        return _NAIVE.pack(*fields, moment.fold)
    return _AWARE.pack(*fields, moment.fold, offset // _MICROSECOND)


def _read_datetime(data: bytes) -> datetime:
    if len(data) == _NAIVE.size:
        *fields, fold = _NAIVE.unpack(data)
        return datetime(*fields, fold=fold)
    *fields, fold, offset = _AWARE.unpack(data)
    return datetime(*fields, fold=fold).replace(tzinfo=timezone(timedelta(microseconds=offset)))
