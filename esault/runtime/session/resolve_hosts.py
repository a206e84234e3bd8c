"""From hosts.toml to the hosts of a run: all that can be known before anything starts."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType
from typing import Any

from esault.cluster.address import is_loopback, split
from esault.cluster.codec import pack
from esault.cluster.hosts_file import HostsFile, read_hosts
from esault.cluster.key import ClusterKey, loopback_key
from esault.cluster.shared import Written, check_shared
from esault.cluster.survey import Found, Unavailable, Unreachable, share_by_priority, share_out, survey
from esault.control.placement.placement import PlacementRules
from esault.elasticity.budget import unpriced
from esault.errors import FrameError, UsageError
from esault.payload.class_names import is_own
from esault.runtime.messages import HostsSpec
from esault.state.place import Place
from esault.state.run_state import RunState
from esault.topology.plan import Plan

__all__ = ["check_params", "reach"]

#: seconds for which runs of lower priority that are starting are waited for: they have not said yet which slots they can give
STARTS_WITHIN = 30.0
#: seconds that processes of a dead run have to end: one that its driver has not called yet waits for it for 20
LEAVES_WITHIN = 25.0


def reach(
    plan: Plan,
    hosts: str | os.PathLike[str],
    key: str | os.PathLike[str] | None,
    slots: int | None,
    state: RunState | None,
    notice: Callable[[str], None] = lambda text: None,
    priced: bool = False,
    priority: int | None = None,
) -> HostsSpec:
    """The hosts that this topology can run on now; `notice` is told of those that it begins without.

    `priced`: there is a budget in money, so all must have a price. `priority`: slots are shared by it, and `slots` is what the run begins
    with.

    Raises UsageError, naming the host or the unit and what to do.
    """
    file = read_hosts(hosts)
    key = key if key is not None else file.key
    if key is None:
        far = [each for each in file.hosts if not is_loopback(split(each)[0])]
        if far:
            raise UsageError(
                f"{far[0]} is another machine, and there is no key: say --key FILE, the one that its node has"
            )
        key = loopback_key()
    _check_units(plan, file.needs, f"{hosts}: [needs]")
    _check_units(plan, file.apart, f"{hosts}: [apart]")
    _check_plan(plan)
    if find_spec("cryptography") is None:
        raise UsageError(
            "a run on several hosts makes a key of its own, by the package cryptography: pip install 'esault[hosts]'"
        )
    opened = ClusterKey(key)
    before = "" if state is None or state.kept is None else state.kept.run
    found, absent = _survey(file.hosts, opened, before, notice)
    if priority is not None:
        found, absent = _settled(file.hosts, opened, slots or 1, priority, (found, absent), notice)
    if priced:
        _check_prices(file, found)
    later = "" if slots is not None and priority is None else ", and uses it as soon as it can"
    for error in absent.values():
        notice(f"{error} The run begins without it{later}")
    full = [each for each in found if not each.welcome.free and (priority is None or each.welcome.draining)]
    for each in full:
        why = "drains" if each.welcome.draining else f"has all of its {each.welcome.slots} slots taken"
        notice(f"host {each.welcome.name} ({each.address}) {why}: the run begins without it{later}")
    sharing = check_shared(_written(plan, None if state is None else state.path), file, found, opened)
    needs = {unit: list(words) for unit, words in file.needs.items()}
    for unit, share in sharing.pinned:
        notice(
            f"{share.what} lies in no folder that hosts.toml says is shared: unit {unit!r} stays on host {sharing.host}, "
            "which sees it, and the run ends if that host is lost"
        )
        needs.setdefault(unit, []).append(share.folder)
    offered = {word for each in found for word in each.welcome.offers}
    for unit, words in file.needs.items():
        for word in words:
            if word not in offered:
                raise UsageError(
                    f"unit {unit!r} needs {word!r}, which no host offers: start a node with --offers {word}"
                )
    strategy = file.strategy or ("cheapest" if priced else "spread")
    rules = PlacementRules(strategy, {unit: tuple(words) for unit, words in needs.items()}, dict(file.apart))
    # with few slots the host that some units stay on is the first to be asked for one
    found.sort(key=lambda each: each.welcome.name != sharing.host)
    shares = share_out(found, slots) if priority is None else share_by_priority(found, slots or 1, priority)
    names = {each.welcome.name: each.address for each in found}
    costs = {each.address: each.welcome.slot_price or 0.0 for each in found}
    prices = tuple((costs[address], share) for address, share in shares)
    waiting = (*absent, *(each.address for each in full))
    newcomers = 0 if slots is None or priority is not None else -1
    return HostsSpec(shares, opened.path, rules, newcomers, names, waiting, sharing, prices, priority)


def _survey(
    hosts: Sequence[str], key: ClusterKey, before: str, notice: Callable[[str], None]
) -> tuple[list[Found], dict[str, Unreachable]]:
    """Survey the hosts, and wait for slots that the run `before` this one still holds.

    That one is dead, since its state is ours. Its processes on other hosts end as soon as they find that their driver has gone.
    """
    until = time.monotonic() + LEAVES_WITHIN
    told = False
    while True:
        found, absent = survey(hosts, key)
        left = [each.welcome.name for each in found if any(share.run == before for share in each.welcome.shares)]
        if not left or time.monotonic() >= until:
            return found, absent
        if not told:
            notice(f"waiting for processes of run {before} to end on {', '.join(left)}")
            told = True
        time.sleep(0.1)


def _settled(
    hosts: Sequence[str],
    key: ClusterKey,
    slots: int,
    priority: int,
    surveyed: tuple[list[Found], dict[str, Unreachable]],
    notice: Callable[[str], None],
) -> tuple[list[Found], dict[str, Unreachable]]:
    """Survey the hosts again while slots are short, and runs of lower priority are starting that may be able to give some."""
    until = time.monotonic() + STARTS_WITHIN
    told = False
    while True:
        try:
            share_by_priority(surveyed[0], slots, priority)
        except Unavailable:
            shares = [share for each in surveyed[0] for share in each.welcome.shares]
            lower = [each for each in shares if each.priority is not None and each.priority < priority]
            starting = sorted({each.name for each in lower if each.starting})
        else:
            return surveyed
        if not starting or time.monotonic() >= until:
            return surveyed
        if not told:
            notice(f"waiting for {', '.join(starting)} to start, of lower priority: it may be able to give slots")
            told = True
        time.sleep(0.1)
        surveyed = survey(hosts, key)


def _check_prices(file: HostsFile, found: Sequence[Found]) -> None:
    """Check that a budget in money means something on these hosts. Raises UsageError."""
    for each in found:
        if each.welcome.slot_price is None:
            raise UsageError(unpriced(each.welcome.name))
    if file.strategy not in ("", "cheapest"):
        raise UsageError(
            f'strategy = "{file.strategy}" does not go by the price, and the budget is in money: write strategy = "cheapest", or leave '
            "it out"
        )


def _check_units(plan: Plan, named: Any, where: str) -> None:
    units = {unit.original or name for name, unit in plan.units.items()}
    for unit in named:
        if unit not in units:
            raise UsageError(f"{where} names {unit!r}, which is no unit; there are: {', '.join(sorted(units))}")


def check_params(params: Mapping[str, Any]) -> None:
    """Check that nodes, which do not have the topology's code, can read all parameters. Raises UsageError that names the one."""
    for name, value in params.items():
        own = next(filter(None, map(_own_class, _within(value))), "")
        if own:
            raise UsageError(
                f"parameter {name!r} holds {own}, of your own code, which nodes do not have: pass numbers, texts, lists and dicts, and "
                "make it of these in the topology's function"
            )
        try:
            pack(value)
        except FrameError as error:
            raise UsageError(f"parameter {name!r} cannot be sent to other hosts: {error}") from None


