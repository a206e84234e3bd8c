"""The rows that a sink keeps in Redis between the beginning of a checkpoint and its end, and the script that moves them."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

__all__ = ["MOST_FIELDS", "Staging"]

#: fields and values of a row: Lua hands them on as arguments, of which it allows some 8000
MOST_FIELDS = 4000
#: bytes of rows in one value, more or less: a script unpacks one at a time
_PIECE = 256 * 1024

# All or nothing: Redis runs nothing else meanwhile, and its append-only file has the whole or none of it.
# What is neither staged nor known as moved, the server has lost: it came back from an older snapshot.
_MOVE = """
for i = 4, #KEYS do
  if redis.call('EXISTS', KEYS[i]) == 0 and not redis.call('LPOS', KEYS[3], KEYS[i]) then return -1 end
end
local moved = 0
for i = 4, #KEYS do
  for piece = 0, redis.call('LLEN', KEYS[i]) - 1 do
    for _, row in ipairs(cmsgpack.unpack(redis.call('LINDEX', KEYS[i], piece))) do
      if ARGV[1] == '' then redis.call('XADD', KEYS[1], '*', unpack(row))
      else redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[1], '*', unpack(row)) end
      moved = moved + 1
    end
  end
  if redis.call('DEL', KEYS[i]) == 1 then redis.call('LPUSH', KEYS[3], KEYS[i]) end
  redis.call('SREM', KEYS[2], KEYS[i])
end
redis.call('LTRIM', KEYS[3], 0, tonumber(ARGV[2]) - 1)
return moved
"""
#: names of what was moved last that are kept: a commit may come again
_KNOWN_AS_MOVED = 10_000
#: seconds until the server forgets a run that has drained
_KEPT_BEHIND_THE_END = 86_400


class Staging:
    """The staged rows of one sink: lists under names of their own, which a set of the sink's lineage holds."""

    def __init__(self, stream: str, lineage: str, unit: str, maxlen: int | None) -> None:
        self._stream, self._maxlen = stream, maxlen
        self.names = f"esault:{lineage}:{unit}"
        self.moved = f"{self.names}:moved"

    def begin(self, connection: Any) -> bool:
        """Mark the set as there, and to stay; return whether it was marked before."""
        known = not connection.sadd(self.names, "")
        for name in (self.names, self.moved):
            connection.persist(name)
        return known

    def stage(self, connection: Any, rows: Sequence[Sequence[bytes]]) -> str:
        """Store rows, each its fields and their values in turn, and return the name.

        A name of its own each time: what a lost connection leaves behind, and maybe does later, is in no handle.
        """
        name = f"{self.names}:{uuid.uuid4().hex}"
        with connection.pipeline(transaction=True) as all_or_nothing:
            for piece in _pieces(rows):
                all_or_nothing.rpush(name, piece)
            all_or_nothing.sadd(self.names, name)
            all_or_nothing.execute()
        return name

    def move(self, connection: Any, names: Sequence[str]) -> bool:
        """Append what is staged under these names to the stream; return whether the server has kept it."""
        keys = [self._stream, self.names, self.moved, *names]
        return bool(connection.eval(_MOVE, len(keys), *keys, self._maxlen or "", _KNOWN_AS_MOVED) >= 0)

    def forget(self, connection: Any, kept: Iterable[str]) -> None:
        """Delete what is staged, but for these names."""
        gone = {name.decode() for name in connection.smembers(self.names)} - {"", *kept}
        for name in gone:
            with connection.pipeline(transaction=True) as both:
                both.delete(name).srem(self.names, name).execute()

    def end(self, connection: Any) -> None:
        """Delete the set of a run that leaves nothing to go on from."""
        self.forget(connection, ())
        connection.delete(self.names, self.moved)

    def expire(self, connection: Any) -> None:
        """Have the server forget the set of a run that has come to its end: by and by, since its last commit may come again."""
        for name in (self.names, self.moved):
            connection.expire(name, _KEPT_BEHIND_THE_END)


def _pieces(rows: Sequence[Sequence[bytes]]) -> Iterator[bytes]:
    """Yield rows as arrays of arrays of byte strings in MessagePack, which Redis' Lua unpacks."""
    packed: list[bytes] = []
    size = 0
    for row in rows:
        packed.append(b"".join([struct.pack(">BH", 0xDC, len(row)), *(_string(each) for each in row)]))
        size += len(packed[-1])
        if size > _PIECE:
            yield struct.pack(">BI", 0xDD, len(packed)) + b"".join(packed)
            packed, size = [], 0
    if packed:
        yield struct.pack(">BI", 0xDD, len(packed)) + b"".join(packed)


def _string(each: bytes) -> bytes:
    return struct.pack(">BI", 0xDB, len(each)) + each
