"""The check of a simulation's history: the guarantees of docs/explanation/guarantees.md that apply to it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from bench.simulation.outside import Broken
from bench.simulation.scenario import ROW_BY_ROW
from bench.simulation.tally import NAME
from tests.programs.generate import differences, expected
from tests.programs.units import LAST, opened

if TYPE_CHECKING:
    from bench.simulation.simulation import Simulation

__all__ = ["check"]


def check(simulation: Simulation) -> None:
    """Compare all tables with what a plain loop makes of the rows. Raises Broken."""
    program, outside, counts = simulation.scenario.program, simulation.outside, simulation.history.counts
    want = expected(program)
    exactly = simulation.exactly and not simulation.lied_to
    at_least = simulation.scenario.settings.delivery == "alo" or (
        simulation.lied_to and all(unit.kind in ROW_BY_ROW for unit in program.units.values())
    )
    counts["tuples"] += sum(map(len, program.spouts.values())) + sum(map(len, want.values()))
    counts["rows checked"] += sum(map(len, want.values()))
    faulty = bool(simulation.scenario.fault_every)
    for name in program.units:
        got = [(row.key, row.value) for row in outside.tables[f"{name}-out"].rows]
        if exactly:
            wrong = differences(want[name], got)
        elif not faulty:
            # Nothing died: state may still differ where rows of two senders come in another order.
            wrong = _apart(_names(want[name]), _names(got), True)
        elif at_least:
            wrong = _apart(_names(want[name]), _names(got), False)
        else:
            wrong = ""
        if wrong:
            raise Broken(f"{name}: {wrong}")
        late = outside.tables.get(f"{name}-late")
        if exactly and late is not None and late.rows:
            raise Broken(f"{name}: {len(late.rows)} rows were late")
    _check_tally(simulation, exactly)
    if simulation.exactly:
        for table in outside.tables.values():
            if table._prepared:
                raise Broken(
                    f"table {table.name}: {sum(map(len, table._prepared.values()))} rows are prepared and not committed"
                )


def _check_tally(simulation: Simulation, exactly: bool) -> None:
    """Each row counts once, in order; without checkpoints and with deaths no row is missing that was not counted before.

    Where a disk has lied, a count may be there twice, and none is missing.
    """
    rows = next(iter(simulation.scenario.program.spouts.values()))
    want = Counter(repr(key) for key, _ in rows)
    got: dict[str, list[int]] = {}
    for row in simulation.outside.tables[f"{NAME}-out"].rows:
        got.setdefault(repr(row.key), []).append(row.value)
    for key, n in want.items():
        there = got.get(key, [])
        exact = exactly or not simulation.scenario.fault_every
        if exact and sorted(there) != list(range(1, n + 1)):
            raise Broken(f"{NAME}: {key} has the counts {sorted(there)[:50]}, and there are {n} rows")
        if simulation.lied_to and set(there) != set(range(1, n + 1)):
            raise Broken(f"{NAME}: after the disk has lied, {key} has the counts {sorted(there)[:50]} for {n} rows")
        if not exact and simulation.scenario.settings.delivery == "alo" and len(there) < n:
            raise Broken(f"{NAME}: {key} has {len(there)} counts for {n} rows")


def _names(rows: list[tuple[Any, Any]]) -> list[str]:
    """Return what says which row it is, whatever the state was that it met; rows of `finish` are left out."""
    found = []
    for key, value in rows:
        if isinstance(value, str):
            continue
        source, n, *_ = opened(value)
        if n < LAST:
            found.append(f"{key!r} {source} {n}")
    return found


def _apart(want: list[str], got: list[str], exact: bool) -> str:
    missing = sorted(set(want) - set(got))
    strange = sorted(set(got) - set(want))
    if missing or strange:
        return f"{len(missing)} missing, {len(strange)} strange: {missing[:3]} {strange[:3]}"
    if exact and len(got) != len(want):
        return f"{len(got)} rows in place of {len(want)}"
    return ""