def _within(value: Any) -> Iterator[Any]:
    yield value
    if isinstance(value, Mapping):
        value = [*value, *value.values()]
    if isinstance(value, (list, tuple, set, frozenset)):
        for each in value:
            yield from _within(each)


def _own_class(value: Any) -> str:
    """Return the name of the user's own class or function that this names; empty: none."""
    named = value if isinstance(value, (type, FunctionType)) else type(value)
    return f"{named.__module__}.{named.__qualname__}" if is_own(named.__module__) else ""


def _check_plan(plan: Plan) -> None:
    """Check that all of the plan can be on another machine. Raises UsageError."""
    for name, unit in plan.units.items():
        if unit.spout is not None and unit.spout.reads_command:
            raise UsageError(
                f"unit {name!r} reads what only this command has ({type(unit.spout).__name__}), which other hosts do not have: read files, or a socket"
            )
    for sink in plan.sinks:
        if sink.sink.collects:
            raise UsageError(
                f"sink {sink.name!r} collects rows in the memory of this command, which other hosts do not reach: land them in "
                "JsonLines, Parquet or SparkTable"
            )
        if sink.sink.on_one_host:
            raise UsageError(
                f"sink {sink.name!r} ({type(sink.sink).__name__}) is one server for the whole run, which sub-units on other hosts do not "
                "reach: send the rows to a broker, and push them from there"
            )


def _written(plan: Plan, state: Place | None) -> list[Written]:
    """All that the processes of the run write in folders."""
    written = [] if not isinstance(state, Path) else [Written("the state of the run", state)]
    for name, unit in plan.units.items():
        for sink in unit.sinks:
            if sink.sink.shares_paths:
                paths = sink.sink.written_paths()
                written += [Written(f"sink {sink.name!r}", path, unit.original or name) for path in paths]
        path = getattr(unit.on_error, "path", None)
        if path is not None:
            written.append(Written(f"the dead letters of unit {name!r}", path, unit.original or name))
    return written
