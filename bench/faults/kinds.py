"""Kinds of faults, each a function that makes it happen and returns what must come of it."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import socket
import time
from collections.abc import Callable

import msgpack
import psutil

from bench.faults.edges import EDGES
from bench.faults.host_kinds import HOSTS
from bench.faults.kind import DEATH, EITHER, END, NOTHING, Kind, kill
from bench.faults.topology import SLOW
from bench.kit.victim import Lost, Victim
from esault.runtime.net.links import HEADER, PREFACE

__all__ = ["CHANGE", "KINDS", "kill_any", "of_hosts", "of_programs"]


def _kill_of(unit: str) -> Callable[[Victim, random.Random, float], str]:
    def happen(victim: Victim, order: random.Random, hold: float) -> str:
        kill(order.choice(victim.sub_units()[unit]))
        return DEATH

    return happen


def _kill_two(victim: Victim, order: random.Random, hold: float) -> str:
    everybody = [pid for pids in victim.sub_units().values() for pid in pids]
    for pid in order.sample(everybody, 2):
        kill(pid)
    return DEATH


def _kill_titled(title: str, follows: str) -> Callable[[Victim, random.Random, float], str]:
    def happen(victim: Victim, order: random.Random, hold: float) -> str:
        found = victim.titled(title)
        if not found:
            raise Lost(f"there is no {title}")
        kill(order.choice(found))
        return follows

    return happen


def _kill_command(victim: Victim, order: random.Random, hold: float) -> str:
    assert victim.process is not None
    victim.process.kill()
    return END


def _freeze(victim: Victim, order: random.Random, hold: float) -> str:
    pid = order.choice([*(p for pids in victim.sub_units().values() for p in pids), *victim.titled("ack-server")])
    os.kill(pid, signal.SIGSTOP)
    time.sleep(hold)
    os.kill(pid, signal.SIGCONT)
    return NOTHING


def _change(victim: Victim, order: random.Random, hold: float) -> str:
    status = victim.status()
    unit = order.choice(victim.bolts)
    width = next(u["sub_units"] for u in status["units"] if u["name"] == unit)
    kinds = ["move"] + (["split"] if width < 4 else []) + (["merge"] if width > 1 else [])
    victim.ask(do="change", unit=unit, kind=order.choice(kinds))
    return NOTHING


def _kill_in_change(victim: Victim, order: random.Random, hold: float) -> str:
    everybody = [pid for pids in victim.sub_units().values() for pid in pids]
    _change(victim, order, hold)
    time.sleep(order.uniform(0, 0.15))
    kill(order.choice(everybody))
    return DEATH


def _slow(victim: Victim, order: random.Random, hold: float) -> str:
    (victim.folder / SLOW).write_text(str(time.time() + 1.0))
    time.sleep(1.0)
    return NOTHING


def _full_disk(victim: Victim, order: random.Random, hold: float) -> str:
    """Files can grow no more, for a second: to the process it is what a full disk is."""
    pids = victim.titled("driver") + [pid for pids in victim.sub_units().values() for pid in pids]
    chosen = [psutil.Process(pid) for pid in order.sample(pids, 2)]
    before = [process.rlimit(resource.RLIMIT_FSIZE) for process in chosen]
    for process, (_, hard) in zip(chosen, before):
        process.rlimit(resource.RLIMIT_FSIZE, (0, hard))
    time.sleep(1.0)
    for process, limits in zip(chosen, before):
        try:
            process.rlimit(resource.RLIMIT_FSIZE, limits)
        except psutil.Error:
            continue  # the run has ended because of it
    return EITHER


def _garbage(victim: Victim, order: random.Random, hold: float) -> str:
    for path in victim.run_dir().iterdir():
        if path.suffix not in (".data", ".express"):
            continue
        with socket.socket(socket.AF_UNIX) as stranger, contextlib.suppress(OSError):
            stranger.settimeout(0.2)
            stranger.connect(str(path))
            if order.randrange(4):  # else already the greeting is nonsense
                stranger.sendall(PREFACE)
            for _ in range(5):
                junk = _nonsense(order)
                stranger.sendall(HEADER.pack(len(junk)) + junk)
    return NOTHING


def _nonsense(order: random.Random) -> bytes:
    kind = order.randrange(4)
    if kind == 0:
        return order.randbytes(order.randint(0, 300))
    frame: bytes = msgpack.packb(
        [
            order.randint(-2, 40),
            order.randint(0, 3),
            order.randint(0, 60),
            order.randint(0, 1000),
            order.choice([None, 1, [], "x"]),
        ]
    )
    return frame if kind == 1 else frame[: order.randint(0, len(frame))] if kind == 2 else frame + order.randbytes(20)


def kill_any(victim: Victim, order: random.Random, hold: float) -> str:
    """Kill a sub-unit, whichever."""
    kill(order.choice([pid for pids in victim.sub_units().values() for pid in pids]))
    return DEATH


CHANGE = "split, merge or move"
KINDS = (
    Kind("kill the spout's sub-unit", _kill_of("numbers"), 8),
    Kind("kill a sub-unit of left", _kill_of("left"), 8),
    Kind("kill a sub-unit of right", _kill_of("right"), 8),
    Kind("kill a sub-unit of count", _kill_of("count"), 12),
    Kind("kill two sub-units at once", _kill_two, 6),
    Kind("kill a sub-unit in mid-change", _kill_in_change, 14),
    Kind("kill an ack server", _kill_titled("ack-server", DEATH), 6),
    Kind("kill the driver, with all units", _kill_titled("driver", END), 3, False),
    Kind("kill the keeper", _kill_titled("keeper", END), 2, False),
    Kind("kill the command", _kill_command, 4, False),
    Kind(CHANGE, _change, 14),
    Kind("freeze a process (SIGSTOP)", _freeze, 2),
    Kind("slow consumers", _slow, 5),
    Kind("full disk", _full_disk, 4, False),
    Kind("garbage on the wire", _garbage, 6),
    *EDGES,
)


def of_programs() -> tuple[Kind, ...]:
    """The kinds that a topology with any units can have."""
    own = [kind for kind in KINDS if not kind.name.startswith(OF_ITS_OWN)]
    return (Kind("kill a sub-unit", kill_any, 30), *own)


#: kinds that are for units of the topology of `bench/faults`
OF_ITS_OWN = ("kill the spout's", "kill a sub-unit of", "slow consumers")

#: who is there on several hosts, too: the keepers and disks there are the hosts', which have kinds of their own
ON_HOSTS = (
    *("kill two sub-units at once", "kill a sub-unit in mid-change", "kill an ack server", "kill the command", CHANGE),
    *(
        "kill the driver, with all units",
        "freeze a process (SIGSTOP)",
        "a storm of Ctrl-C",
        "kill at the moment of a commit",
    ),
)


def of_hosts() -> tuple[Kind, ...]:
    """The kinds for a run on several hosts."""
    own = [kind for kind in KINDS if kind.name in ON_HOSTS]
    return (Kind("kill a sub-unit", kill_any, 15), *own, *HOSTS)
