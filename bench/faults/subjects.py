"""The topologies that faults are done to: four units under load, and random programs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from bench.faults import generated, topology
from bench.faults.count import each_once, nothing_missing
from bench.faults.kind import Kind
from bench.faults.kinds import KINDS, of_hosts, of_programs
from bench.faults.trial import CHECKPOINT
from bench.kit.cluster import Cluster
from bench.kit.victim import Victim
from esault.sinks.durable import replace_file

__all__ = ["RATE", "FourUnits", "RandomProgram"]

#: tuples a second of the four units
RATE = 2000.0


@dataclass
class FourUnits:
    """That of `topology.py`."""

    exactly: bool = True

    def victim(self, folder: Path, cluster: Cluster | None) -> Victim:
        """Make its run."""
        params = {"folder": folder, "rate": RATE, "exactly": self.exactly}
        bolts = ("left", "right", "count")
        return Victim(folder, self.exactly, CHECKPOINT, topology.TOPOLOGY, params, bolts=bolts, cluster=cluster)

    def kinds(self, hosts: bool) -> tuple[Kind, ...]:
        """All, or those of hosts."""
        return of_hosts() if hosts else KINDS

    def end(self, folder: Path, seconds: float) -> None:
        """No more than that can have been read: what is missing up to there is read as fast as it goes."""
        replace_file(f"{folder / topology.END}", b"%d" % (int(RATE * seconds) + 5000))

    def check(self, folder: Path) -> dict[str, int]:
        """Count."""
        number = json.loads((folder / topology.READ).read_text())["next"]
        return {"numbers": number, **(each_once if self.exactly else nothing_missing)(folder, number)}


@dataclass
class RandomProgram:
    """That of a seed."""

    seed: int

    def victim(self, folder: Path, cluster: Cluster | None) -> Victim:
        """Make its run."""
        program = generated.drawn(self.seed)
        bolts = [name for name, unit in program.units.items() if unit.changes and unit.grouping != "single"]
        params = {"folder": folder, "seed": self.seed}
        return Victim(
            folder, True, CHECKPOINT, generated.GENERATED, params, name="program", bolts=bolts, cluster=cluster
        )

    def kinds(self, hosts: bool) -> tuple[Kind, ...]:
        """Those that need no unit of a name, and no unit that changes where it has none."""
        return of_hosts() if hosts else of_programs()

    def end(self, folder: Path, seconds: float) -> None:
        """Have the last rows come."""
        (folder / generated.END).touch()

    def check(self, folder: Path) -> dict[str, int]:
        """Count."""
        return generated.lost_and_doubled(folder, self.seed)
