"""The `self.emit` of a bolt: it appends to the columns of the unit's streams, nothing more.

The first emits of a unit are checked one by one, so that a value that cannot travel is refused in the very call
that emits it. After that only whole frames are checked, when they are packed: a check costs more than an emit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

from esault.errors import PayloadError, TopologyError
from esault.flow.channel.refused_key import refused_key
from esault.flow.delivery.roots import Payload
from esault.payload.codec import Codec

__all__ = ["Emitter", "Out"]

#: ordinals whose text is kept
_MOST_ENDINGS = 1024
#: values that were emitted last and may be found to have changed
WATCHED = 64
#: so many of them are looked at again in a turn, and as many more for each new one: a turn with one tuple costs little
AGAIN = 8
_PLAIN = (str, bytes, int, float, bool, type(None))


class Out:
    """Columns of one stream, filled while a batch is processed. The lists stay the same objects."""

    __slots__ = ("_endings", "ids", "keys", "stream", "tag", "values")

    def __init__(self, stream: str, tag: str) -> None:
        self.stream = stream
        #: stands before the ordinal in the ids of this stream's rows
        self.tag = tag
        self.keys: list[Any] = []
        self.values: list[Any] = []
        self.ids: list[str] = []
        #: the tag and each ordinal, as far as they were needed
        self._endings: list[str] = []

    def name(self, parent: str, count: int) -> None:
        """Give ids to the last `count` rows: the parent's, and the ordinal of the emit."""
        endings = self._endings
        if count > len(endings):
            if count > _MOST_ENDINGS:
                prefix = parent + self.tag
                self.ids += [f"{prefix}{i}" for i in range(count)]
                return
            endings += [f"{self.tag}{i}" for i in range(len(endings), count)]
        self.ids += [parent + ending for ending in islice(endings, count)]


