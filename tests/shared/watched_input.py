"""A source of a real server while nothing runs: looked at behind what was read, again and again, and nothing of it is kept."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path

import waiting

from esault.messages.checkpoint import CompletedCheckpoint, CompletedUnit
from esault.messages.splits import SplitPlace
from esault.payload.codec import Codec
from esault.runtime.session.input_watch import InputWatch
from esault.topology.context import Context
from esault.topology.locate import locate

__all__ = ["check_watched_input"]

TOPOLOGY = """
from esault import Bolt, Topology, shuffle
from esault.sources import {name}


class Keep(Bolt):
    def process(self, key, value):
        pass


def topology():
    t = Topology("watched")
    t.spout("in", {source}).bolt("keep", Keep, shuffle())
    return t
"""


def check_watched_input(folder: Path, source: str, rows: int, fill: Callable[[], object]) -> None:
    """Read `rows` of a source of splits, as it is written; then look at it, and `fill` in one more."""
    path = folder / "watched.py"
    path.write_text(TOPOLOGY.format(name=source.partition("(")[0], source=source))
    located = locate(str(path))

    def read(places: dict[str, SplitPlace], wanted: int) -> dict[str, SplitPlace]:
        spout = located.build({}).plan().units["in"].spout
        context = Context("in", logger=logging.getLogger("esault.test"))
        spout.context = context
        spout.open(context)
        ids = waiting.until(spout.splits)
        at = {id: Codec().unpack(place.position)[0] for id, place in places.items()}
        readers = {id: spout.open_split(id, at.get(id)) for id in ids}
        seen = 0
        end = time.monotonic() + waiting.PATIENCE
        while seen < wanted and time.monotonic() < end:
            seen += sum(len(reader.read(100)) for reader in readers.values())
        assert seen == wanted
        found = {id: SplitPlace(Codec().pack_value((reader.position(), 0))) for id, reader in readers.items()}
        for reader in readers.values():
            reader.close()
        spout.close()
        return found

    places = read({}, rows)
    kept = CompletedCheckpoint(1, "r", {"in": CompletedUnit("spout", "sub-unit", 1, splits=places)})
    for _ in range(2):
        watch = InputWatch(located, {}, kept)
        for _ in range(10):
            assert watch.found() is None
            time.sleep(0.05)
        watch.close()
    watch = InputWatch(located, {}, kept)
    fill()
    assert waiting.until(watch.found) == "in"
    watch.close()
    read(places, 1)  # it is there for the run
