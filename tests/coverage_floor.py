"""How much of each room the unit tests take, beside the floor that is kept in `coverage.json` beside this file.

`make coverage` runs the tests of `make quick` and this: `python tests/coverage_floor.py FOUND` reads what coverage has
written as JSON, prints a table and fails where a room has come below its floor, or has none. With `--renew` it writes the floors anew.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

FLOORS = Path(__file__).with_name("coverage.json")
#: rooms without a floor, and the tests that they are left to: those of `make quick` start no server
LEFT_TO = {
    "connectors": "tests/connectors",
    "lookups": "tests/connectors",
    "object_store": "tests/connectors",
}
#: by which two runs of the same tests may differ, since threads come in another order: percent, and lines or branches where more
SLACK, FEW = 0.5, 2


def by_room(found: dict[str, Any]) -> dict[str, tuple[float, int]]:
    """Percent of lines and branches taken, and how many there are, by room."""
    taken: Counter[str] = Counter()
    there: Counter[str] = Counter()
    for name, file in found["files"].items():
        room = Path(name).parts[1].removesuffix(".py")
        summary = file["summary"]
        taken[room] += summary["covered_lines"] + summary["covered_branches"]
        there[room] += summary["num_statements"] + summary["num_branches"]
    return {room: (round(100 * taken[room] / n, 1), n) for room, n in sorted(there.items()) if n}


def below(rooms: dict[str, tuple[float, int]], floors: dict[str, float]) -> list[str]:
    """Rooms that have come below their floor, and those that are not tested at all any more."""
    found = {room: percent + max(SLACK, 100 * FEW / n) for room, (percent, n) in rooms.items()}
    return [room for room, floor in floors.items() if found.get(room, 0.0) < floor]


def main(place: str, renew: bool = False) -> int:
    """Print the table; 1 where a room is below its floor."""
    rooms = by_room(json.loads(Path(place).read_text()))
    if renew:
        FLOORS.write_text(
            json.dumps({room: percent for room, (percent, _) in rooms.items() if room not in LEFT_TO}, indent=2) + "\n"
        )
    floors = json.loads(FLOORS.read_text()) if FLOORS.exists() else {}
    if without := sorted(rooms.keys() - floors.keys() - LEFT_TO.keys()):
        print(f"no floor for {', '.join(without)}: make coverage RENEW=--renew", file=sys.stderr)
        return 1
    for room, (percent, _) in rooms.items():
        floor = f"left to {LEFT_TO[room]}" if room in LEFT_TO else f"floor {floors[room]:5.1f} %"
        print(f"{room:12} {percent:5.1f} %   {floor}")
    wrong = below(rooms, floors)
    if wrong:
        print(f"below the floor: {', '.join(wrong)}. Test what is new, or renew it and say why", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], "--renew" in sys.argv))
