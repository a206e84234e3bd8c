"""A rush hour: words are looked up in a slow service, and the unit that waits for it grows while they flow, and shrinks after.

Shows elasticity: nothing here says how many sub-units `lookup` shall have. A look-up takes 4 ms of waiting, so one sub-unit does 250 a
second; the rush brings 600. Out come a line for each look-up in `out/rush_hour.jsonl`, with how often that word had been looked up,
and in the report each change, why it was made, and how long a tuple was held back by it.

    esault run topologies/rush_hour.py
    esault status                          # meanwhile, in another terminal
"""

import sysconfig
import time
from itertools import cycle, islice
from pathlib import Path

from esault import Bolt, Topology, by_key
from esault.sinks import JsonLines
from esault.sources import Items, Paced

__all__ = ["topology"]


class Lookup(Bolt):
    """Waits for a service that is far away; remembers how often it asked for each word."""

    def __init__(self):
        self.asked = 0

    def process(self, key, value):
        time.sleep(0.004)
        self.asked += 1
        self.emit(key, self.asked)


def words(count: int) -> list[tuple[str, int]]:
    """So many words of the Zen of Python (in its cipher), over and over."""
    text = (Path(sysconfig.get_path("stdlib")) / "this.py").read_text(errors="replace")
    return [(word, 1) for word in islice(cycle(text.lower().split()), count)]


def topology(
    out: str = "out/rush_hour.jsonl", calm: float = 60.0, rush: float = 600.0, seconds: float = 8.0
) -> Topology:
    """`calm` and `rush` are words a second; the rush takes `seconds`, between 4 s and 8 s of calm."""
    t = Topology("rush-hour")
    count = int(12 * calm + seconds * rush)
    paced = Paced(Items(words(count)), [(0.0, calm), (4.0, rush), (4.0 + seconds, calm)])
    lookup = t.spout("words", paced).bolt("lookup", Lookup, grouping=by_key(), max_parallelism=8)
    lookup.sink("asked", JsonLines(out, mode="replace"))
    return t
