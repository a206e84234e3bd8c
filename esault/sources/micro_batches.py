"""A spout's tuples in windows, cut into slices by the clock, which go on in the order in which they are released.

Positions are exact although slices overtake each other: a position says where the oldest window that has not wholly gone out
begins, and which of the rows behind it have. A successor reads from there and passes over those.

It is one module of over 300 lines: reading, slicing, releasing and seeking keep one account of windows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, KeysView, Sequence, ValuesView
from dataclasses import dataclass, field
from math import ceil
from typing import Any, ClassVar, TypeVar

from esault.errors import SourceError, TopologyError
from esault.topology.columns import Columns
from esault.topology.context import Context
from esault.topology.split_source import refuse_splits
from esault.topology.spout import EndOfStream, Spout, SpoutAround, has_position
from esault.topology.windowed_spout import WindowedSpout

__all__ = ["MicroBatches"]

K = TypeVar("K")
V = TypeVar("V")

#: tuples that are asked for at once, and how often in a row
READ_ROWS, READS = 1024, 16
#: seconds until a spout that had nothing is asked again
NAP = 0.001
#: lengths of a window for which a closed one waits to be released
PATIENCE = 2.0


@dataclass
class _Piece:
    """Rows that came together; `first`: the number of the first one, in order of arrival."""

    rows: Any
    first: int
    due: float


@dataclass
class _Slice:
    number: int
    pieces: deque[_Piece] = field(default_factory=deque)
    rows: int = 0


@dataclass
class _Window:
    number: int
    start: float
    end: float
    #: where the source stood before its first row, and that row's number
    position: Any
    first: int
    #: not released, by number
    held: dict[int, _Slice] = field(default_factory=dict)
    #: rows that were read, and those that have not gone out
    read: int = 0
    left: int = 0
    closed_at: float = 0.0


class MicroBatches(SpoutAround[K, V], WindowedSpout[K, V]):
    """Collects the tuples of `spout` in windows of `window` seconds, and emits a window when it has closed.

    Within a window tuples are collected in slices of `slice` seconds by the engine's clock (by when they were due, where the
    spout says that). A policy with pipelines (`orientstream:pipelines=yes`) releases slices in an order of its own, so that
    those that need the same parallelism follow each other; it must not matter to the topology that keys come out of order
    within a window. Without a release, a window goes on as it came when it closes, and one that has waited for two
    windows goes on in any case. A window also closes when it has `rows` tuples. No more is read than one window that waits
    and one that is being collected.

    It can go on after a restart if `spout` can, and gives its rows in the same order again; else checkpoints keep what it read. Latency counts from when a tuple was due, or was read.
    """

    delivery_guarantee: ClassVar[str] = "as the source in it"
    #: logs under the name of the spout in it
    stands_for_another: ClassVar[bool] = True

    def __new__(cls, spout: Any = None, *arguments: Any, **named: Any) -> MicroBatches[Any, Any]:
        # whether a spout can go on after a restart shows in its class
        # and its position counts rows: those of a spout that gives them in another order cannot be passed over
        seeking = cls is MicroBatches and isinstance(spout, Spout) and has_position(spout) and spout.ordered
        return super().__new__(_MicroBatchesOn if seeking else cls)

    def __init__(self, spout: Spout[K, V], window: float = 1.5, slice: float = 0.05, *, rows: int = 100_000) -> None:
        given: object = spout
        if not isinstance(given, Spout):
            made = f"{given.__name__}(...)" if isinstance(given, type) else "an object of a class derived from Spout"
            raise TopologyError(f"MicroBatches: {given!r} is no spout; pass {made}")
        refuse_splits("MicroBatches", spout)
        if not spout.seekable:
            raise TopologyError(
                f"MicroBatches: {type(spout).__name__} cannot seek and waits to be told what is durable (seekable = False), and what "
                "waits in a window would not be; leave MicroBatches out"
            )
        for name, value in (("window", window), ("slice", slice)):
            if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0.001 <= value < float("inf"):
                raise TopologyError(f"MicroBatches: {name}={value!r}: write a number of seconds of at least 0.001")
        if slice > window:
            raise TopologyError(f"MicroBatches: slice={slice:g} must not be longer than window={window:g}")
        if not isinstance(rows, int) or isinstance(rows, bool) or rows < 1:
            raise TopologyError(f"MicroBatches: rows={rows!r}: write a number of tuples of at least 1")
        self.spout = spout
        self.parallel = spout.parallel  # type: ignore[misc]  # as the spout within, object by object
        self.reads_command, self.takes_ahead = spout.reads_command, spout.takes_ahead
        self.moving_start = spout.moving_start
        self.window, self.slice = float(window), float(slice)
        self._most = rows
        #: number of the next row, and where the source stands before it
        self._next = 0
        self._behind: Any = None
        self._number = -1
        self._open: _Window | None = None
        self._closed: _Window | None = None
        self._out: deque[_Slice] = deque()
        #: numbers of rows that have gone out and are not behind the position yet, as sorted ranges from .. to before
        self._gone: list[tuple[int, int]] = []
        #: of the last read: number of its first row, and when that was due
        self._first = 0
        self._due: float | None = None
        #: a policy releases windows
        self._guided = False
        self._draining = self._ended = False
        self._ask_at = 0.0

    def check(self) -> None:
        """As the spout within."""
        self.spout.check()

    def open(self, context: Context) -> None:
        """Opens the spout within."""
        self.context = self.spout.context = context
        self.spout.open(context)

    # reading ---------------------------------------------------------------------------------------

    def collect(self) -> None:
        """Read what the spout within has; the engine calls it also when it takes no tuples, so that slices tell the rate."""
        now = self.context.now()
        self._turn(now)
        if now < self._ask_at:
            return
        for _ in range(READS):
            window = self._open
            if self._ended or (window is not None and self._full(window, now)):
                break
            try:
                rows = self.spout.read(READ_ROWS)
            except EndOfStream:
                self._ended = True
                break
            if rows is None:
                raise SourceError(
                    f"MicroBatches: {type(self.spout).__name__}.read returned None; return a list of (key, value) pairs, "
                    "[] when there is nothing yet"
                )
            if not len(rows):
                self._ask_at = now + NAP
                break
            self._take(rows, now)
            self._turn(now)
        self._turn(now)

    def caught_up(self) -> bool:
        """As the spout within, once nothing waits here."""
        return not (self._open or self._closed or self._out) and self.spout.caught_up()

    def _full(self, window: _Window, now: float) -> bool:
        return now >= window.end or window.read >= self._most

    def _take(self, rows: Sequence[tuple[K, V]] | Columns, now: float) -> None:
        due = self.spout.due()
        window = self._open
        if window is None:
            index = int(now // self.window)
            self._number = max(self._number + 1, index)
            start = index * self.window
            window = self._open = _Window(self._number, start, start + self.window, self._behind, self._next)
        last = max(0, ceil(self.window / self.slice - 1e-6) - 1)
        at = now if due is None else min(due, now)
        number = min(max(0, int((at - window.start) / self.slice)), last)
        first = self._next
        self._next += len(rows)
        self._behind = self._stands()
        window.read += len(rows)
        for low, high in self._not_gone(first, self._next):
            kept = window.held.setdefault(number, _Slice(number))
            kept.pieces.append(_Piece(_cut(rows, low - first, high - first), low, at))
            kept.rows += high - low
            window.left += high - low

    def _stands(self) -> Any:
        """Return the position of the spout within."""
        return None

    def _turn(self, now: float) -> None:
        """Close what is full when there is room; let go what is not released."""
        window = self._open
        if self._closed is None and window is not None and (self._ended or self._full(window, now)):
            self._open, self._closed = None, window
            window.closed_at = now
            window.held = dict(sorted(window.held.items()))
            self._settle()
        closed = self._closed
        if closed is None or not closed.held:
            return
        if now >= closed.closed_at + PATIENCE * self.window:
            self._guided = False
        if not self._guided or self._draining:
            self._out.extend(closed.held.values())
            closed.held = {}

    def read(self, limit: int) -> Sequence[tuple[K, V]] | Columns:
        """Up to `limit` of the tuples that were released. Raises EndOfStream when the spout within did and all has gone out."""
        self.collect()
        while self._out:
            if self._out[0].pieces:
                rows: Sequence[tuple[K, V]] | Columns = self._emit(self._out[0].pieces, limit)
                return rows
            self._out.popleft()
        self._due = None
        if self._ended and self._open is None and self._closed is None:
            raise EndOfStream
        return []

    def _emit(self, pieces: deque[_Piece], limit: int) -> Any:
        piece = pieces[0]
        rows, count = piece.rows, len(piece.rows)
        self._first, self._due = piece.first, piece.due
        if count > limit:
            rows, piece.rows = _cut(rows, 0, limit), _cut(rows, limit, count)
            piece.first += limit
        else:
            pieces.popleft()
            if not isinstance(rows, Columns):
                rows = list(rows)
                while pieces and pieces[0].first == self._first + len(rows):
                    more = pieces[0].rows
                    if isinstance(more, Columns) or len(rows) + len(more) > limit:
                        break
                    rows += more
                    pieces.popleft()
        if not pieces:
            self._out.popleft()
        self._went(self._first, self._first + len(rows))
        assert self._closed is not None
        self._closed.left -= len(rows)
        self._settle()
        return rows

    def first(self) -> int:
        """The number of the first row of the last read in order of arrival; those of a read follow each other."""
        return self._first

    def due(self) -> float | None:
        """Return the time at which the first tuple of the last read was due, or was read from the spout within; None if it gave none."""
        return self._due

    # releasing -------------------------------------------------------------------------------------

    def closed(self) -> tuple[int, tuple[tuple[int, int], ...]] | None:
        """The window that has closed and waits: (number, ((slice, rows), ...)), without what was released; None: there is none."""
        window = self._closed
        if window is None or not window.held:
            return None
        return window.number, tuple((each.number, each.rows) for each in window.held.values())

    def release(self, window: int, slices: Sequence[int]) -> None:
        """These slices go on, in this order. What is not there (any more) is passed over.

        A caller, even for nothing, is waited for from then on.
        """
        self._guided = True
        closed = self._closed
        if closed is not None and closed.number == window:
            self._out.extend(closed.held.pop(number) for number in dict.fromkeys(slices) if number in closed.held)

    def emitting(self) -> bool:
        """Return whether something was released and has not been read."""
        return bool(self._out)

    def halt(self) -> Any:
        """Collect what the spout within has taken, however much a window holds; then read no more from it."""
        rest = self.spout.halt()
        now = self.context.now()
        while not self._ended:
            try:
                rows = self.spout.read(READ_ROWS)
            except EndOfStream:
                break
            if not len(rows):
                break
            self._take(rows, now)
        self.drain()
        return rest

    def begin_with(self, rest: Any) -> None:
        """As the spout within."""
        self.spout.begin_with(rest)

    def drain(self) -> None:
        """Read no more from the spout within: what was collected goes on, then the stream ends."""
        self._draining = self._ended = True

    # where it stands -------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Forget what is behind the position."""
        if self._closed is not None and not self._closed.left:
            self._closed = None
        oldest = self._closed or self._open
        behind = self._next if oldest is None else oldest.first
        while self._gone and self._gone[0][1] <= behind:
            del self._gone[0]

    def _went(self, low: int, high: int) -> None:
        """Rows of these numbers have gone out."""
        at = bisect_left(self._gone, (low, high))
        if at < len(self._gone) and self._gone[at][0] == high:
            high = self._gone.pop(at)[1]
        if at and self._gone[at - 1][1] == low:
            low = self._gone.pop(at - 1)[0]
            at -= 1
        self._gone.insert(at, (low, high))

    def _not_gone(self, low: int, high: int) -> Iterator[tuple[int, int]]:
        """Yield those of these numbers that have not gone out, as ranges."""
        for a, b in self._gone:
            if b <= low:
                continue
            if a >= high:
                break
            if a > low:
                yield low, a
            low = b
        if low < high:
            yield low, high

    def commit(self, position: Any) -> None:
        """The spout within may forget what is before the oldest window that has not wholly gone out."""
        if position is None or position[0] is not None:
            self.spout.commit(None if position is None else position[0])


