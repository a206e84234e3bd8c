"""The scenario of a seed: a program of `tests/programs`, its rows over time, settings, hosts and sinks."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from bench.simulation.events import Events
from bench.simulation.outside import Paced
from bench.simulation.tally import tallied
from esault.messages.settings import Settings
from esault.topology.chaining import chain
from esault.topology.plan import Plan
from tests.programs import generate
from tests.programs.generate import Program

__all__ = ["ROW_BY_ROW", "Scenario", "draw"]

#: units whose rows follow from single rows, whatever their state is: what at least once promises can be counted there
ROW_BY_ROW = ("keyed", "says", "by_stream", "waits", "ticks", "batch", "columns", "all")


@dataclass
class Scenario:
    """See the module."""

    seed: int
    program: Program
    settings: Settings
    #: seconds over which the rows come
    seconds: float
    #: spout -> when each of its rows comes, seconds of the simulation
    times: dict[str, Sequence[float]]
    hosts: int
    #: sink -> its kind
    sinks: dict[str, str] = field(default_factory=dict)
    #: seconds between two faults, about; 0: none
    fault_every: float = 0.0
    change_every: float = 0.0
    #: ... between two questions for the state of a key
    ask_every: float = 0.0
    #: whether the disk may lie about `fsync`: then a power cut may double rows
    disk_lies: bool = False

    @cached_property
    def plan(self) -> Plan:
        """The plan of the topology."""
        plan = generate.build(self.program, tallied).plan()
        units = dict(plan.units)
        for name, unit in units.items():
            # A tick each millisecond would be all that happens in a second of virtual time.
            units[name] = replace(
                unit,
                tick_every=None if unit.tick_every is None else 7.0,
                idle_after=None if unit.idle_after is None else 11.0,
            )
        plan = replace(plan, units=units, replay_after=self.settings.replay_after)
        return chain(plan, self.settings.unchained) if self.settings.chaining else plan

    def source(self, name: str, events: Events) -> Paced:
        """A source, as it is opened anew."""
        return Paced(self.program.spouts[name], self.times[name], events)

    def __str__(self) -> str:
        rows = sum(map(len, self.program.spouts.values()))
        return (
            f"{self.program}\n  {rows} rows over {self.seconds:.0f} s, {self.hosts} hosts, checkpoints every "
            f"{self.settings.checkpoint_every:g} s, a fault each {self.fault_every:.0f} s, a change each {self.change_every:.0f} s"
        )


def draw(seed: int, seconds: float) -> Scenario:
    """The scenario of a seed."""
    r = random.Random(f"simulation {seed}")
    program = generate.draw(r.getrandbits(30))
    exactly = program.settings.delivery == "eo"
    if not exactly:  # what can be counted
        while any(unit.kind not in ROW_BY_ROW for unit in program.units.values()):
            program = generate.draw(r.getrandbits(30))
            exactly = program.settings.delivery == "eo"
            if exactly:
                break
    if not exactly:
        units = {name: replace(unit, how=unit.how._replace(ordered=False)) for name, unit in program.units.items()}
        program = replace(program, units=units)
    generate.more_rows(r, program, r.choice([40, 150, 400]))
    every = r.choice([0.5, 5.0, 30.0, 120.0, 300.0]) if exactly else 0.0
    settings = replace(
        program.settings,
        watch_values=False,
        reload_state=False,
        checkpoint_every=every,
        status_every=r.choice([0.25, 1.0, 4.0, 4.0]),
        heartbeat_timeout=r.choice([0.0, 0.0, 15.0]),
        aligned_checkpoint_timeout=r.choice([0.0, 0.05, 1.0]),
        # So long that it replays what nothing else does: a simulation is as long as it.
        replay_after=r.choice([30.0, 300.0]),
    )
    seconds *= r.uniform(0.5, 1.5)
    times: dict[str, Sequence[float]] = {
        name: sorted(r.uniform(0.0, seconds) for _ in rows) for name, rows in program.spouts.items()
    }
    if r.random() < 0.5:  # in bursts
        for name, each in times.items():
            times[name] = [seconds / 8 * round(time / seconds * 8) + 0.001 * i for i, time in enumerate(each)]
    sinks: dict[str, str] = {}
    kinds = ["staged", "staged", "whole"]
    for name in program.units:
        kind = r.choice(kinds)
        sinks[f"{name}-out"] = sinks[f"{name}-late"] = kind if exactly else "staged"
    return Scenario(
        seed,
        program,
        settings,
        seconds,
        times,
        r.choice([1, 1, 2, 3]),
        sinks,
        fault_every=r.choice([0.0, 5.0, 20.0, 60.0, 200.0, 600.0]),
        change_every=r.choice([5.0, 30.0, 100.0, 600.0]),
        ask_every=r.choice([3.0, 30.0, 300.0]),
        disk_lies=exactly and r.random() < 0.1,
    )
