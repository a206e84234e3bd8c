"""What a reader of a run's events gets: all that is kept, then what is new."""

from __future__ import annotations

import json
import threading
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

from esault.control.report.summary import HostSnapshot
from esault.control.report.timeline import Page
from esault.messages.change_record import ChangeRecord
from esault.ui.web import history as module
from esault.ui.web.history import History


def record(unit, **more):
    known = {"processed": 5.0, "p50_ms": 1.0, "p99_ms": 2.0, "sub_units": 3, "waiting": 7, "t": 1.0}
    return SimpleNamespace(unit=unit, **{**known, **more})


def read(history):
    """All events up to the end, as (kind, what)."""
    found = []
    for event in b"".join(history.events()).decode().split("\n\n"):
        if event.startswith("event: "):
            kind, data = event.removeprefix("event: ").split("\ndata: ")
            found.append((kind, json.loads(data)))
    return found


def test_a_reader_gets_all_that_is_kept_and_then_the_end():
    history = History()
    change = ChangeRecord(
        at=1.0,
        unit="count",
        kind="rescale",
        before=1,
        after=3,
        reason="late",
        policy="auto",
        moved_keys=10,
        moved_bytes=100,
        held=0.1,
        seconds=0.5,
    )
    history.page(Page(1.0, (record("lines"), record("count", t=2.0)), ((1.5, change),)))
    history.line("count/1", "seen")
    history.see({"topology": "words"})
    history.end(patience=0.0)
    found = dict(read(history))
    assert list(found) == ["window", "change", "line", "snapshot", "end"]
    assert found["window"] == [{"t": 2.0, "units": {"lines": [5.0, 1.0, 2.0, 3, 7], "count": [5.0, 1.0, 2.0, 3, 7]}}]
    assert found["change"][0]["t"] == 1.5 and found["change"][0]["reason"] == "late"
    assert found["line"][0]["text"] == "seen"
    assert found["snapshot"] == {"topology": "words"}


def test_what_comes_later_comes_once_and_to_each_reader(monkeypatch):
    monkeypatch.setattr(module, "BETWEEN", 0.0)
    history = History()
    found: list = []
    readers = [threading.Thread(target=lambda: found.append(read(history))) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(50):
        history.line("", str(number))
    history.end(patience=20)
    for reader in readers:
        reader.join(20)
    for each in found:
        lines = [line["text"] for kind, lines in each if kind == "line" for line in lines]
        assert lines == [str(number) for number in range(50)]
    assert len(found) == 3


def test_a_snapshot_is_encoded_once_for_all_readers(monkeypatch):
    encoded = []
    plain = module._plain
    monkeypatch.setattr(module, "_plain", lambda what: encoded.append(what) or plain(what))
    history = History()
    host = HostSnapshot(4, 1, False, ("count/7",), {"b": 5})
    history.see({"hosts": {"a": host}, "path": Path("x")})
    history.end(patience=0.0)
    assert dict(read(history)) == dict(read(history))
    assert dict(read(history))["snapshot"] == {"hosts": {"a": json.loads(json.dumps(asdict(host)))}, "path": "x"}
    assert len(encoded) == 2


def test_old_lines_go_for_new_ones():
    history = History()
    for number in range(module.LINES + 10):
        history.line("", str(number))
    history.end(patience=0.0)
    lines = dict(read(history))["line"]
    assert [lines[0]["text"], lines[-1]["text"]] == ["10", str(module.LINES + 9)]


def test_a_silent_run_says_that_it_is_still_there(monkeypatch):
    monkeypatch.setattr(module, "SILENCE", 0.01)
    events = History().events()
    assert next(events).startswith(b":")


def test_what_policies_are_tried_on_is_the_load_with_who_sends_to_whom():
    history = History()
    assert history.recorded() == {"units": [], "slots": 0, "windows": []}
    unit = lambda name, kind="bolt", edges=(), chained_to="": SimpleNamespace(
        name=name,
        kind=kind,
        edges=[SimpleNamespace(target=target) for target in edges],
        chained_to=chained_to,
        min_parallelism=1,
        max_parallelism=None,
        dead_letter_paths=("dead.jsonl",),
    )
    units = [unit("lines", "spout", ["count", "count"]), unit("count"), unit("added", chained_to="lines")]
    history.see(SimpleNamespace(units=units, slots=4))
    load = {"arrivals": 1, "processed": 2, "emitted": 3, "busy": 0.5, "sub_units": 1, "lag": None}
    history.page(Page(1.0, (record("lines", **load), record("count", **{**load, "t": 2.0}))))
    history.page(Page(2.0, ()))
    found = history.recorded()
    about = {"least": 1, "most": None}
    assert found["units"] == [
        {"name": "lines", "kind": "spout", "senders": [], **about},
        {"name": "count", "kind": "bolt", "senders": ["lines"], **about},
    ]
    assert (found["slots"], found["windows"]) == (4, [{"t": 2.0, "units": {"lines": load, "count": load}}])
    assert history.dead_letter_paths == ["dead.jsonl"]


def test_windows_and_changes_that_another_process_has_measured_are_told_as_they_are():
    history = History()
    history.window(3.0, {"count": (1.0, None, 2.0, 1, 0)})
    history.change({"t": 3.5, "unit": "count"})
    history.end(patience=0.0)
    found = dict(read(history))
    assert found["window"] == [{"t": 3.0, "units": {"count": [1.0, None, 2.0, 1, 0]}}]
    assert found["change"] == [{"t": 3.5, "unit": "count"}]
