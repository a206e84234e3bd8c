"""Bolts: what processes tuples."""

from __future__ import annotations

from collections.abc import KeysView, Sequence, ValuesView
from typing import Any, Generic, TypeVar

from esault.payload.attributes import get_attributes, set_attributes
from esault.topology.broadcast_state import BroadcastState
from esault.topology.columns import Array
from esault.topology.context import Context
from esault.topology.pane import ONLY_PANE, Pane

__all__ = ["BatchBolt", "Bolt"]

KI = TypeVar("KI")
VI = TypeVar("VI")
KO = TypeVar("KO")
VO = TypeVar("VO")


class Bolt(Generic[KI, VI, KO, VO]):
    """One object per key (or per sub-unit, see the groupings). Its attributes are that key's state.

    The engine keeps its own things out of `vars(self)`: `key` and `window` are slots, `emit` and
    `context` belong to the class that the engine derives for each unit.
    """

    __slots__ = ("key", "window")

    #: the key this object stands for; None where there is one object per sub-unit
    key: KI
    #: the window this object stands for, with `.start` and `.end`; outside windows an attribute of one's own, if it is set
    window: Any

    #: in `finish` of a window: which of its results is to be emitted; see docs/how-to/windows.md
    pane: Pane = ONLY_PANE

    #: where the object runs; set by the engine on the class
    context: Context
    #: what `process_broadcast` has made of the tuples that all sub-units get; read-only in all other hooks
    broadcast_state: BroadcastState

    def process(self, key: KI, value: VI, /) -> Any:
        """Called for each tuple. May be `async def`, and then all hooks may; see docs/how-to/call-services.md."""
        raise NotImplementedError(f"{type(self).__name__} must define process(key, value)")

    def process_stream(self, stream: str, key: KI, value: VI, /) -> Any:
        """Called for each tuple in place of `process`, where several inputs meet; `stream` names the sender."""
        return self.process(key, value)

    def process_broadcast(self, key: Any, value: Any, /) -> None:
        """Called in each sub-unit for each tuple of an input by broadcast() beside inputs by_key(); changes `self.broadcast_state`.

        `self` stands for no key here, and may not emit; see docs/how-to/rules-that-change.md.
        """
        raise NotImplementedError(f"{type(self).__name__} must define process_broadcast(key, value)")

    def process_broadcast_stream(self, stream: str, key: Any, value: Any, /) -> None:
        """Called in place of `process_broadcast`, where several inputs come by broadcast(); `stream` names the sender."""
        self.process_broadcast(key, value)

    def open(self, context: Context, /) -> Any:
        """Called after the object is made or restored, for connections and the like."""

    def open_shared(self, context: Context, /) -> Any:
        """Open what all objects of a sub-unit share, such as a client: called once there, before the first `open`.

        It is called on an object that may have no key, before the first tuple comes; where it is `async def`, with that.

        What it returns is `self.context.shared` in all of them. May be `async def` where `process` is.
        """

    def close_shared(self, shared: Any, /) -> Any:
        """Close what `open_shared` returned: the sub-unit stops. Called on the object that opened it; not called in a crash."""

    def tick(self, now: float, /) -> Any:
        """Called every `tick_every` seconds; `now` in seconds since the epoch."""

    def on_timer(self, name: str, at: float, /) -> Any:
        """Called when a timer is due that `timer` has set; see docs/how-to/timers.md."""

    def finish(self) -> Any:
        """The key's life is over: spouts ended, window closed, expired. May emit."""

    def close(self) -> Any:
        """The object leaves this process: moved, idle, stopped. May not emit; not called in a crash."""

    def emit(self, key: KO, value: VO, stream: str | None = None) -> None:
        """Send a tuple on, to the main stream or to a declared one beside it."""
        raise RuntimeError(
            f"{type(self).__name__}.emit: this object is not part of a running topology "
            "(emit works in process, tick and finish, not in __init__, open or close)"
        )

    def timer(self, name: str, at: float, by: str = "event") -> None:
        """Set a timer of this key: `on_timer(name, at)` is called then, `at` in seconds since the epoch.

        By "event" it is due when all tuples before `at` have come, by "processing" when the clock says so. A timer of the
        same name is replaced. Raises RuntimeError where the bolt has no `on_timer`, or its tuples no event time.
        """
        raise RuntimeError(
            f"{type(self).__name__}.timer: timers are for bolts by by_key() or single() that define on_timer(self, name, at), "
            "in process, tick and on_timer"
        )

    def cancel_timer(self, name: str) -> None:
        """Take back the timer of this name, if there is one."""
        raise RuntimeError(
            f"{type(self).__name__}.cancel_timer: timers are for bolts by by_key() or single() that define "
            "on_timer(self, name, at), in process, tick and on_timer"
        )

    def clear_state(self) -> None:
        """Forget the state of this key, and its timers: its next tuple finds a fresh object.

        `finish` is not called, `close` is when the call is over. What is set on `self` behind it is lost. It works in bolts
        by by_key(); see docs/how-to/keep-state.md. Raises RuntimeError anywhere else.
        """
        raise RuntimeError(
            f"{type(self).__name__}.clear_state: it works in bolts by by_key(), in process, tick, on_timer and finish, where an object "
            "stands for a key"
        )

    def __getstate__(self) -> Any:
        """Return the state that moves and is saved: all attributes, of which resources are left out, unless overridden."""
        return get_attributes(self)

    def __setstate__(self, state: Any) -> None:
        """Put a saved state into an object fresh from the factory."""
        set_attributes(self, state)


