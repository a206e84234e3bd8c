"""What a job reads next, over histories of a table: together its steps read each row that is there, and none twice."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esault.errors import SinkError
from esault.sinks.landing.entry import Entry, Input, Part
from esault.sinks.landing.schema import Column
from esault.sinks.landing.state import TableState
from esault.spark.reading import noted, read_next, read_of

SCHEMA = (Column("word", "string"),)


@dataclass
class History:
    """The log of a table, in memory; `oldest`: entries before it are no longer kept."""

    all: list[Entry] = field(default_factory=lambda: [Entry("create", schema=SCHEMA, run="r0")])
    oldest: int = 0
    #: part -> the rows in it, by name
    rows: dict[str, frozenset[int]] = field(default_factory=dict)
    parts: int = 0

    def at(self, version: int | None = None) -> TableState:
        if version is not None and not 0 <= version < len(self.all):
            raise SinkError("no such version")
        state = TableState()
        for entry in self.all[: len(self.all) if version is None else version + 1]:
            state.apply(entry)
        return state

    def entries(self, after: int, until: int) -> Any:
        if after + 1 < self.oldest:
            raise SinkError("no longer kept")
        return [(version, self.all[version]) for version in range(after + 1, until + 1)]

    def part(self, rows: frozenset[int]) -> Part:
        self.parts += 1
        self.rows[f"p{self.parts}"] = rows
        return Part(f"p{self.parts}", len(rows), 1)

    def visible(self) -> set[int]:
        return {row for name in self.at().files or () for row in self.rows[name]}


class Reader:
    """A job: keeps what it has read, in memory."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.inputs: tuple[Input, ...] = ()
        self.rows: list[int] = []

    def step(self, rules: str = "", until: int | None = None, full: bool = False) -> Any:
        reading = read_next("t", self.history, self.inputs, rules, until, full)
        if reading is not None:
            if reading.why is not None:
                self.rows = []
            self.inputs = reading.inputs
            self.rows += [row for part in reading.parts for row in self.history.rows[part.path]]
        return reading


@settings(max_examples=300)
@given(st.data())
def test_all_steps_together_read_what_is_there_once(data: Any) -> None:
    history = History()
    reader = Reader(history)
    rows = 0
    for _ in range(data.draw(st.integers(1, 25))):
        what = data.draw(
            st.sampled_from(["land", "land", "read", "read", "compact", "begin", "replace", "forget", "full"])
        )
        if what == "land":
            landed = frozenset(range(rows, rows + data.draw(st.integers(1, 3))))
            rows += len(landed)
            history.all.append(Entry("rows", run="r1", add=(history.part(landed),)))
        elif what == "compact":
            files = list(history.at().files or {})
            chosen = [name for name in files if data.draw(st.booleans())]
            if chosen:
                joined = frozenset().union(*(history.rows[name] for name in chosen))
                history.all.append(Entry("compact", add=(history.part(joined),), remove=tuple(chosen)))
        elif what == "begin":
            history.all.append(Entry("begin", run=f"r{len(history.all)}"))
        elif what == "replace":
            history.all.append(Entry("replace", run=f"r{len(history.all)}", schema=SCHEMA))
        elif what == "forget":
            history.oldest = data.draw(st.integers(0, len(history.all) - 1))
        else:
            reading = reader.step(full=what == "full")
            assert len(reader.rows) == len(set(reader.rows))
            assert set(reader.rows) == history.visible()
            if reading is not None and reading.why is None:
                assert reading.parts
                assert reading.runs == {"r1"}
            before = reader.inputs
            assert reader.step() is None or history.oldest == len(history.all) - 1
            if history.oldest < len(history.all) - 1:
                assert reader.inputs == before
    reader.step()
    assert sorted(reader.rows) == sorted(history.visible())


def test_why_all_is_read_again_is_said() -> None:
    history = History()
    reader = Reader(history)

    def land() -> None:
        history.all.append(Entry("rows", run="r1", add=(history.part(frozenset({history.parts})),)))

    land()
    assert reader.step().why == "it is the first time"
    assert reader.step() is None
    assert reader.step(full=True).why == "it was asked for"
    assert reader.step(rules="other").why == "what it is to do has changed"
    land()
    reader.step(rules="other")
    history.all.append(Entry("replace", schema=SCHEMA))
    assert reader.step(rules="other").why == "t was replaced"
    land()
    land()
    history.oldest = len(history.all) - 1
    assert reader.step(rules="other").why == "the log of t no longer tells what came after version 3"
    history.all[-1] = Entry("rows", time="another life", run="r9")
    assert reader.step(rules="other").why == "t was made anew"
    del history.all[2:]
    history.oldest = 0
    assert reader.step(rules="other").why == "t was made anew"


def test_a_step_may_end_at_an_earlier_version() -> None:
    history = History()
    reader = Reader(history)
    for rows in ({0}, {1}, {2}):
        history.all.append(Entry("rows", run="r1", add=(history.part(frozenset(rows)),)))
    reader.step(until=1)
    assert reader.rows == [0]
    assert reader.step(until=2).parts == (Part("p2", 1, 1),)
    assert reader.step().inputs[0].version == 3
    assert read_of(reader.inputs, "nobody") is None
    with pytest.raises(SinkError, match="no such version"):
        reader.step(until=9)


def test_a_table_may_have_the_name_of_what_is_noted_behind_the_tables() -> None:
    for name in ("rules", "full", "backfill"):
        history = History()
        history.all.append(Entry("rows", run="r1", add=(history.part(frozenset({0})),)))
        first = read_next(name, history, (), "r")
        assert first is not None and read_next(name, history, first.inputs, "r") is None
        history.all.append(Entry("rows", run="r1", add=(history.part(frozenset({1})),)))
        more = read_next(name, history, first.inputs, "r")
        assert more is not None and (more.why, more.rows) == (None, 1)


def test_what_was_made_anew_because_it_was_asked_for_is_another_table() -> None:
    history = History()
    history.all.append(Entry("rows", run="r1", add=(history.part(frozenset({0})),)))
    reader, seen = Reader(history), []
    for full in (True, True, True):  # at first there is nothing to be made anew
        reader.step(full=full)
        seen.append(reader.inputs)
        assert reader.step() is None
    assert len(set(seen)) == 3
    assert noted(seen[0], "full") is None
