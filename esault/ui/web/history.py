"""The history of one run as the web UI shows it: newest snapshot, timeline and lines, for any number of readers."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from itertools import takewhile
from typing import Any

from esault.control.report.timeline import Page
from esault.payload.json_text import strict_json
from esault.ui.web.thinning import thinned

__all__ = ["History"]

#: windows of the timeline, changes and lines that are kept
WINDOWS, CHANGES, LINES = 3600, 500, 500
#: of the windows, the newest ones that stay as they came; what is older is put together, so that a run of months has room
FINE = 900
#: what is recorded of a unit in a window
_RECORDED = ("arrivals", "processed", "emitted", "busy", "sub_units", "lag")
#: seconds between two snapshots for a reader, and after which one hears that the run is still there
BETWEEN, SILENCE = 0.4, 5.0


class History:
    """Written by the run's view, read by threads of the server. A reader gets all that is kept, then what is new.

    Nothing is encoded before a reader asks: a run without a reader pays for one assignment.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._snapshot: Any = None
        #: the snapshot that was encoded last, and as what, for all readers
        self._encoded: tuple[Any, bytes] = (None, b"")
        #: (number, kind, what), in the order in which they came
        self._kept: dict[str, deque[tuple[int, Any]]] = {
            "window": deque(),
            "change": deque(maxlen=CHANGES),
            "line": deque(maxlen=LINES),
        }
        #: the same windows as they were measured, for who asks what other policies would have done
        self._pages: deque[Page] = deque(maxlen=WINDOWS)
        self._number = 0
        self._readers = 0
        self._ended = threading.Event()

    def see(self, snapshot: Any) -> None:
        """Take the run as it is: a Snapshot, or a dict of what one holds."""
        with self._changed:
            self._snapshot = snapshot
            self._changed.notify_all()

    def page(self, page: Page) -> None:
        """Take a window of the timeline, and the changes that ended in it."""
        units = {
            each.unit: [each.processed, each.p50_ms, each.p99_ms, each.sub_units, each.waiting] for each in page.units
        }
        if page.units:
            self._pages.append(page)
        if units:
            self._add("window", {"t": max(each.t for each in page.units), "units": units})
        for t, change in page.changes:
            self._add("change", {"t": t, **asdict(change)})

    def window(self, t: float, units: Mapping[str, Sequence[float | None]]) -> None:
        """Take what units did until `t`, seconds since tuples began to flow: [tuples/s, p50 ms, p99 ms, sub-units, waiting], None for not known."""
        self._add("window", {"t": t, "units": {name: list(each) for name, each in units.items()}})

    def change(self, change: Mapping[str, Any]) -> None:
        """Take a change that has ended, as the driver tells it."""
        self._add("change", dict(change))

    def recorded(self) -> dict[str, Any]:
        """Return the load so far, of plain values: units with their senders, and for each window what each unit got, did and emitted."""
        with self._changed:
            pages, snapshot = list(self._pages), self._snapshot
        units = (
            [] if snapshot is None or isinstance(snapshot, dict) else [u for u in snapshot.units if not u.chained_to]
        )
        senders: dict[str, list[str]] = {unit.name: [] for unit in units}
        for unit in units:
            for edge in unit.edges:
                senders.setdefault(edge.target, []).append(unit.name)
        return {
            "units": [
                {
                    "name": u.name,
                    "kind": u.kind,
                    "senders": list(dict.fromkeys(senders[u.name])),
                    "least": u.min_parallelism,
                    "most": u.max_parallelism,
                }
                for u in units
            ],
            "slots": 0 if not units else snapshot.slots,
            "windows": [
                {
                    "t": max(each.t for each in page.units),
                    "units": {each.unit: {name: getattr(each, name) for name in _RECORDED} for each in page.units},
                }
                for page in pages
            ],
        }

    @property
    def dead_letter_paths(self) -> list[str]:
        """Return where the units keep dead letters, each once."""
        snapshot = self._snapshot
        units = [] if snapshot is None or isinstance(snapshot, dict) else snapshot.units
        return list(dict.fromkeys(path for unit in units for path in unit.dead_letter_paths))

    def line(self, mark: str, text: str) -> None:
        """Take a line that a process printed, or with an empty mark a notice."""
        self._add("line", {"mark": mark, "text": text, "at": time.time()})

    def end(self, patience: float = 1.0) -> None:
        """The run has ended: readers are told, and let go. Returns when they have heard it, or after `patience` seconds."""
        with self._changed:
            self._ended.set()
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._readers, patience)

    def _add(self, kind: str, what: Any) -> None:
        with self._changed:
            self._number += 1
            kept = self._kept[kind]
            kept.append((self._number, what))
            if kind == "window" and len(kept) > WINDOWS:
                self._kept[kind] = deque(thinned(kept, FINE, WINDOWS))
            self._changed.notify_all()

    def events(self) -> Iterator[bytes]:
        """Yield server-sent events: "window", "change" and "line" with lists of what is new, "snapshot", at last "end"."""
        with self._changed:
            self._readers += 1
        try:
            yield from self._new()
        finally:
            with self._changed:
                self._readers -= 1
                self._changed.notify_all()

    def _new(self) -> Iterator[bytes]:
        seen = 0
        shown: Any = None
        while True:
            with self._changed:
                if self._snapshot is shown and self._number == seen and not self._ended.is_set():
                    self._changed.wait(SILENCE)
                new = {kind: _newer(kept, seen) for kind, kept in self._kept.items()} if self._number > seen else {}
                seen, snapshot, ended = self._number, self._snapshot, self._ended.is_set()
            events = [_event(kind, found) for kind, found in new.items() if found]
            if snapshot is not None and snapshot is not shown:
                events.append(self._as_event(snapshot))
                shown = snapshot
            if ended:
                events.append(_event("end", {}))
            # one write for all; a reader that has gone is found by writing to it
            yield b"".join(events) or b": still there\n\n"
            if ended:
                return
            self._ended.wait(BETWEEN)

    def _as_event(self, snapshot: Any) -> bytes:
        of, event = self._encoded
        if of is not snapshot:
            event = _event("snapshot", snapshot)
            self._encoded = (snapshot, event)
        return event


def _newer(kept: deque[tuple[int, Any]], seen: int) -> list[Any]:
    found = list(takewhile(lambda each: each[0] > seen, reversed(kept)))
    return [what for _, what in reversed(found)]


def _event(kind: str, what: Any) -> bytes:
    return f"event: {kind}\ndata: {strict_json(what, _plain)}\n\n".encode()


def _plain(what: Any) -> Any:
    # `asdict` would copy all that is in it first, which takes five times as long
    return vars(what) if is_dataclass(what) else str(what)
