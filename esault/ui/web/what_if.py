"""The simulator on the load that a run has had so far, in a process of its own: what each policy would have done.

python -m esault.ui.web.what_if reads what `History.recorded` gives as JSON, and writes a line of JSON for each policy.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from esault.elasticity.policy import NONE, POLICIES
from esault.errors import EsaultError, UsageError

__all__ = ["WhatIf", "answers"]

#: seconds after which it is given up
LONGEST = 120.0
#: windows that are simulated at most: the newest ones
MOST_WINDOWS = 900
#: seconds of a step of the simulator, and of a longer run
STEP, COARSE, LONG = 0.02, 0.1, 300.0


class WhatIf:
    """Asks for it: one at a time, in a process that gives way to all others."""

    def __init__(self) -> None:
        self._busy = threading.Lock()

    def ask(self, recorded: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return what each policy would have done. Raises UsageError."""
        if len(recorded["windows"]) < 2:
            raise UsageError("the run has just begun: there is no load yet to try policies on")
        if not self._busy.acquire(blocking=False):
            raise UsageError("it is being computed already; try again in a moment")
        try:
            done = subprocess.run(
                [sys.executable, "-m", __name__],
                input=json.dumps(recorded),
                capture_output=True,
                text=True,
                timeout=LONGEST,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise UsageError(f"it took more than {LONGEST:g} s, and was given up") from None
        finally:
            self._busy.release()
        if done.returncode:
            raise UsageError(f"the simulator failed: {done.stderr.strip().splitlines()[-1:] or done.returncode}")
        return [json.loads(line) for line in done.stdout.splitlines()]


def answers(recorded: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield for each policy, by name: widths of units over time, seconds of sub-units, p99 in ms, changes; or why it cannot be tried."""
    from esault.sim import Operator, simulate
    from esault.sim.unit_profile import BETWEEN

    model, seconds, began = _model(recorded)
    fixed = {part.name: NONE for part in model.parts if isinstance(part, Operator) and BETWEEN in part.name}
    for policy in [NONE, *POLICIES.names()]:
        try:
            run = simulate(
                model, policy, seconds=seconds, policies=fixed, step=STEP if seconds < LONG else COARSE, tick=0.1
            )
        except EsaultError as error:
            yield {"policy": policy, "error": str(error)}
            continue
        units = {name: each for name, each in run.operators.items() if name not in fixed}
        p99 = run.latency.percentile(0.99)
        yield {
            "policy": policy,
            "until": began + seconds,
            "widths": {name: [[began + at, width] for at, width in each.trace] for name, each in units.items()},
            "sub_unit_seconds": sum(each.worker_seconds for each in units.values()),
            "p99_ms": None if math.isnan(p99) else 1000 * p99,
            "changes": sum(len(each.changes) for each in units.values()),
            "waiting": sum(each.waiting for each in units.values()) + run.lag,
        }


def _model(recorded: Mapping[str, Any]) -> tuple[Any, float, float]:
    """Return the model of the topology under the load that was recorded, its length in seconds and when it begins in the run."""
    from esault.sim import Host, Model, Operator
    from esault.sim.load_shapes import Steps
    from esault.sim.unit_profile import BETWEEN, UnitProfile, modelled

    windows = recorded["windows"][-MOST_WINDOWS:]
    ends = [window["t"] for window in windows]
    before = recorded["windows"][-MOST_WINDOWS - 1]["t"] if len(recorded["windows"]) > MOST_WINDOWS else 0.0
    starts = [before, *ends[:-1]]
    lengths = [end - start for start, end in zip(starts, ends)]
    profiles: list[UnitProfile] = []
    rates: dict[str, Steps] = {}
    for unit in recorded["units"]:
        rows = [window["units"].get(unit["name"]) for window in windows]
        known = [(row, length) for row, length in zip(rows, lengths) if row is not None]
        if unit["kind"] == "spout":
            offered = tuple(_offered(rows, lengths))
            rates[unit["name"]] = Steps(tuple(start - before for start in starts), offered, ends[-1] - before)
        arrived, processed, emitted = (
            sum(row[what] * length for row, length in known) for what in ("arrivals", "processed", "emitted")
        )
        busy = sum(row["busy"] for row, _ in known)
        width = max(1, next((row["sub_units"] for row, _ in known), 1))
        profile = UnitProfile(
            *(unit["name"], unit["kind"], tuple(unit["senders"]), arrived, processed, emitted, busy, width),
            least=unit["least"],
            most=unit["most"],
        )
        profiles.append(profile)
    parts = modelled(profiles, rates)
    slots = max(recorded["slots"], 1) + sum(BETWEEN in part.name for part in parts)
    wide = sum(part.width for part in parts if isinstance(part, Operator))
    cores = float(os.cpu_count() or 1)
    return Model(parts, hosts=(Host(cores=cores),), slots=max(slots, wide)), ends[-1] - before, before


def _offered(rows: Sequence[Mapping[str, Any] | None], lengths: Sequence[float]) -> Iterator[float]:
    """Yield what was due at a spout in each window, tuples a second: what it read, and by how much its lag grew."""
    lag: float | None = None
    for row, length in zip(rows, lengths):
        if row is None:
            yield 0.0
            continue
        grown = 0.0 if lag is None or row["lag"] is None else (row["lag"] - lag) / length
        lag = row["lag"]
        yield max(0.0, row["emitted"] + grown)


def main() -> None:
    """Read a record, write the answers."""
    with contextlib.suppress(OSError):
        os.nice(10)
    for answer in answers(json.load(sys.stdin)):
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