class Emitter:
    """The streams of one unit in one sub-unit, and the emit functions that fill them."""

    def __init__(self, unit: str, streams: Iterable[str], checked: int, watch: bool, codec: Codec) -> None:
        self._unit = unit
        #: stream name -> columns; "" is the main stream
        self.outs = {s: Out(s, "." if not s else f".{s}-") for s in ("", *sorted(set(streams) - {""}))}
        self._all = list(self.outs.values())
        self._main = self.outs[""]
        self._left = checked
        self._watching = watch
        self._codec = codec
        #: values that were emitted last, so many of which have been looked at, and where among those it goes on
        self._watched: list[tuple[Any, Any, bytes]] = []
        self._looked_at = self._again_at = 0
        #: blocks of arrays by stream, see BatchEmitter
        self.arrays: dict[str, list[Any]] = {}
        #: called once when the checked emits are used up, to put the fast function in place
        self.on_trusted: Callable[[], None] | None = None

    @property
    def watching(self) -> bool:
        """Return whether values that are changed after their emit are looked for."""
        return self._watching

    @property
    def trusted(self) -> bool:
        """Return whether emits are no longer checked one by one."""
        return self._left <= 0 and not self._watching

    def rows(self) -> int:
        """Rows in all columns."""
        return sum([len(out.keys) for out in self._all])

    @property
    def only_column(self) -> list[Any] | None:
        """The keys of the rows in all columns, while there is one stream; None where there are more."""
        return self._main.keys if len(self._all) == 1 else None

    @property
    def two_columns(self) -> tuple[list[Any], list[Any]] | None:
        """The keys of the rows in all columns, while there are at most two streams; None where there are more."""
        return (self._main.keys, self._all[-1].keys if len(self._all) == 2 else []) if len(self._all) <= 2 else None

    def marks(self) -> list[int]:
        """Lengths of the columns, for `rewind` and `name`."""
        return [len(out.keys) for out in self._all]

    def rewind(self, marks: Sequence[int]) -> None:
        """Forget what was emitted since."""
        for out, mark in zip(self._all, marks):
            del out.keys[mark:], out.values[mark:]

    def name(self, marks: Sequence[int], parent: str) -> None:
        """Give ids to what was emitted since: the parent's, and the ordinal of the emit."""
        for out, mark in zip(self._all, marks):
            out.name(parent, len(out.keys) - mark)

    def namer(self) -> Callable[[str], None]:
        """`name` for one tuple after the other, without marks: call it with the parent's id after each tuple."""
        streams = [(out, out.keys, out.ids, out.tag + "0") for out in self._all]

        def name(parent: str) -> None:
            for out, keys, ids, first in streams:
                count = len(keys) - len(ids)
                if count == 1:
                    ids.append(parent + first)
                elif count:
                    out.name(parent, count)

        return name

    def name_each(self, parents: Sequence[str], ends: Sequence[int]) -> None:
        """`name` for the tuples of a batch, where there is `only_column`: `ends` are its lengths behind each of them.

        To call `name` behind each tuple costs as much as many a `process`.
        """
        out = self._main
        before = len(out.ids)
        if ends == list(range(before + 1, before + 1 + len(ends))):  # each emitted one
            first = out.tag + "0"
            out.ids += [parent + first for parent in parents]
            return
        for parent, end in zip(parents, ends):
            if end != before:
                out.name(parent, end - before)
                before = end

    def pop_emitted(self, with_ids: bool) -> Payload:
        """Return what stands in the columns, as a payload; the columns are empty afterwards."""
        payload: Payload = self.pop_arrays(with_ids) if self.arrays else []
        for stream, out in self.outs.items():
            if out.keys:
                ids = out.ids.copy() if with_ids else None
                payload.append((stream, tuple(out.keys), tuple(out.values), ids))
                out.keys.clear()
                out.values.clear()
                out.ids.clear()
        return payload

    def pop_arrays(self, with_ids: bool) -> Payload:
        """See BatchEmitter."""
        return []

    def function(self) -> Callable[..., None]:
        """`emit(self, key, value, stream=None)` for a Bolt's class."""
        outs, main = self.outs, self.outs[""]
        # `append` is looked up on a list at each call: the interpreter has an instruction for that, and none for a bound one.
        keys, values = main.keys, main.values

        def emit(self: Any, key: Any, value: Any, stream: str | None = None) -> None:
            if stream is None:
                keys.append(key)
                values.append(value)
            else:
                out = self_emitter.stream(stream)
                out.keys.append(key)
                out.values.append(value)

        def checked_emit(self: Any, key: Any, value: Any, stream: str | None = None) -> None:
            out = main if stream is None else self_emitter.stream(stream)
            self_emitter.check(key, value)
            out.keys.append(key)
            out.values.append(value)

        self_emitter = self
        assert outs
        chosen = emit if self.trusted else checked_emit
        # what Python calls it where it was called with too little
        chosen.__name__, chosen.__qualname__ = "emit", "Bolt.emit"
        return chosen

    def stream(self, name: str) -> Out:
        """The columns of a declared stream. Raises TopologyError."""
        try:
            return self.outs[name]
        except KeyError:
            known = ", ".join(repr(s) for s in self.outs if s) or "none"
            raise TopologyError(
                f"unit {self._unit!r} emitted to the stream {name!r}, which it does not declare (declared: {known}); "
                f"add streams=({name!r},) where the unit is made"
            ) from None

    def check(self, key: Any, value: Any) -> None:
        """Refuse what cannot travel. Raises PayloadError."""
        if key is not None:
            refused = refused_key(self._unit, key)
            if refused is not None:
                raise refused
        if type(value) not in _PLAIN:
            try:
                packed = self._codec.pack_value(value)
            except PayloadError as error:
                raise PayloadError(
                    f"unit {self._unit!r} emitted a tuple with key {key!r} whose value is refused: {error}"
                ) from None
            if self._watching:
                self._watched.append((key, value, packed))
        if self._left > 0:
            self._left -= 1
            if self.trusted and self.on_trusted is not None:
                self.on_trusted()

    def check_unchanged(self) -> None:
        """Find values that were changed after they were emitted: new ones, and some of those before, in turn. Raises PayloadError."""
        watched, known = self._watched, self._looked_at
        new = watched[known:]
        again = min(known, AGAIN * (1 + len(new)))
        for place in range(self._again_at, self._again_at + again):
            self._check_one(*watched[place % known])
        for each in new:
            self._check_one(*each)
        gone = max(0, len(watched) - WATCHED)
        del watched[:gone]
        self._looked_at = len(watched)
        self._again_at = max(0, self._again_at + again - gone) % max(1, known)

    def _check_one(self, key: Any, value: Any, packed: bytes) -> None:
        if self._codec.pack_value(value) != packed:
            raise PayloadError(
                f"unit {self._unit!r} changed a value of type {type(value).__name__} after it had emitted it for key "
                f"{key!r}; emit a copy (a tuple of it, dict(...), or copy.deepcopy)"
            )