class _MicroBatchesOn(MicroBatches[K, V]):
    """Around a spout that can go on after a restart."""

    def _stands(self) -> Any:
        return self.spout.position()

    def position(self) -> tuple[Any, int, tuple[tuple[int, int], ...]]:
        """(the spout's position before the oldest window that has not wholly gone out, rows before it, rows behind it that have)."""
        oldest = self._closed or self._open
        before = (self._behind, self._next) if oldest is None else (oldest.position, oldest.first)
        return (*before, tuple(self._gone))

    def seek(self, position: Any) -> None:
        """Read from there, and pass over what has gone out. Raises SourceError for a position of another spout."""
        try:
            self._behind, self._next, gone = position
            self._gone = [(low, high) for low, high in gone]
        except (TypeError, ValueError):
            raise SourceError(
                f"MicroBatches: an earlier run has left the position {position!r}, which is none of its own: read the source as "
                "that run did, or start anew (--restart)"
            ) from None
        if self._behind is not None:
            self.spout.seek(self._behind)


_MicroBatchesOn.__name__ = _MicroBatchesOn.__qualname__ = "MicroBatches"


def _cut(rows: Any, low: int, high: int) -> Any:
    if isinstance(rows, Columns):
        keys, values = _sliced(rows.keys), _sliced(rows.values)
        return Columns(None if keys is None else keys[low:high], values[low:high])
    return rows if low == 0 and high == len(rows) else rows[low:high]


def _sliced(column: Any) -> Any:
    """The column as one that can be sliced, which views of a dict and a deque cannot."""
    return tuple(column) if isinstance(column, (KeysView, ValuesView, deque)) else column
