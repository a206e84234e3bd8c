"""Runs that have slots on a node: a process each (`runtime.remote.host_process`), which the node starts and which dies with it."""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import esault
from esault.cluster.codec import pack
from esault.cluster.messages import HostStarted, Refusal, StartHost
from esault.cluster.slot_messages import SlotDemand, SlotGrant
from esault.cluster.slot_pool import SlotPool
from esault.cluster.survey import Unavailable
from esault.cluster.versions import installed
from esault.errors import UsageError

__all__ = ["HostProcesses"]

log = logging.getLogger("esault.node")

#: Program of a run's first process, before its arguments. `-m` would look for modules in the folder in which the node was started,
#: before all others: a `secrets.py` that another user left there was run. So the folder goes before anything is imported.
_CODE = """import sys
sys.path[:] = [*(each for each in sys.path if each), sys.argv.pop(1)]
from esault.runtime.remote.host_process import main
sys.exit(main(sys.argv[1:]))"""
_PROGRAM = (sys.executable, "-c", _CODE, str(Path(esault.__file__).parents[1]))


@dataclass
class _HostProcess:
    run: str
    name: str
    #: the file with what was asked for; the process removes it
    order: str
    process: subprocess.Popen[bytes]
    #: tells who asked for it; None when it has been told
    answer: Callable[[Any], None] | None
    #: the connection that asked for it, and is told what it may hold
    caller: object
    tell: Callable[[Any], None]
    #: slots that it was told to hold last
    granted: int = 0
    said: bytearray = field(default_factory=bytearray)


