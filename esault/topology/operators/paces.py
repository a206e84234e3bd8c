"""The bolts behind `throttle`, `debounce` and `batch`: when the tuples of a key go on."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable
from typing import Any

from esault.topology.bolt import Bolt
from esault.topology.operators.distinct import LATE

__all__ = ["THROTTLED", "Batches", "Debounce", "DebounceByEvent", "Throttle"]

#: the stream of tuples that were more than `throttle` lets through
THROTTLED = "throttled"


class Throttle(Bolt[Any, Any, Any, Any]):
    """It lets `count` tuples of a key through in any `seconds`; `time` gives a value's time, None: the clock does.

    A tuple of event time is judged exactly up to `seconds` behind the watermark; a later one goes to the stream "late".
    """

    __slots__ = ("count", "seconds", "time", "times")

    def __init__(self, count: int, seconds: float, time: Callable[[Any], float] | None) -> None:
        self.count = count
        self.seconds = seconds
        self.time = time
        #: of those that were let through and still count, in order
        self.times: list[float] = []

    def process(self, key: Any, value: Any) -> None:
        """Emit the value, or send it to the stream "throttled"."""
        seconds, times = self.seconds, self.times
        if self.time is None:
            at = self.context.now()
            kept = at - seconds
        else:
            at, late = self.time(value), self.context.watermark(key) - seconds
            if at < late:
                self.emit(key, value, LATE)
                return
            kept = late - seconds
        # By differences, whose rounding decides as it does wherever two times are compared; the order stays.
        first = bisect_left(times, True, key=lambda time: at - time < seconds)
        last = len(times)
        if times and times[-1] > at:
            last = bisect_left(times, True, key=lambda time: time - at >= seconds)
        if last - first >= self.count:
            self.emit(key, value, THROTTLED)
            return
        del times[: bisect_right(times, kept)]
        insort(times, at)
        self.emit(key, value)

    def __getstate__(self) -> dict[str, Any]:
        return {"times": tuple(self.times)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.times = sorted(state["times"])


class Debounce(Bolt[Any, Any, Any, Any]):
    """It emits the last value of a key when nothing has come for `seconds` by the clock, or the stream has ended."""

    __slots__ = ("last", "seconds")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.last: tuple[Any, ...] = ()

    def process(self, key: Any, value: Any) -> None:
        """Wait anew."""
        self.last = (value,)
        self.timer("quiet", self.context.now() + self.seconds, by="processing")

    def on_timer(self, name: str, at: float) -> None:
        """Emit the last value."""
        self.finish()

    def finish(self) -> None:
        """Emit what waits, after which there is nothing to keep."""
        if self.last:
            self.emit(self.key, self.last[0])
            self.clear_state()

    def __getstate__(self) -> dict[str, Any]:
        return {"last": self.last}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.last = tuple(state["last"])


class DebounceByEvent(Bolt[Any, Any, Any, Any]):
    """It emits each value that no other one follows within `seconds` of event time; of those of one time the last that came.

    Of one that comes more than `seconds` behind the watermark it is not known any more what followed: it goes to the stream "late".
    """

    __slots__ = ("pending", "seconds", "time")

    def __init__(self, seconds: float, time: Callable[[Any], float]) -> None:
        self.seconds = seconds
        self.time = time
        #: name of its timer -> time and value, of those of which it is not known yet
        self.pending: dict[str, tuple[float, Any]] = {}

    def process(self, key: Any, value: Any) -> None:
        """Keep it until it is known what followed."""
        at = self.time(value)
        if type(at) is not int:
            at = float(at)  # a Decimal and a float have no sum
        if at < self.context.watermark(key) - self.seconds:
            self.emit(key, value, LATE)
            if not self.pending:
                self.clear_state()
            return
        name = repr(float(at) + 0.0)  # 1 and 1.0 are one time, as are 0.0 and -0.0
        self.pending[name] = (at, value)
        self.timer(name, at + self.seconds)

    def on_timer(self, name: str, at: float) -> None:
        """Emit the value whose seconds are over, if nothing came in them."""
        time, value = self.pending.pop(name)
        if not any(time < other < at for other, _ in self.pending.values()):
            self.emit(self.key, value)
        if not self.pending:
            self.clear_state()

    def __getstate__(self) -> dict[str, Any]:
        return {"pending": self.pending}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.pending = dict(state["pending"])


class Batches(Bolt[Any, Any, Any, Any]):
    """It emits the values of a key as lists: of `count` of them, or of what came within `seconds` of the first one."""

    __slots__ = ("count", "rows", "seconds")

    def __init__(self, count: int, seconds: float | None) -> None:
        self.count = count
        self.seconds = seconds
        self.rows: list[Any] = []

    def process(self, key: Any, value: Any) -> None:
        """Take one more."""
        self.rows.append(value)
        if len(self.rows) >= self.count:
            self.finish()
        elif len(self.rows) == 1 and self.seconds is not None:
            self.timer("over", self.context.now() + self.seconds, by="processing")

    def on_timer(self, name: str, at: float) -> None:
        """Emit what there is."""
        self.finish()

    def finish(self) -> None:
        """Emit what there is, after which there is nothing to keep."""
        if self.rows:
            self.emit(self.key, self.rows)
            self.clear_state()

    def __getstate__(self) -> dict[str, Any]:
        return {"rows": self.rows}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.rows = list(state["rows"])
