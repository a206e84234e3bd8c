"""Kinds of faults at the edges of a run: all of it at once, its files, its descriptors, its signals, strangers."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import time

import psutil

from bench.faults.kind import DEATH, EITHER, END, NOTHING, Kind, kill
from bench.kit.victim import Lost, Victim

__all__ = ["EDGES"]

#: idle connections of strangers
STRANGERS = 300


def _everything(victim: Victim, order: random.Random, hold: float) -> str:
    assert victim.process is not None
    processes = victim.processes()
    order.shuffle(processes)
    victim.process.kill()
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.kill()
    return END


def _at_a_commit(victim: Victim, order: random.Random, hold: float) -> str:
    """Kill the driver, or another process, as soon as a file of the next checkpoint is there."""
    drivers = victim.titled("driver")
    if not drivers:
        raise Lost("there is no driver")
    victims = [pid for pids in victim.sub_units().values() for pid in pids]
    state = victim.folder / "state"
    before = {path.name for path in state.iterdir()}
    end = time.monotonic() + 2.0
    while time.monotonic() < end and {path.name for path in state.iterdir()} <= before:
        time.sleep(0.001)
    time.sleep(order.choice([0.0, 0.002, 0.01, 0.03]))
    whole = order.random() < 0.5
    kill(drivers[0] if whole else order.choice(victims))
    return END if whole else DEATH


def _ctrl_c(victim: Victim, order: random.Random, hold: float) -> str:
    """Many Ctrl-C in half a second, as from a user who has lost patience; all get it, as from a terminal."""
    assert victim.process is not None
    pid = victim.process.pid
    for _ in range(order.randint(2, 12)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGINT)
        time.sleep(order.uniform(0, 0.1))
    return END


def _sigterm(victim: Victim, order: random.Random, hold: float) -> str:
    """SIGTERM to every process, as systemd does."""
    assert victim.process is not None
    pids = [victim.process.pid, *(process.pid for process in victim.processes())]
    order.shuffle(pids)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    return END


def _no_permission(victim: Victim, order: random.Random, hold: float) -> str:
    """Nothing can be made in the folder of the state for a second: it is immutable, which even root may not pass over."""
    state = victim.folder / "state"
    if subprocess.run(["chattr", "+i", state], capture_output=True, check=False).returncode:
        raise Lost("this file system knows no immutable folders")
    try:
        time.sleep(1.0)
    finally:
        subprocess.run(["chattr", "-i", state], capture_output=True, check=True)
    return EITHER


def _no_descriptors(victim: Victim, order: random.Random, hold: float) -> str:
    """The keeper may open nothing more for a second, and a process dies meanwhile."""
    keepers = victim.titled("keeper")
    if not keepers:
        raise Lost("there is no keeper")
    keeper = psutil.Process(keepers[0])
    before = keeper.rlimit(resource.RLIMIT_NOFILE)
    keeper.rlimit(resource.RLIMIT_NOFILE, (keeper.num_fds(), before[1]))
    try:
        kill(order.choice([pid for pids in victim.sub_units().values() for pid in pids]))
        time.sleep(1.0)
    finally:
        keeper.rlimit(resource.RLIMIT_NOFILE, before)
        for process in victim.processes():  # those that it forked meanwhile have its limit, too
            with contextlib.suppress(psutil.Error):
                process.rlimit(resource.RLIMIT_NOFILE, before)
    return DEATH


def _no_sockets(victim: Victim, order: random.Random, hold: float) -> str:
    """Remove the files of sockets."""
    for path in victim.run_dir().iterdir():
        if path.suffix in (".data", ".express") and order.random() < 0.5:
            path.unlink(missing_ok=True)
    return NOTHING


def _no_folder(victim: Victim, order: random.Random, hold: float) -> str:
    """Remove the run's folder: it is made again."""
    shutil.rmtree(victim.run_dir(), ignore_errors=True)
    return NOTHING


def _freeze_driver(victim: Victim, order: random.Random, hold: float) -> str:
    pids = victim.titled("driver")
    os.kill(pids[0], signal.SIGSTOP)
    time.sleep(order.uniform(0.2, 2.0))
    os.kill(pids[0], signal.SIGCONT)
    return NOTHING


def _strangers(victim: Victim, order: random.Random, hold: float) -> str:
    """Idle connections at one of its sockets."""
    paths = [
        path for path in victim.run_dir().iterdir() if path.suffix in (".data", ".express") or path.name == "control"
    ]
    path = str(order.choice(paths))
    with contextlib.ExitStack() as stack:
        for _ in range(STRANGERS):
            stranger = stack.enter_context(socket.socket(socket.AF_UNIX))
            stranger.settimeout(0.05)
            with contextlib.suppress(OSError):
                stranger.connect(path)
        time.sleep(0.5)
    return NOTHING


EDGES = (
    Kind("kill everything at once", _everything, 4, False),
    Kind("kill at the moment of a commit", _at_a_commit, 6, False),
    Kind("a storm of Ctrl-C", _ctrl_c, 3, False),
    Kind("SIGTERM to every process", _sigterm, 2, False),
    Kind("a folder of state without permission", _no_permission, 2, False),
    Kind("no descriptors in the keeper, and a death", _no_descriptors, 3, False),
    Kind("files of sockets removed", _no_sockets, 3),
    Kind("the run's folder removed", _no_folder, 2),
    Kind("freeze the driver (SIGSTOP)", _freeze_driver, 2),
    Kind("idle strangers at a socket", _strangers, 3),
)
