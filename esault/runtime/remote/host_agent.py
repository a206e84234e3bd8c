"""The host agent: stands for the driver on another host. The keeper and the sub-units of that host talk to it as if it were the driver.

It carries control messages between them and the driver's process, over one connection (`driver_line`), and probes the sub-units
of its host, so that a probe's time is what a tuple suffers there and not the way to the driver.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from typing import Any

from esault.cluster.messages import (
    Detach,
    FromSubUnits,
    OutputLine,
    ProbeReadings,
    ProbeTargets,
    ProcessDied,
    ToKeeper,
    ToSubUnit,
)
from esault.messages.control import Exited, Failed, Fork, NotForked
from esault.messages.probe import ProbeReading
from esault.runtime.actors.actor import UnknownMessage
from esault.runtime.messages import (
    DriverStarted,
    Leave,
    Messages,
    Notice,
    RunEnded,
    RunSpec,
    StartKeeper,
)
from esault.runtime.net.secure_links import Endpoint
from esault.runtime.process.console import ConsoleReader, MarkedStream
from esault.runtime.process.lease import LeaseHolder
from esault.runtime.process.log_records import RecordHandler, log_through
from esault.runtime.process.owner import Owner
from esault.runtime.process.title import set_title
from esault.runtime.process.usage import host_usage
from esault.runtime.remote.driver_connection import DriverConnection
from esault.runtime.worker.probe_loop import ProbeLoop, probe_endpoint
from esault.runtime.worker.supervisor import Supervisor
from esault.value_class import value_class

__all__ = ["HostAgent", "Opened", "Receive"]

#: seconds between two looks, and between two reports of the host's load
TICK, HOST_EVERY = 0.1, 0.5
#: words that may wait for the driver before user code that prints must wait
MOST_WAITING = 2000


@value_class(frozen=True)
class Receive:
    """StartHost to host agent: let the driver of this run in; the keeper forks."""

    spec: RunSpec
    keeper: Any
    #: the reading end of the console pipe, inherited
    console_read_fd: int


@value_class(frozen=True)
class Opened:
    """HostAgent to host process: the driver can come in there."""

    port: int


class HostAgent(Supervisor):
    """See the module."""

    def __init__(self) -> None:
        super().__init__()
        self._spec: RunSpec | None = None
        self._host_process: Any = None
        self._line: DriverConnection | None = None
        self._prober: ProbeLoop | None = None
        self._readings: list[ProbeReading] = []
        self._usage = host_usage("")
        self._usage_at = 0.0
        self._over = False

    def receiveMsg_Receive(self, message: Receive, sender: Any) -> None:
        """The first message."""
        spec = self._spec = message.spec
        assert spec.host_context is not None
        self._host_process, self.keeper = sender, message.keeper
        set_title(f"esault {spec.name} agent")
        sys.stdout = sys.stderr = MarkedStream(spec.console_fd, f"agent@{spec.host_context.host}")
        about = {"run": spec.run, "topology": spec.name, "host": spec.host_context.host}
        log_through(RecordHandler(spec.console_fd, f"agent@{spec.host_context.host}", about))
        self._usage = host_usage(spec.host_context.host)
        self.send(self._host_process, DriverStarted(Owner.current()))
        self.take_reports(spec.run_dir)
        self.send(self.keeper, StartKeeper(spec, Owner.current()))
        self._line = DriverConnection(
            spec.run,
            spec.host_context.address,
            spec.host_context.key,
            LeaseHolder(spec.host_context.lease),
            self.waker.wake,
        )
        self.watch(self.waker.fileno(), self._read)
        self._line.start()
        ConsoleReader(self._heard, message.console_read_fd).start()
        self.send(self._host_process, Opened(self._line.port))
        self.tick_after(TICK)

    # from the driver ---------------------------------------------------------------------------------

    def _read(self) -> None:
        self.waker.clear()
        assert self._line is not None
        while self._line.inbox:
            self._take(self._line.inbox.popleft())
        if self._line.over is not None:
            self._end(self._line.over)

    def _take(self, word: Any) -> None:
        assert self._spec is not None
        if isinstance(word, ToSubUnit):
            self.deliver(word.incarnation, word.messages)
        elif isinstance(word, ToKeeper):
            message = word.message
            if isinstance(message, Fork):
                probes = probe_endpoint(self._spec.run_dir) if message.build.probes else ""
                message = replace(message, build=replace(message.build, probes=probes))
            self.send(self.keeper, message)
        elif isinstance(word, ProbeTargets):
            self._probe(word)
        elif isinstance(word, Detach):
            self._end(word.text)
        else:
            self._report(UnknownMessage("HostAgent", type(word).__name__, str(word)[:500]))

    def _probe(self, word: ProbeTargets) -> None:
        assert self._spec is not None
        if self._prober is None:
            self._prober = ProbeLoop(self._spec.run_dir, word.epoch, self._spec.clock_offset)
            self._prober.start()
        near = {i: (Endpoint.read(endpoint).local, period) for i, (endpoint, period) in word.targets.items()}
        self._prober.probe(near, word.epoch)

    # from this host ----------------------------------------------------------------------------------

    def _say(self, message: Any) -> None:
        if self._line is not None:
            self._line.say(message)

    def _heard(self, mark: str, text: str) -> None:
        """In the console's thread: user code printed a line."""
        assert self._line is not None and self._spec is not None and self._spec.host_context is not None
        while self._line.waiting > MOST_WAITING and self._line.over is None:
            time.sleep(0.01)
        self._line.say(OutputLine(mark, text))

    def receiveMsg_Messages(self, message: Messages, sender: Any) -> None:
        """From a sub-unit or an ack server."""
        self._say(FromSubUnits(tuple(self.in_order(message))))

    def receiveMsg_Exited(self, message: Exited, sender: Any) -> None:
        """A process died."""
        self.exited(message)
        self._say(ProcessDied(message.incarnation, message.reason))

    def receiveMsg_NotForked(self, message: NotForked, sender: Any) -> None:
        """A process could not be made."""
        self._say(FromSubUnits((message,)))

    def engine_failed(self, text: str) -> None:
        """Pass it on as if a sub-unit had failed."""
        self._say(FromSubUnits((Failed(0, "", text),)))

    def tick(self) -> None:
        """Report what the probes and this host say, and look after the keeper."""
        if self._over:
            return
        now = time.monotonic()
        self.mend_reports(now)
        if reports := self.reports():
            self._say(FromSubUnits(tuple(reports)))
        if self._prober is not None:
            self._readings += self._prober.take_readings()
        usage = None
        if now >= self._usage_at:
            self._usage_at = now + HOST_EVERY
            usage = self._usage()
        if self._readings or usage is not None:
            self._say(ProbeReadings(tuple(self._readings), usage))
            self._readings.clear()
        if self.keeper_died():
            self._end("its keeper's process died (was it killed?)")
            return
        self.tick_after(TICK)

    def _end(self, why: str) -> None:
        """Nothing more is done here: the host process ends all processes."""
        if self._over:
            return
        self._over = True
        self._say(Detach(why))
        if self._prober is not None:
            self._prober.stop()
        self.send(self.keeper, Leave())
        self.send(self._host_process, Notice(why))
        self.send(self._host_process, RunEnded(None))
