"""Widths that a topology needed before, kept from run to run: the report of its last run in a folder (`--learn DIR`)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from esault.counters import counted
from esault.elasticity.policy import NONE
from esault.elasticity.scaling import EVERY_UNIT
from esault.errors import UsageError
from esault.report import Report
from esault.runtime.session.request import SLOTS, Quiet, Request
from esault.topology.plan import Plan
from esault.topology.replicas import width as width_of

__all__ = ["check_folder", "keep", "learnt_by_policies", "usual_width", "with_learned"]

#: seconds that a run must have taken to say something
SHORTEST = 5.0


def with_learned(request: Request, plan: Plan) -> Request:
    """Return the request with the widths that bolts had for most of the last run, as far as nothing else says how wide they begin.

    They are cut to what slots and a budget allow. A run that goes on from a checkpoint has the widths of that. Raises UsageError for a file that is no report.
    """
    if request.learn is None or request.resume or request.from_savepoint is not None:
        return request
    path = _place(request.learn, plan.name)
    known = _read(path)
    if not known:
        return request
    notice = (request.view or Quiet()).notice
    slots = request.slots or (SLOTS if request.hosts is None else 0)
    if not slots:
        notice(
            "--learn: with --hosts it is not known before how many slots there are: say --slots to begin as wide as before"
        )
        return request
    if request.settings.hourly_budget:
        notice("--learn: it is not known before how many slots the budget buys: bolts begin as without it")
        return request
    slots = min(slots, request.settings.budget or slots)
    wanted = {}
    for name, unit in plan.units.items():
        fixed = request.policies.get(name, request.policies.get(EVERY_UNIT, "")) == NONE
        if unit.kind == "spout" or fixed or name in request.parallelism or name not in known["units"]:
            continue
        try:
            width = usual_width(known["units"][name]["parallelism"], known["seconds"])
        except (KeyError, TypeError, ValueError, OverflowError):
            raise _no_report(path) from None
        most = width if unit.max_parallelism is None else unit.max_parallelism
        width = max(unit.min_parallelism, min(width, most))
        if width > unit.parallelism:
            wanted[name] = width
    while wanted and sum(width_of(unit, {**wanted, **request.parallelism}) for unit in plan.units.values()) > slots:
        widest = max(wanted, key=lambda name: wanted[name])
        wanted[widest] -= 1
        if wanted[widest] <= plan.units[widest].parallelism:
            del wanted[widest]
    for name, width in wanted.items():
        notice(f"--learn: {name} begins with {counted(width, 'sub-unit')}, as it had for most of the last run ({path})")
    return replace(request, parallelism={**wanted, **request.parallelism})


def check_folder(folder: str | Path) -> None:
    """Find before anything starts that reports cannot be kept there. Raises UsageError."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        why = "" if os.access(folder, os.W_OK | os.X_OK) else "it may not be written by this user"
    except OSError as error:
        why = error.strerror or str(error)
    if why:
        raise UsageError(f"--learn {folder}: nothing can be kept there ({why}); name another folder")


def keep(folder: str | Path, report: Report, notice: Callable[[str], None]) -> None:
    """Keep what a run needed, if it was long enough to say something; `notice` is told where that cannot be."""
    if report.seconds < SHORTEST or report.failure is not None:
        return
    path = _place(folder, report.topology)
    try:
        report.write(path)
    except OSError as error:
        notice(f"--learn: {path} cannot be written ({error.strerror or error}); the next run begins as this one did")


def learnt_by_policies(folder: str | Path | None, topology: str) -> str | None:
    """Return the file in which the driver keeps what policies have learnt, such as the rhythm of the load."""
    return None if folder is None else str((Path(folder) / f"{topology}.learnt.json").absolute())


def usual_width(parallelism: list[tuple[float, int]], seconds: float) -> int:
    """Return the width that a unit had, or less, for half of a run; 0 while it had no processes of its own."""
    spans = [(0.0, 0), *((float(t), int(n)) for t, n in parallelism)]
    ends = [*(t for t, _ in spans[1:]), max(seconds, spans[-1][0])]
    lengths = sorted((n, max(0.0, end - t)) for (t, n), end in zip(spans, ends))
    gone, half = 0.0, sum(length for _, length in lengths) / 2
    for n, length in lengths:
        gone += length
        if gone >= half:
            return n
    return 0


def _place(folder: str | Path, topology: str) -> Path:
    return Path(folder) / f"{topology}.json"


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
        if isinstance(found, dict) and isinstance(found["seconds"], (int, float)) and isinstance(found["units"], dict):
            return found
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError):
        pass
    raise _no_report(path)


def _no_report(path: Path) -> UsageError:
    return UsageError(f"--learn: {path} is no report of a run; remove it, or name another folder")
