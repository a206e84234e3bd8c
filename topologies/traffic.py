"""Traffic monitoring, live: how fast devices move on each road, at each hour, from their GPS traces.

The second application of the eSault paper (section 5): *map* finds the road of a fix, *speed* keeps a road's average. Without a map
of roads, a road is a cell of a grid of 0.001 degrees, some 100 m. Shows a folder of files as a source, state that follows
one trip (its fixes come in order, since they have one key), and bad lines set aside in a stream of their own, so that they are
neither lost nor stop anything. It reads the GeoLife download as it unpacks (geolife.py says what that is and makes such
files). Out come `out/traffic/roads`, a row for each new average, (cell and hour, fixes, km/h), and the bad lines with file and
reason in `out/traffic/bad.jsonl`.

    python topologies/geolife.py traces --devices 20 --bad 0.01
    esault run topologies/traffic.py --set folder=traces
    esault analyze topologies/traffic.py
"""

import math

from geolife import distance, parse

from esault import Bolt, Topology, by_key
from esault.sinks import JsonLines, SparkTable
from esault.sources import TextFiles

__all__ = ["reports", "topology"]

#: seconds without a fix after which a device was off, and it is unknown where it went meanwhile
LONGEST = 60


class Map(Bolt):
    """One trip. A fix gives the speed since the one before, on the road that it is on."""

    def __init__(self):
        self.last = None

    def process(self, key, value):
        try:
            fix = parse(value)
        except ValueError as error:
            self.emit(key, (str(error), value[:200]), stream="bad")
            return
        if fix is None:
            return
        at, lat, lon = fix
        last, self.last = self.last, fix
        if last is None or at > last[0] + LONGEST:
            return
        if at <= last[0]:
            self.emit(key, ("not later than the fix before it", value), stream="bad")
            return
        road = f"{math.floor(lat * 1000)} {math.floor(lon * 1000)} {int(at // 3600 % 24)}"
        self.emit(road, 3.6 * distance(last[1:], (lat, lon)) / (at - last[0]))


class Speed(Bolt):
    """One road at one hour of the day: the average of what was measured there."""

    def __init__(self):
        self.fixes = 0
        self.total = 0.0

    def process(self, key, value):
        self.fixes += 1
        self.total += value
        self.emit(key, (self.fixes, self.total / self.fixes))


def topology(folder: str = "traces", out: str = "out/traffic") -> Topology:
    """`folder`: where the download was unpacked, or geolife.py has written."""
    t = Topology("traffic")
    lines = t.spout("lines", TextFiles(folder, pattern="**/*.plt", errors="replace", on_long_line="skip"))
    fixes = lines.bolt("map", Map, by_key(), streams=("bad",), max_parallelism=8)
    fixes["bad"].sink("bad", JsonLines(f"{out}/bad.jsonl", mode="replace"))
    roads = fixes.bolt("speed", Speed, by_key(), max_parallelism=8)
    roads.sink("roads", SparkTable(f"{out}/roads", {"road": str, "fixes": int, "kmh": float}, mode="replace"))
    return t


def reports(tables):
    from pyspark.sql import functions as f

    roads = tables["roads"].groupBy("road").agg(f.max("fixes").alias("fixes"), f.max_by("kmh", "fixes").alias("kmh"))
    place, hour = f.regexp_extract("road", r"(.*) \d+$", 1), f.regexp_extract("road", r"(\d+)$", 1).cast("int")
    roads = roads.select(place.alias("cell"), hour.alias("hour"), "fixes", f.round("kmh", 1).alias("kmh"))
    return {
        "busiest": roads.orderBy("fixes", ascending=False).limit(20),
        "hours": roads.groupBy("hour").agg(f.round(f.sum(roads.fixes * roads.kmh) / f.sum("fixes"), 1).alias("kmh")),
    }
