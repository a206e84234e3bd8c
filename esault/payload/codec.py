"""The codec: frames as MessagePack, and values and state as exactly what they are.

`pack` is for eSault's own messages: None, bool, int, float, str, bytes, lists, tuples and dicts, whose **sequences arrive as
tuples**, and at any depth datetime, date, Decimal, set, frozenset and ints of any size. `pack_value` is for what users make: it
arrives with its type and value, see `pickles`. Columns of tuples are packed row by row, and exactly, where `wired` made them.
`unpack` reads all of it, and runs nothing that is not the user's own.

Extension types: the code, and what is in it.

    80  int beyond 64 bits   two's complement, big endian
    81  Decimal              its str()
    82  datetime             year, month, day, hour, minute, second, microsecond, fold[, UTC offset in microseconds]
    83  date                 year, month, day
    84  set                  MessagePack of an array
    85  frozenset            MessagePack of an array
    86, 87, 88               whole columns that are arrays, see `column_wire`
    89                       a whole column of rows, see `packed_rows`

A value is MessagePack where that says it exactly (a dict of scalars), else the byte C1, which never begins MessagePack, and either
an L and MessagePack (a dict of scalars, and of lists and dicts of them), or a pickle.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import msgpack

from esault.errors import FrameError, PayloadError
from esault.payload.column_wire import LibraryMissing, read_arrow, read_numpy, read_records
from esault.payload.own_error import own_error
from esault.payload.packed_rows import RowPacker, Rows, read_rows
from esault.payload.pickles import NotPlain, PlainWriter, Writer, read, read_shared
from esault.payload.portable import ARROW, MAX_DEPTH, MAX_SET_DEPTH, NUMPY, OWN_CODES, PACKED_ROWS, RECORDS, explain
from esault.payload.remedy import type_name

__all__ = ["MAX_BYTES", "MAX_DEPTH", "MAX_SET_DEPTH", "Codec", "explain", "of_thread"]

#: bytes of one packed value or frame at most
MAX_BYTES = 256 * 2**20
#: bytes; shorter input cannot make the unpacker allocate much, whatever it claims
_HARMLESS = 8192

_NO_VALUE = "bytes that are no packed value"
_NOT_FOUND = "a value of a class that is not to be found here"
#: begins what is pickled; MessagePack has no word of this byte
_PICKLED = b"\xc1"
#: begins MessagePack in which each array is a list; no pickle begins so
_WITH_LISTS = b"\xc1L"
#: what MessagePack says exactly
_FEW = 32
_SCALARS = frozenset((str, int, float, bool, bytes, type(None)))

_INT, _DECIMAL, _DATETIME, _DATE, _SET, _FROZENSET = OWN_CODES[:6]

_NAIVE = struct.Struct(">HBBBBBIB")
_AWARE = struct.Struct(">HBBBBBIBq")
_DAY = struct.Struct(">HBB")
_MICROSECOND = timedelta(microseconds=1)


class Codec:
    """Packs and unpacks. Keeps a buffer between calls: one codec for each thread."""

    __slots__ = ("_depth", "_few", "_pack", "_plain", "_rows", "_unpackers", "_writer")

    def __init__(self) -> None:
        self._pack = msgpack.Packer(default=self._extend).pack
        self._writer = Writer()
        self._plain = PlainWriter()
        self._rows = RowPacker(self._writer, self._plain)
        self._depth = 0
        #: so many scalars are packed as such and not as rows
        self._few = _FEW
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
            PACKED_ROWS: read_rows,
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
        except UnicodeEncodeError as error:
            if not self._few:
                raise PayloadError(f"the value cannot travel: {error}") from None
            self._few = 0  # one of the rows is a text that is no UTF-8, which a pickle can say
            try:
                return self.pack(obj)
            finally:
                self._few = _FEW
        except PayloadError:
            raise
        except Exception as error:
            raise PayloadError(f"the value cannot travel: {error}") from error
        self._check_size(data)
        return data

    def pack_plain(self, thing: Any, head: bytes, shared: Sequence[str] = ()) -> bytes | None:
        """Python's own containers and scalars, behind `head`, in one piece; None if there is anything else in them.

        `shared` are texts that stand in many places as one object.

        Of all ways it is the quickest, and its bytes are copied least: rows of 10 kB take half the time.
        Raises PayloadError for what is too large to travel.
        """
        try:
            data = self._plain.write(thing, head, shared)
        except (NotPlain, ValueError, RecursionError):
            return None  # it holds objects, or itself
        self._check_size(data)
        return data

    def unpack_plain(self, data: bytes | bytearray | memoryview, start: int, shared: bool = False) -> Any:
        """The thing that `pack_plain` wrote behind a head of so many bytes, with texts that are `shared` or without. Raises FrameError
        for anything else."""
        if len(data) > MAX_BYTES:
            raise FrameError(f"{len(data)} bytes are more than the {MAX_BYTES} that can be one frame")
        try:
            return read_shared(data, start) if shared else read(data, start)
        except Exception as error:
            raise FrameError(f"{_NO_VALUE}: {type(error).__name__}: {error}") from None

    def pack_value(self, value: Any, owner: Any = None) -> bytes:
        """A value, or the state of `owner`, as bytes that `unpack` reads as exactly that: types, and what stands in it twice.

        Raises PayloadError, naming type and place inside `value`, for what cannot travel.
        """
        if type(value) is dict:
            flat = _SCALARS.issuperset(map(type, value.values()))
            if flat or _has_flat_containers(value):
                try:
                    plain: bytes = _pack_exactly(value)
                    if len(plain) < MAX_BYTES:
                        return plain if flat else _WITH_LISTS + plain
                except Exception:
                    pass  # a key that is no text or number, a text that is no UTF-8
        try:
            data = _PICKLED + self._writer.write(value, owner)
        except MemoryError:
            raise
        except Exception as error:
            raise PayloadError(explain(value, owner) or f"the value cannot travel: {error}") from error
        self._check_size(data)
        return data

    def _check_size(self, data: bytes) -> None:
        if len(data) > MAX_BYTES:
            raise PayloadError(
                f"the value takes {len(data) / 2**20:.0f} MiB, more than the {MAX_BYTES // 2**20} MiB that can travel "
                "at once; split it into several tuples, or write it to a file and send the file's name"
            )

    def unpack(self, data: bytes | bytearray | memoryview, owner: Any = None) -> Any:
        """The value in these bytes, all of them; `owner` is whose state it is.

        Raises FrameError for anything that `pack` or `pack_value` did not make, LibraryMissing.
        """
        if len(data) > MAX_BYTES:
            raise FrameError(f"{len(data)} bytes are more than the {MAX_BYTES} that can be one frame")
        self._depth = 0
        try:
            if data[0] == _PICKLED[0]:
                if data[1] == _WITH_LISTS[1]:
                    return self._read(memoryview(data)[2:], lists=True)
                return read(data, 1, owner)
            return self._read(data)
        except LibraryMissing:
            raise  # the bytes are all right
        except (AttributeError, ImportError) as error:
            raise FrameError(
                own_error(error) or f"{_NOT_FOUND if data[0] == _PICKLED[0] else _NO_VALUE}: {error}"
            ) from None
        except Exception as error:
            raise FrameError(own_error(error) or f"{_NO_VALUE}: {type(error).__name__}: {error}") from None

    def _read(self, data: bytes | bytearray | memoryview, lists: bool = False) -> Any:
        if len(data) > _HARMLESS:
            # For an array msgpack at once allocates what the header claims (a slot for each byte of input at most),
            # for up to 1024 open arrays: 1 MB of headers could take 8 GB. A walk that builds nothing first finds
            # the claims that are not kept; it adds a fifth to the time of unpacking.
            unpacker = msgpack.Unpacker(read_size=len(data), max_buffer_size=MAX_BYTES)
            unpacker.feed(data)
            unpacker.skip()
        return msgpack.unpackb(data, use_list=lists, strict_map_key=False, raw=False, ext_hook=self._restore)

    # what msgpack has no type for ---------------------------------------------------------------

    def _extend(self, obj: Any) -> Any:
        """Called by the packer for what it does not know."""
        if type(obj) is Rows:
            rows = obj.rows
            if len(rows) < self._few and _SCALARS.issuperset(map(type, rows)):
                return tuple(rows)  # MessagePack says it
            return msgpack.ExtType(PACKED_ROWS, self._rows.pack(rows))
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
        raise PayloadError(f"{type_name(type(obj))} is not known")

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


def _has_flat_containers(value: dict[Any, Any]) -> bool:
    """Return whether all in it are scalars, and lists and dicts of scalars, of which none stands in two places."""
    containers = []
    for item in value.values():
        kind = type(item)
        if kind is list or kind is dict:
            if not _SCALARS.issuperset(map(type, item if kind is list else item.values())):
                return False
            containers.append(id(item))
        elif kind not in _SCALARS:
            return False
    return len(containers) == len(set(containers))


def _inexact(obj: Any) -> Any:
    raise PayloadError("MessagePack has no word for it")


#: one for all threads, since it runs nothing of Python's while it packs: each packer holds a buffer of a megabyte
_pack_exactly = msgpack.Packer(default=_inexact, strict_types=True).pack


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


_of_threads = threading.local()


def of_thread() -> Codec:
    """Return the codec of this thread, for what is packed now and then.

    One holds 64 KB and refers to itself: those that are made and dropped stay until the collector finds them.
    """
    try:
        codec: Codec = _of_threads.codec
    except AttributeError:
        codec = _of_threads.codec = Codec()
    return codec
