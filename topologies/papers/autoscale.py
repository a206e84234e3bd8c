"""The linear, the diamond and the star topology of AUTOSCALE, under its load: calm, an exponential rise, a plateau, steps down.

After Kotto-Kombi, Lumineau, Lamarre, Rivetti and Busnel (2017; settings from the authors' repositories): an intermediate operator takes
2 ms for a tuple and a final one 80 ms (star: 240 ms). Linear: source, intermediate, final. Diamond: source, three intermediates that all
get each tuple, one final. Star: three sources, one intermediate, three finals that all get each tuple. Shows units without a
size: at the plateau of 140 tuples a second the final operator of `linear` needs 12 sub-units, before and after one. The other two
have a third and a ninth of that rate, for as many. Out come, for each key of 100, how many tuples and the sum of their
numbers, in `out/autoscale/*.jsonl`. `speed` shortens it all: 37 minutes by default to 3.7, at ten times the rates.

    esault run topologies/papers/autoscale.py:linear --policy autoscale
    esault run topologies/papers/autoscale.py:star --slots 24
"""

from functools import partial
from random import Random

from slept import Relay, Total, numbers

from esault import Stream, Topology, by_key, shuffle
from esault.sinks import JsonLines
from esault.sources import Items, Paced

__all__ = ["diamond", "linear", "star"]

#: seconds
INTERMEDIATE, FINAL, FINAL_OF_STAR = 0.002, 0.080, 0.240
#: until when (s), tuples a second
LEVELS = ((300, 4.0), (600, None), (1500, 140.0), (1620, 100.0), (1740, 60.0), (1860, 30.0))


def rate(t: float, seed: int = 1) -> float:
    """Tuples a second, t seconds after the start; each second's is off by up to a fifth."""
    level = next((level for end, level in LEVELS if t < end), 4.0)
    return (level or 4.0 * 35 ** ((t - 300) / 300)) * Random(seed << 32 | int(t)).uniform(0.8, 1.2)


def source(t: Topology, name: str, share: float, speed: float, seconds: int, seed: int) -> Stream[int, int]:
    """Return a stream with the load of so many seconds of the paper's time, in a `speed`-th of that."""
    count = round(share * sum(rate(s, seed) for s in range(seconds)))
    return t.spout(name, Paced(Items(partial(numbers, count, seed)), lambda s: share * speed * rate(s * speed, seed)))


def linear(speed: float = 10.0, seconds: int = 2220, seed: int = 1, out: str = "out/autoscale") -> Topology:
    """`seconds` of the paper's time are run."""
    t = Topology("autoscale-linear")
    middle = source(t, "source", 1, speed, seconds, seed).bolt(
        "middle", partial(Relay, INTERMEDIATE / speed), shuffle()
    )
    middle.bolt("final", partial(Total, FINAL / speed), by_key()).sink(
        "totals", JsonLines(f"{out}/linear.jsonl", "replace")
    )
    return t


def diamond(speed: float = 10.0, seconds: int = 2220, seed: int = 1, out: str = "out/autoscale") -> Topology:
    """As `linear`, with a third of the tuples, each on three ways."""
    t = Topology("autoscale-diamond")
    tuples = source(t, "source", 1 / 3, speed, seconds, seed)
    ways = [tuples.bolt(f"middle-{i}", partial(Relay, INTERMEDIATE / speed), shuffle()) for i in (1, 2, 3)]
    final = t.bolt("final", partial(Total, FINAL / speed), dict.fromkeys(ways, by_key()))
    final.sink("totals", JsonLines(f"{out}/diamond.jsonl", "replace"))
    return t


def star(speed: float = 10.0, seconds: int = 2220, seed: int = 1, out: str = "out/autoscale") -> Topology:
    """As `linear`, with a ninth of the tuples from three sources, each to three final operators."""
    t = Topology("autoscale-star")
    sources = [source(t, f"source-{i}", 1 / 27, speed, seconds, seed + i) for i in (1, 2, 3)]
    middle = t.bolt("middle", partial(Relay, INTERMEDIATE / speed), dict.fromkeys(sources, shuffle()))
    for i in (1, 2, 3):
        final = middle.bolt(f"final-{i}", partial(Total, FINAL_OF_STAR / speed), by_key())
        final.sink(f"totals-{i}", JsonLines(f"{out}/star-{i}.jsonl", "replace"))
    return t
