"""The time-stamp map (Wang et al. 2019): results of pipelines that ran out of order, in the order of one pipeline."""

from __future__ import annotations

from typing import Generic, TypeVar

from esault.errors import UsageError

__all__ = ["TimestampMap"]

V = TypeVar("V")


class TimestampMap(Generic[V]):
    """Buckets of results by window of arrival: F(time) = (time // window) mod buckets.

    A bucket comes out when every pipeline has ended its window, sorted by time and sequence number.
    """

    def __init__(self, window_ms: int, buckets: int, pipelines: int = 1) -> None:
        """`pipelines`: how many must end a window for which `expect` says nothing. Raises UsageError for numbers below 1."""
        if min(window_ms, buckets, pipelines) < 1:
            raise UsageError(
                f"time-stamp map: window of {window_ms} ms, {buckets} buckets, {pipelines} pipelines: each must be 1 or more"
            )
        self._window = window_ms
        self._buckets: list[list[tuple[int, int, V]]] = [[] for _ in range(buckets)]
        self._pipelines = pipelines
        self._expected: dict[int, int] = {}
        self._ended: dict[int, set[int]] = {}
        self._next = 0

    def bucket(self, ms: int) -> int:
        """F: which bucket holds what came at this time."""
        return (ms // self._window) % len(self._buckets)

    def expect(self, window: int, pipelines: int) -> None:
        """Windows may differ in how many pipelines they go through."""
        self._expected[window] = pipelines

    def put(self, ms: int, sequence: int, value: V) -> None:
        """A result of what came at time `ms` with that sequence number.

        Raises BufferError when its window is further ahead than there are buckets (wait until `end` has given some out), and
        UsageError when its window has come out already.
        """
        window = ms // self._window
        if window >= self._next + len(self._buckets):
            raise BufferError(
                f"window {window} is too far ahead: {self._next} is not out, {len(self._buckets)} buckets"
            )
        if window < self._next:
            raise UsageError(f"window {window} is out already: a pipeline delivered after its end of window")
        self._buckets[self.bucket(ms)].append((ms, sequence, value))

    def end(self, pipeline: int, window: int) -> list[tuple[int, int, V]]:
        """The pipeline has delivered all of the window. Returns what may come out, as (time, sequence number, value)."""
        self._ended.setdefault(window, set()).add(pipeline)
        out: list[tuple[int, int, V]] = []
        while len(self._ended.get(self._next, ())) == self._expected.get(self._next, self._pipelines):
            self._ended.pop(self._next, None)
            self._expected.pop(self._next, None)
            at = self._next % len(self._buckets)
            out += sorted(self._buckets[at], key=lambda kept: kept[:2])
            self._buckets[at] = []
            self._next += 1
        return out
