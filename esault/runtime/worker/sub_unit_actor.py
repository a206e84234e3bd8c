"""The actor of a sub-unit or an ack server: control messages in and out; the data loop runs beside it."""

from __future__ import annotations

import errno
import os
import sys
from types import MappingProxyType
from typing import Any

from esault.counters import counted
from esault.messages.control import Build, DumpThreads, Failed, Stopped, ThreadDump
from esault.runtime.actors.actor import ReportingActor
from esault.runtime.actors.guard import signer
from esault.runtime.messages import ChildSpec, Messages, Pid, Wake
from esault.runtime.net.status_pipe import StatusWriter
from esault.runtime.process.console import MarkedStream
from esault.runtime.process.log_records import RecordHandler, log_through
from esault.runtime.process.threads import dump_threads
from esault.runtime.process.title import set_title
from esault.runtime.process.waker import Waker
from esault.runtime.worker.acker_loop import AckerLoop
from esault.runtime.worker.data_loop import DataLoop, SubUnitLoop

__all__ = ["NOT_BEGUN", "UNHEARD", "SubUnitActor"]


#: exit codes of a process that could not begin, and the error that it met: no thread, no descriptor or none on the machine, no memory
NOT_BEGUN = MappingProxyType(
    {
        os.EX_TEMPFAIL: errno.EAGAIN,
        os.EX_OSFILE: errno.EMFILE,
        os.EX_CANTCREAT: errno.ENFILE,
        os.EX_UNAVAILABLE: errno.ENOMEM,
    }
)
#: exit code of one whose messages did not reach the driver
UNHEARD = os.EX_PROTOCOL
_EXIT_CODES = {error: code for code, error in NOT_BEGUN.items()}


class SubUnitActor(ReportingActor):
    """Born by fork of the keeper, with all it must know; begins at `Wake`."""

    def __init__(self, requirements: ChildSpec) -> None:
        super().__init__()
        birth = self._birth = requirements
        self.reporter = birth.driver
        #: messages that the data loop had for the driver
        self._count = 0
        # Made now, begun at `Wake`: that comes from the keeper, and the driver's first words may overtake it.
        loop = SubUnitLoop if birth.build.unit else AckerLoop
        try:
            self._waker = Waker()
            self._loop: DataLoop = loop(birth.spec, birth.build, self._waker.wake)
        except OSError as error:
            if error.errno in _EXIT_CODES:  # the keeper tries again; a death would count against the run
                os._exit(_EXIT_CODES[error.errno])
            raise

    def undelivered(self, address: Any, number: int) -> None:
        """End this process: what the driver was told would be waited for ever. A death is dealt with."""
        if address == self._birth.driver:
            print(
                f"{counted(number, 'message')} did not reach the driver: this process ends", file=sys.stderr, flush=True
            )
            os._exit(UNHEARD)

    def receiveMsg_Wake(self, message: Wake, sender: Any) -> None:
        """Begin."""
        spec, build = self._birth.spec, self._birth.build
        self._streams = [MarkedStream(spec.console_fd, "", number) for number in (1, 2)]
        sys.stdout, sys.stderr = self._streams
        self._log = RecordHandler(spec.console_fd, "", {"run": spec.run, "topology": spec.name, "host": spec.host})
        self._name(build)
        log_through(self._log)
        self.watch(self._waker.fileno(), self._send_out)
        self._loop.statuses = StatusWriter(spec.run_dir, signer().dumps)
        try:
            self._loop.start()
        except RuntimeError:  # no further thread is allowed: the keeper tries again
            os._exit(_EXIT_CODES[errno.EAGAIN])
        self.send(sender, Pid(build.incarnation, os.getpid()))  # the keeper can end it from now on

    def _name(self, build: Build) -> None:
        """Say everywhere which sub-unit this process is."""
        mark = f"{build.unit or 'ack-server'}/{build.incarnation}"
        set_title(f"esault {self._birth.spec.name} {mark}")
        self._finish_lines()
        for stream in self._streams:
            stream.rename(mark)
        self._log.rename(mark, build.unit or "ack-server", build.incarnation)

    def _finish_lines(self) -> None:
        for stream in self._streams:
            stream.finish()

    def _send_out(self) -> None:
        self._waker.clear()
        messages = []
        while self._loop.outbox:
            messages.append(self._loop.outbox.popleft())
        if messages:
            if any(isinstance(m, Failed | Stopped) for m in messages):
                self._finish_lines()
            self._count += len(messages)
            self.send(self._birth.driver, Messages(tuple(messages), os.getpid(), self._count))

    def receiveMsg_Messages(self, message: Messages, sender: Any) -> None:
        """Control messages for the core; a Build makes this process another sub-unit."""
        for each in message.messages:
            if isinstance(each, Build):
                self._name(each)
            if isinstance(each, DumpThreads):  # the data loop is in a call that does not return
                dump = ThreadDump(each.incarnation, *dump_threads(self._loop.ident))
                self.send(self._birth.driver, Messages((dump,)))
            else:
                self._loop.messages.append(each)
        self._loop.wake()