class HostProcesses:
    """See the module. `look` now and then: who has ended."""

    def __init__(self, node: str, host: str, slots: int, select: selectors.BaseSelector) -> None:
        """`node`: its name; `host`: where host processes listen; `select` calls what is registered."""
        self._node, self._host = node, host
        self.pool = SlotPool(slots)
        self._select = select
        self._all: dict[str, _HostProcess] = {}
        #: of runs that wait for slots of others: what was asked for, who is told, and who asked
        self._waiting: dict[str, tuple[StartHost, Callable[[Any], None], object]] = {}

    def __len__(self) -> int:
        return len(self._all)

    def start(self, order: StartHost, answer: Callable[[Any], None], caller: object = None) -> None:
        """Make room for a run; `answer` is given `HostStarted` or `Refusal` once, and what it may hold later.

        Raises UsageError where there is none.
        """
        if order.run in self._all or order.run in self._waiting:
            raise Unavailable(f"run {order.run} is just leaving host {self._node}")
        who = ", ".join(f"{each.name} has {each.slots}" for each in self.pool.shares())
        try:
            at_once = self.pool.admit(order.run, order.name, order.slots, order.priority)
        except ValueError:
            raise Unavailable(
                f"host {self._node} has {self.pool.free} of {self.pool.slots} slots free, not {order.slots} ({who or 'no run is here'})"
            ) from None
        if not at_once:
            self._waiting[order.run] = order, answer, caller
            log.info("run %s (%s) waits for slots of runs of lower priority", order.run, order.name)
            return
        try:
            self._start(order, answer, caller)
        except UsageError:
            self.pool.leave(order.run)
            raise

    def demand(self, caller: object, word: SlotDemand) -> None:
        """Take what the run of this caller says that it holds and wants."""
        for each in self._all.values():
            if each.caller is caller:
                self.pool.demand(each.run, word)

    def hung_up(self, caller: object) -> None:
        """Forget what this caller waits for, and end processes that it will never enter: it was not told yet where they listen."""
        for hosted in self._all.values():
            if hosted.caller is caller and hosted.answer is not None:
                hosted.answer = None
                hosted.process.kill()
        for run in [run for run, (_, _, who) in self._waiting.items() if who is caller]:
            del self._waiting[run]
            self.pool.leave(run)

    def refuse_waiting(self, why: str) -> None:
        """Let no run begin here that waits."""
        for run, (_, answer, _) in list(self._waiting.items()):
            del self._waiting[run]
            self.pool.leave(run)
            answer(Refusal(why, for_now=True))

    def divide(self, now: float) -> None:
        """Divide the slots anew: tell runs what they may hold, and start those that have waited."""
        for run, grant in self.pool.step(now).items():
            if run in self._all:
                self._log(self._all[run], grant)
                self._all[run].tell(grant)
        for run, (order, answer, caller) in list(self._waiting.items()):
            if not self.pool.begun(run):
                continue
            del self._waiting[run]
            try:
                self._start(order, answer, caller)
            except UsageError as error:
                self.pool.leave(run)
                answer(Refusal(str(error)))

    def _log(self, hosted: _HostProcess, grant: SlotGrant) -> None:
        held = self.pool.claims[hosted.run].held
        if grant.slots < held and grant.slots != hosted.granted:
            log.info(
                "run %s (%s) is preempted: it is to come down from %d slots to %d",
                hosted.run,
                hosted.name,
                held,
                grant.slots,
            )
        hosted.granted = grant.slots

    def _start(self, order: StartHost, answer: Callable[[Any], None], caller: object) -> None:
        path = ""
        try:
            fd, path = tempfile.mkstemp(prefix="esault-host-")  # readable by this user alone
            with open(fd, "wb") as file:
                file.write(pack(order))
            process = subprocess.Popen(
                [*_PROGRAM, path, self._node, self._host, str(os.getpid()), installed()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:  # no memory, no room, too many files: other runs go on
            with contextlib.suppress(OSError):
                os.unlink(path)
            raise UsageError(f"host {self._node} cannot start a process for the run: {error}") from None
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        hosted = self._all[order.run] = _HostProcess(order.run, order.name, path, process, answer, caller, answer)
        self._select.register(process.stdout, selectors.EVENT_READ, lambda: self._hear(hosted))
        log.info("run %s (%s) has %d slots on node %s", order.run, order.name, order.slots, self._node)

    def _hear(self, hosted: _HostProcess) -> None:
        assert hosted.process.stdout is not None
        data = hosted.process.stdout.read(65536)
        if data == b"":
            self._select.unregister(hosted.process.stdout)
        elif data is not None and hosted.answer is not None:
            self._said(hosted, data)

    def _said(self, hosted: _HostProcess, data: bytes) -> None:
        """It says one line, and nothing behind it that counts."""
        hosted.said += data
        line, newline, _ = bytes(hosted.said).partition(b"\n")
        if not newline:
            return
        word, _, rest = line.decode("utf-8", "replace").partition(" ")
        if word == "port" and rest.isdigit():
            self._tell(hosted, HostStarted(hosted.run, int(rest)))
        else:
            self._tell(hosted, Refusal(rest.replace("\\n", "\n"), for_now=word == "later"))

    def _tell(self, hosted: _HostProcess, answer: HostStarted | Refusal) -> None:
        tell, hosted.answer = hosted.answer, None
        if tell is not None:
            tell(answer)

    def look(self) -> None:
        """Give back the slots of runs that have ended."""
        for hosted in list(self._all.values()):
            if hosted.process.poll() is not None:
                self._ended(hosted)

    def _ended(self, hosted: _HostProcess) -> None:
        del self._all[hosted.run]
        self.pool.leave(hosted.run)
        stdout = hosted.process.stdout
        assert stdout is not None
        with contextlib.suppress(KeyError, ValueError):
            self._select.unregister(stdout)
        if hosted.answer is not None:
            self._said(hosted, stdout.read(65536) or b"")  # why, maybe, just before it ended
        stdout.close()
        with contextlib.suppress(OSError):
            os.unlink(hosted.order)
        code = hosted.process.returncode
        text = f"the run's first process on host {self._node} ended at once (exit code {code}); see its log"
        self._tell(hosted, Refusal(text))
        log.info("run %s has left node %s", hosted.run, self._node)

    def close(self) -> None:
        """End all."""
        for hosted in self._all.values():
            hosted.process.kill()
        for hosted in self._all.values():
            hosted.process.wait()
            if hosted.process.stdout is not None:
                hosted.process.stdout.close()
            with contextlib.suppress(OSError):
                os.unlink(hosted.order)
