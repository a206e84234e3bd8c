"""The kinds of faults, each a function of the simulation: it does one, says so in the history, and returns whether it could."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from bench.simulation.life import AT
from bench.simulation.process import Process

if TYPE_CHECKING:
    from bench.simulation.simulation import Simulation

__all__ = ["ALWAYS", "KINDS", "befall"]

Fault = Callable[["Simulation", random.Random], bool]


def _processes(simulation: Simulation) -> list[Process]:
    life = simulation.life
    machines = life.machines.values()
    return [p for machine in machines if not machine.over for p in machine.processes.values() if not p.gone]


def _name(process: Process) -> str:
    return f"{process.unit}/{process.incarnation}"


def kill_process(simulation: Simulation, r: random.Random) -> bool:
    """A process is killed."""
    found = _processes(simulation)
    if not found:
        return False
    victim = r.choice(found)
    simulation.tell(f"fault: {_name(victim)} is killed")
    victim.machine.kill(victim.incarnation, "killed")
    return True


def freeze_process(simulation: Simulation, r: random.Random) -> bool:
    """A process stands still for a while."""
    found = [process for process in _processes(simulation) if not process.frozen]
    if not found:
        return False
    victim, seconds = r.choice(found), r.choice([0.1, 1.0, 4.0, 20.0, 45.0]) * r.uniform(0.5, 1.5)
    simulation.tell(f"fault: {_name(victim)} stands still for {seconds:.1f} s")
    victim.freeze()
    simulation.events.after(seconds, "thaw", victim.thaw)
    return True


def slow_process(simulation: Simulation, r: random.Random) -> bool:
    """A process has little of the processor for a while."""
    found = _processes(simulation)
    if not found:
        return False
    victim, seconds = r.choice(found), r.uniform(1.0, 30.0)
    victim.slowness = r.choice([10.0, 100.0])
    simulation.tell(f"fault: {_name(victim)} is {victim.slowness:g} times as slow for {seconds:.1f} s")
    simulation.events.after(seconds, "quick", setattr, victim, "slowness", 1.0)
    return True


def freeze_driver(simulation: Simulation, r: random.Random) -> bool:
    """The driver stands still for a while."""
    life = simulation.life
    if life.frozen:
        return False
    seconds = r.choice([0.3, 1.5, 2.2, 4.0, 10.0]) * r.uniform(0.8, 1.2)
    simulation.tell(f"fault: the driver stands still for {seconds:.1f} s")
    life.freeze()
    simulation.events.after(seconds, "thaw", simulation.thaw_driver, life)
    return True


def slow_network(simulation: Simulation, r: random.Random) -> bool:
    """Everything is long under way for a while."""
    network, seconds = simulation.network, r.uniform(1.0, 30.0)
    network.slowness = r.choice([10.0, 100.0])
    simulation.tell(f"fault: all is {network.slowness:g} times as long under way for {seconds:.1f} s")
    simulation.events.after(seconds, "quick", setattr, network, "slowness", 1.0)
    return True


def cut(simulation: Simulation, r: random.Random) -> bool:
    """A way between two machines is cut for a while, or one direction of it, or all ways of a host."""
    names = [AT, *simulation.life.machines]
    if len(names) < 2 or simulation.life.cluster is None:
        return False
    seconds = r.choice([0.3, 1.5, 2.4, 4.0, 12.0, 30.0]) * r.uniform(0.8, 1.2)
    one, other = r.sample(names, 2)
    how = r.choice(["one way", "both ways", "both ways", "off"])
    ways = [(one, other)] if how == "one way" else [(one, other), (other, one)]
    if how == "off":
        one = r.choice(names[1:])
        ways = [way for name in names if name != one for way in ((one, name), (name, one))]
        simulation.tell(f"fault: {one} is cut off for {seconds:.1f} s")
    else:
        simulation.tell(f"fault: the way from {one} to {other} is cut, {how}, for {seconds:.1f} s")
    for source, target in ways:
        simulation.life.cut(source, target)
        simulation.events.after(seconds, "heal", simulation.heal, source, target)
    return True


def reset(simulation: Simulation, r: random.Random) -> bool:
    """A connection of the data path between two machines ends, with what is under way."""
    found = [link for link in simulation.life.far_links if not link.closed]
    if not found:
        return False
    link = r.choice(found)
    lost = link.lose()
    simulation.tell(f"fault: the connection from {link.machine} to {link.endpoint} is reset, {lost} frames are lost")
    return True


def freeze_host(simulation: Simulation, r: random.Random) -> bool:
    """A whole machine stands still for a while; its clock may not know."""
    life = simulation.life
    found = [machine for machine in life.machines.values() if not machine.frozen and not machine.over]
    if life.cluster is None or not found:
        return False
    victim, seconds = r.choice(found), r.choice([0.3, 1.5, 2.2, 3.0, 10.0]) * r.uniform(0.8, 1.2)
    behind = r.random() < 0.5
    simulation.tell(
        f"fault: host {victim.name} stands still for {seconds:.1f} s{', and so does its clock' if behind else ''}"
    )
    victim.freeze()
    life.watch(victim)
    simulation.events.after(seconds, "thaw", simulation.thaw_host, victim, seconds if behind else 0.0)
    return True


def kill_host(simulation: Simulation, r: random.Random) -> bool:
    """A machine loses its power, and comes back."""
    life = simulation.life
    found = [machine for machine in life.machines.values() if not machine.over]
    if life.cluster is None or not found:
        return False
    victim, seconds = r.choice(found), r.uniform(0.5, 20.0)
    simulation.tell(f"fault: host {victim.name} loses its power for {seconds:.1f} s")
    simulation.power_off(victim, seconds)
    return True


def clock_jumps(simulation: Simulation, r: random.Random) -> bool:
    """The clock of a machine is ahead from now on."""
    name, seconds = r.choice([AT, *simulation.life.machines]), r.choice([0.05, 1.0, 4.0])
    simulation.tell(f"fault: the clock of {name} jumps by {seconds:g} s")
    simulation.offsets[name] = simulation.offsets.get(name, 0.0) + seconds
    return True


def forks_fail(simulation: Simulation, r: random.Random) -> bool:
    """No process can be made on a machine for a while."""
    found = [machine for machine in simulation.life.machines.values() if not machine.over]
    if not found:
        return False
    victim, seconds = r.choice(found), r.choice([0.5, 3.0, 12.0])
    simulation.tell(f"fault: no process can be made on {victim.name} for {seconds:g} s")
    victim.full_until = simulation.events.now + seconds
    return True


def forks_are_slow(simulation: Simulation, r: random.Random) -> bool:
    """Forks on a machine take seconds for a while."""
    found = [machine for machine in simulation.life.machines.values() if not machine.over]
    if not found:
        return False
    victim, seconds = r.choice(found), r.uniform(5.0, 30.0)
    simulation.tell(f"fault: forks on {victim.name} take long for {seconds:.1f} s")
    victim.slow_forks = True
    simulation.events.after(seconds, "quick", setattr, victim, "slow_forks", False)
    return True


def sinks_fail(simulation: Simulation, r: random.Random) -> bool:
    """Tables cannot be written for a while."""
    seconds = r.choice([0.2, 2.0, 9.0])
    simulation.tell(f"fault: tables cannot be written for {seconds:g} s")
    simulation.outside.away_until = simulation.events.now + seconds
    return True


def _disk_for(said: str, until: str, choices: tuple[float, ...]) -> Fault:
    """A fault of the disk of the state for a while: `until` is the attribute of `Disk` that says when it ends."""

    def befall(simulation: Simulation, r: random.Random) -> bool:
        if simulation.disk is None or (until == "lying_until" and not simulation.scenario.disk_lies):
            return False
        seconds = r.choice(choices)
        simulation.tell(f"fault: {said} for {seconds:g} s")
        setattr(simulation.disk, until, simulation.events.now + seconds)
        return True

    return befall


def cut_power(simulation: Simulation, r: random.Random) -> bool:
    """The machine of the driver and of the state loses its power: what was not made durable may be gone."""
    if simulation.disk is None:
        return False
    simulation.life.lose_power()
    if simulation.disk.lies:
        simulation.tell("the disk had lied: from here on rows may be doubled, and none may be missing")
        simulation.lied_to = True
    changed = simulation.disk.cut_power(r)
    simulation.tell(f"fault: the power fails, {changed} files are not what they were")
    return True


def kill_run(simulation: Simulation, r: random.Random) -> bool:
    """The driver is killed, and so the run; another one goes on."""
    simulation.tell("fault: the driver is killed")
    simulation.life.kill()
    return True


def stop_run(simulation: Simulation, r: random.Random) -> bool:
    """The run is ended by hand, in order; another one goes on."""
    if simulation.life.frozen:
        return False
    simulation.tell("fault: the run is stopped by hand")
    simulation.life.driver.drain(simulation.life.now())
    simulation.life._carry()
    return True


#: kind -> (weight, what does it); those of `ALWAYS` cost nothing without checkpoints either
KINDS: dict[str, tuple[int, Fault]] = {
    "killed process": (6, kill_process),
    "frozen process": (4, freeze_process),
    "slow process": (2, slow_process),
    "frozen driver": (2, freeze_driver),
    "slow network": (2, slow_network),
    "cut way": (6, cut),
    "reset connection": (2, reset),
    "frozen host": (3, freeze_host),
    "host without power": (2, kill_host),
    "clock that jumps": (1, clock_jumps),
    "forks that fail": (1, forks_fail),
    "slow forks": (1, forks_are_slow),
    "sinks that fail": (2, sinks_fail),
    "full disk": (2, _disk_for("the disk of the state is full", "full_until", (0.5, 5.0, 40.0))),
    "fsync that fails": (2, _disk_for("fsync fails now and then", "failing_until", (0.5, 5.0, 40.0))),
    "disk that lies": (2, _disk_for("the disk lies", "lying_until", (5.0, 40.0, 300.0))),
    "power cut": (2, cut_power),
    "killed run": (1, kill_run),
    "stopped run": (1, stop_run),
}
ALWAYS = frozenset(KINDS) - {
    "sinks that fail",
    "full disk",
    "fsync that fails",
    "disk that lies",
    "power cut",
    "killed run",
    "stopped run",
}


def befall(simulation: Simulation, r: random.Random) -> None:
    """Have one of them happen, if it can now."""
    kinds = {name: each for name, each in KINDS.items() if simulation.exactly or name in ALWAYS}
    name = r.choices(list(kinds), [weight for weight, _ in kinds.values()])[0]
    if kinds[name][1](simulation, r):
        simulation.history.counts["faults"] += 1
        simulation.history.counts[f"fault: {name}"] += 1
