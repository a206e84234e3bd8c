"""GPS traces as the GeoLife project publishes them: what a line says, and a seeded generator of the same files.

The real download (GeoLife GPS Trajectories 1.3, 182 people, 24.9 million fixes) unpacks to `Data/000/Trajectory/*.plt` and so on: a
folder for each device, in it a file for each trip. A file has six lines of head, then a line for each fix:
latitude and longitude in degrees, 0, altitude in feet (-777: not known), days since 1899-12-30, and date and time in GMT.

    python topologies/geolife.py traces --devices 20 --fixes 500 --bad 0.01
"""

import argparse
import math
import random
from datetime import datetime, timedelta, timezone
from pathlib import Path

__all__ = ["distance", "parse", "write"]

HEAD = ("Geolife trajectory", "WGS 84", "Altitude is in Feet", "Reserved 3", "0,2,255,My Track,0,0,2,8421376", "0")
#: metres
EARTH = 6_371_000.0
DAY_0 = datetime(1899, 12, 30, tzinfo=timezone.utc)


def parse(line: str) -> tuple[float, float, float] | None:
    """(seconds since the epoch, latitude, longitude) of a fix, None for a line of the head. Raises ValueError for all else."""
    line = line.strip()
    if line in HEAD:
        return None
    fields = line.split(",")
    if len(fields) != 7:
        raise ValueError(f"{len(fields)} fields, not 7")
    lat, lon = float(fields[0]), float(fields[1])
    if not (-90 <= lat <= 90 and -180 <= lon <= 180):
        raise ValueError(f"no place on Earth: {lat}, {lon}")
    return datetime.fromisoformat(f"{fields[5]}T{fields[6]}+00:00").timestamp(), lat, lon


def distance(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Metres between two (latitude, longitude) in degrees, along a great circle (haversine)."""
    (lat1, lon1), (lat2, lon2) = ([math.radians(d) for d in each] for each in (a, b))
    h = math.sin((lat2 - lat1) / 2) ** 2 + math.cos(lat1) * math.cos(lat2) * math.sin((lon2 - lon1) / 2) ** 2
    return 2 * EARTH * math.asin(math.sqrt(h))


def write(folder: str | Path, devices: int = 20, fixes: int = 500, bad: float = 0.0, seed: int = 1) -> None:
    """Two trips of each device along a road of 2 km, of 20 east and 20 north of central Beijing, with that road's speed.

    `fixes` in all for each device; a share `bad` of the lines is broken: cut off, no place, or of an earlier time.
    """
    order = random.Random(seed)
    pace = [order.uniform(20, 80) for _ in range(40)]  # km/h of each road
    for device in range(devices):
        path = Path(folder) / "Data" / f"{device:03}" / "Trajectory"
        path.mkdir(parents=True, exist_ok=True)
        at = datetime(2008, 10, 23, 2, 53, 4, tzinfo=timezone.utc) + timedelta(seconds=order.randrange(7200))
        for trip in range(2):
            name = f"{at:%Y%m%d%H%M%S}.plt"
            lines = [*HEAD]
            road, along, factor = order.randrange(40), order.uniform(0, 2000), order.uniform(0.8, 1.2)
            for _ in range(fixes // 2 + trip * (fixes % 2)):
                gap = order.randint(1, 5)
                at += timedelta(seconds=gap)
                along += (pace[road] * factor + order.gauss(0, 3)) / 3.6 * gap
                lines.append(_line(at, road, abs(along % 4000 - 2000), order))  # at its end a device turns round
                if order.random() < bad:
                    lines[-1] = order.choice(
                        [lines[-1][:20], "400.166666,116.4,0,-777,0,2008-10-23,02:53:10", lines[max(6, len(lines) - 9)]]
                    )
            (path / name).write_text("".join(f"{line}\r\n" for line in lines), newline="")
            at += timedelta(hours=order.uniform(1, 5), microseconds=-at.microsecond)


def _line(at: datetime, road: int, along: float, order: random.Random) -> str:
    """A fix with 10 m of error."""
    north, east = (along, 100.0 * (road % 20)) if road < 20 else (100.0 * (road % 20), along)
    lat = 39.9 + (north + order.gauss(0, 10)) / 111_195
    lon = 116.4 + (east + order.gauss(0, 10)) / 85_305
    return f"{lat:.6f},{lon:.6f},0,{order.randint(100, 600)},{(at - DAY_0) / timedelta(days=1):.10f},{at:%Y-%m-%d},{at:%H:%M:%S}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    for option, kind, default in (("devices", int, 20), ("fixes", int, 500), ("bad", float, 0.0), ("seed", int, 1)):
        parser.add_argument(f"--{option}", type=kind, default=default)
    write(**vars(parser.parse_args()))
