"""Lines of a web server's log: a compiled regex and tables at module level, csv for the agents, closures in the steps, logging."""

import csv
import logging
import random
import re
from collections import Counter

from esault import Bolt, Topology, by_key, skip
from esault.sinks import JsonLines
from esault.sources import Items, Paced

LINE = re.compile(
    r'(?P<ip>[\d.]+) \[(?P<time>\d+)\] "(?P<verb>[A-Z]+) (?P<path>\S+)" (?P<status>\d{3}) "(?P<agent>[^"]*)"'
)
CLASSES = {"2": "fine", "3": "moved", "4": "asked wrongly", "5": "broken"}
log = logging.getLogger(__name__)


def lines(size):
    rng = random.Random(10)
    for i in range(size):
        if i % 17 == 0:
            yield None, f"garbage {i}"
            continue
        path = rng.choice(["/", "/a", "/b?x=1", "/c?y=2"])
        status = rng.choice([200, 200, 301, 404, 500])
        yield (
            None,
            f'10.0.0.{rng.randrange(9)} [{i}] "{rng.choice(["GET", "POST"])}" {path}'.replace('" /', " /")
            + (f'" {status} "{rng.choice(["cli,1.0", "web,2.1,x"])}"'),
        )


def parse(line):
    found = LINE.match(line)
    if found is None:
        raise ValueError(f"no line of a log: {line!r}")
    return found.groupdict()


def without(names):
    """A step that leaves fields out."""
    dropped = set(names)

    def step(record):
        return {name: value for name, value in record.items() if name not in dropped}

    return step


class Site(Bolt):
    pattern = re.compile(r"\?.*")

    def __init__(self):
        self.classes = Counter()
        self.cut = re.compile(r"^/(\w*)")  # a pattern may stand in state as well
        self.sections = set()

    def process(self, key, value):
        kind = CLASSES[value["status"][0]]
        self.classes[kind] += 1
        self.sections.add(self.cut.match(self.pattern.sub("", value["path"])).group(1))
        if kind == "broken":
            log.debug("broken: %s", value)
        agent = next(csv.reader([value["agent"]]))
        self.emit(key, {"classes": dict(self.classes), "sections": sorted(self.sections), "agent": agent[0]})


def topology(size: int = 2000, rate: float = 1000.0, out: str = "out") -> Topology:
    t = Topology("access-log")
    records = t.spout("lines", Paced(Items(lambda: lines(size)), rate)).map(parse, on_error=skip())
    verbs = ("GET",)
    gets = records.filter(lambda record: record["verb"] in verbs).map(without(["time", "verb"]))
    gets.key_by(lambda record: record["ip"]).bolt("site", Site, by_key()).sink("sites", JsonLines(f"{out}/sites.jsonl"))
    return t


def expected(size):
    rows, classes, sections = [], {}, {}
    for _, line in lines(size):
        if line.startswith("garbage") or '"GET' not in line:
            continue
        ip, path = line.split()[0], line.split('"')[1].split()[1]
        status, agent = line.split('"')[2].strip(), line.split('"')[3].split(",")[0]
        mine = classes.setdefault(ip, {})
        mine[CLASSES[status[0]]] = mine.get(CLASSES[status[0]], 0) + 1
        sections.setdefault(ip, set()).add(path.split("?")[0].strip("/"))
        rows.append((ip, {"classes": dict(mine), "sections": sorted(sections[ip]), "agent": agent}))
    return {"sites": rows}