class BatchBolt(Generic[KI, VI, KO, VO]):
    """For speed: one object per sub-unit that sees whole batches, as rows or as columns.

    `self.keyed` is a dict by key: it is divided and moved when parallelism changes, entry by entry. Its keys and values
    are plain Python objects, as those of tuples.
    """

    #: the state of each key; made by the engine before `open`
    keyed: dict[KI, Any]
    #: where the object runs; set by the engine
    context: Context

    def process_batch(self, rows: Sequence[tuple[KI, VI]], /) -> None:
        """Called with a batch of (key, value) pairs."""
        raise NotImplementedError(f"{type(self).__name__} must define process_batch(rows)")

    def process_batch_stream(self, stream: str, rows: Sequence[tuple[KI, VI]], /) -> None:
        """Called in place of `process_batch`, where several inputs meet; `stream` names the sender."""
        self.process_batch(rows)

    def process_columns(self, keys: Any, values: Any, /) -> None:
        """Called in place of `process_batch`, where a class defines it, with two columns of one length.

        What was emitted as an array comes as that: a NumPy array with one dimension, a pyarrow Array or, of values, a
        RecordBatch; not to be changed. All else comes as a tuple or a list. A batch has columns of one kind from one
        `emit_columns`, or the rows of one root.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must define process_batch(rows) or process_columns(keys, values)"
        )

    def process_columns_stream(self, stream: str, keys: Any, values: Any, /) -> None:
        """Called in place of `process_columns`, where several inputs meet; `stream` names the sender."""
        self.process_columns(keys, values)

    def open(self, context: Context, /) -> None:
        """Called after the object is made."""

    def tick(self, now: float, /) -> None:
        """Called every `tick_every` seconds; `now` in seconds since the epoch."""

    def finish(self) -> None:
        """The spouts have ended. May emit."""

    def close(self) -> None:
        """The object leaves this process. May not emit; not called in a crash."""

    def emit_batch(self, rows: Sequence[tuple[KO, VO]], stream: str | None = None) -> None:
        """Send tuples on."""
        raise RuntimeError(
            f"{type(self).__name__}.emit_batch: this object is not part of a running topology "
            "(it works in process_batch, tick and finish, not in __init__, open or close)"
        )

    def emit_columns(
        self,
        keys: Sequence[KO] | KeysView[KO] | ValuesView[KO] | Array | None,
        values: Sequence[VO] | KeysView[VO] | ValuesView[VO] | Array,
        stream: str | None = None,
    ) -> None:
        """Send tuples on, whose keys stand in one column and whose values in another of the same length.

        A column is a sequence, a view of a dict (`keys()`, `values()`), a NumPy array with one dimension or a pyarrow Array; values may be a RecordBatch, whose rows
        are dicts; keys may be None: tuples without a key. Arrays stay arrays until single tuples are needed, and must
        not be changed any more. Keys in arrays: bool, integers, bytes and str. Raises PayloadError, with the remedy.
        """
        raise RuntimeError(
            f"{type(self).__name__}.emit_columns: this object is not part of a running topology "
            "(it works in process_batch, process_columns, tick and finish, not in __init__, open or close)"
        )


def takes_columns(cls: type) -> bool:
    """Return whether this class of a BatchBolt is given columns."""
    return any(
        getattr(cls, name) is not getattr(BatchBolt, name) for name in ("process_columns", "process_columns_stream")
    )
