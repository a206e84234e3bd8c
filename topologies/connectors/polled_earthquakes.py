"""Earthquakes that a service is asked for each minute: each once, and again when it was measured better.

Shows `HttpPollSource`. Out comes `out/earthquakes.jsonl`: a line for each earthquake of `least` or more, and one more whenever its
magnitude has changed. An answer has all of the last hour, and most of them have come before: `changes` leaves these out.

    esault run topologies/connectors/polled_earthquakes.py --checkpoint 5
    tail -f out/earthquakes.jsonl                                         # in another terminal

The default is the feed of the U.S. Geological Survey. Another one of the same form, GeoJSON: `--set url=http://localhost:8000/quakes`.
"""

from esault import Topology
from esault.sinks import JsonLines
from esault.sources import HttpPollSource

__all__ = ["topology"]

QUAKES = "https://earthquake.usgs.gov/earthquakes/feed/v1.0/summary/all_hour.geojson"


def measured(feature):
    """Return what is said of it; times are milliseconds since the epoch there."""
    said = feature["properties"]
    longitude, latitude, depth = feature["geometry"]["coordinates"]
    where = {"place": said["place"], "latitude": latitude, "longitude": longitude, "km": depth}
    return {"at": said["time"] / 1000, "magnitude": said["mag"], **where}


def topology(
    url: str = QUAKES,
    least: float = 2.5,
    every: float = 60.0,
    out: str = "out/earthquakes.jsonl",
    name: str = "polled_earthquakes",
) -> Topology:
    """Return it; it has no end."""
    t = Topology(name)
    features = t.spout("features", HttpPollSource(url, every=every, rows="features", key="id"))
    quakes = features.map(measured).filter(lambda quake: (quake["magnitude"] or 0) >= least)
    news = quakes.changes("news", of=lambda quake: quake["magnitude"], expire_after=86_400)
    news.sink("earthquakes", JsonLines(out, mode="replace"))
    return t
