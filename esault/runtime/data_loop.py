"""The data loop of a process: sockets around a core (PROTOCOL section 2), in a thread beside the actor."""

from __future__ import annotations

import contextlib
import gc
import os
import select
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import zmq

from esault.errors import EsaultError
from esault.flow.bolt_unit import BoltSubUnit
from esault.flow.delivery.ack_server import AckServer
from esault.flow.spout_unit import SpoutSubUnit
from esault.flow.sub_unit import SubUnit
from esault.flow.user_error import UserError
from esault.messages.control import Build, Built, Failed, Seats, Stop
from esault.runtime.letters import LetterFile
from esault.runtime.sockets import Inlets, ZmqWire
from esault.runtime.spec import RunSpec
from esault.runtime.usage import process_usage
from esault.state.spool import spooled
from esault.state.vault import FileVault

__all__ = ["AckerLoop", "DataLoop", "SubUnitLoop"]

#: turns between two looks at the sockets
TURNS = 4
#: longest wait, seconds
LONGEST_WAIT = 0.25


class DataLoop(threading.Thread):
    """Owns the sockets and the core of one process.

    `mail` takes control messages from the actor (call `wake` after putting some in); what the core has to say is put
    into `outbox`, and `on_outbox` is called, in this thread.
    """

    def __init__(self, spec: RunSpec, build: Build, on_outbox: Callable[[], None]) -> None:
        super().__init__(name="esault-data", daemon=True)
        self.spec = spec
        self.build = build
        self.mail: deque[Any] = deque()
        self.outbox: deque[Any] = deque()
        self._on_outbox = on_outbox
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self._offset = spec.clock_offset
        self.leave = False

    def clock(self) -> float:
        """Seconds since the epoch, never going back; the same in all processes of the host."""
        return time.monotonic() + self._offset

    def wake(self) -> None:
        """There is mail. Any thread may call this."""
        try:
            os.write(self._wake_write, b"w")
        except BlockingIOError:
            pass  # it is awake, or about to be

    def say(self, message: Any) -> None:
        """A message for the driver."""
        self.outbox.append(message)
        self._on_outbox()

    def run(self) -> None:
        """The thread."""
        context: zmq.Context[Any] = zmq.Context(1)
        inlets = None
        try:
            inlets = Inlets(context, self.spec.run_dir, self.build.incarnation)
            self.serve(context, inlets)
        except (UserError, EsaultError) as error:
            self.say(Failed(self.build.incarnation, self.build.unit, str(error)))
        except BaseException:
            text = f"the engine itself failed in {self.build.unit or 'an ack server'}:\n{traceback.format_exc()}"
            self.say(Failed(self.build.incarnation, self.build.unit, text))
        finally:
            if inlets is not None:
                inlets.close()
            context.destroy(linger=0)

    def serve(self, context: zmq.Context[Any], inlets: Inlets) -> None:
        """Build the core and serve it until it has stopped."""
        raise NotImplementedError

    def _drop_wake_ups(self) -> None:
        try:
            while len(os.read(self._wake_read, 4096)) == 4096:
                pass
        except BlockingIOError:
            pass

    def _wait(self, poller: zmq.Poller, seconds: float) -> None:
        """Until something comes in, or so long. Below a millisecond zmq cannot wait, the operating system can."""
        if seconds < 0.001:
            if not poller.poll(0):
                select.select([self._wake_read], [], [], max(0.0, min(seconds, 0.0005)))
        else:
            poller.poll(int(min(seconds, LONGEST_WAIT) * 1000))


class SubUnitLoop(DataLoop):
    """Serves a sub-unit."""

    core: SubUnit

    def serve(self, context: zmq.Context[Any], inlets: Inlets) -> None:
        spout = self._serve(context, inlets, None)
        while not self.core.stopped:  # this process becomes another sub-unit
            inlets.close()
            inlets = Inlets(context, self.spec.run_dir, self.build.incarnation)
            try:
                spout = self._serve(context, inlets, spout)
            finally:
                inlets.close()

    def _serve(self, context: zmq.Context[Any], inlets: Inlets, spout: Any) -> Any:
        """Until the sub-unit has stopped, or `build` is another one; its spout, which goes on."""
        wire = ZmqWire(context)
        build, spec = self.build, self.spec
        unit = spec.located.build(spec.params).plan().units[build.unit]
        vault = None if spec.state_dir is None else FileVault(Path(spec.state_dir))
        boxes: dict[str | None, LetterFile] = {}

        def letters(path: str | None) -> LetterFile:
            return boxes.setdefault(path, LetterFile(path, build.incarnation))

        core: SubUnit
        if unit.kind == "spout":
            if spec.stdin_fd is not None:
                os.dup2(spec.stdin_fd, 0)
            if spout is not None:
                unit = replace(unit, spout=spout)
            elif spec.state_dir is not None and unit.spooled:
                unit = spooled(unit, Path(spec.state_dir), build.part)
            core = SpoutSubUnit(build, unit, wire, self.clock, letters, None, spec.run_dir, vault)
        else:
            core = BoltSubUnit(build, unit, wire, self.clock, letters, None, spec.run_dir, vault)
        self.core = core
        core.usage = process_usage()
        # What was built lives as long as the process: the collector need not look at it again. Rows travel in
        # columns, so that few containers are born, and a young generation of this size is rarely full.
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 20, 50)
        poller = zmq.Poller()
        poller.register(inlets.express, zmq.POLLIN)
        poller.register(self._wake_read, zmq.POLLIN)
        self.say(Built(build.incarnation, os.getpid(), inlets.endpoint, inlets.express_endpoint))
        always = lambda: True
        may_read = lambda: core.may_read
        reading = False
        while not core.stopped:
            while self.mail:
                message = self.mail.popleft()
                if isinstance(message, Build):
                    self.build = message
                    for sink in core.outputs.sinks:
                        with contextlib.suppress(Exception):  # what it has staged is beyond what all went back to
                            sink.close()
                    core.close()
                    return core.spout if isinstance(core, SpoutSubUnit) else None
                core.handle(message)
            inlets.read(inlets.data, core.read, may_read)
            inlets.read(inlets.express, core.read, always)
            worked = False
            for _ in range(TURNS):
                worked = core.turn()
                if not worked or self.mail:  # a control message waits for no more than one batch
                    break
            if core.outbox:
                self.outbox.extend(core.outbox)
                core.outbox.clear()
                self._on_outbox()
            if worked or self.mail:
                continue
            if core.may_read != reading:
                reading = not reading
                if reading:
                    poller.register(inlets.data, zmq.POLLIN)
                else:
                    poller.unregister(inlets.data)
            for socket in wire.refused:
                poller.register(socket, zmq.POLLOUT)
            self._wait(poller, core.wake_at() - self.clock())
            for socket in wire.refused:
                poller.unregister(socket)
            wire.refused.clear()
            self._drop_wake_ups()
        self.outbox.extend(core.outbox)
        self._on_outbox()
        core.close()
        return None


class AckerLoop(DataLoop):
    """Serves an ack server."""

    def serve(self, context: zmq.Context[Any], inlets: Inlets) -> None:
        build = self.build
        core = AckServer(build.incarnation, build.epoch, build.settings, ZmqWire(context))
        poller = zmq.Poller()
        poller.register(inlets.express, zmq.POLLIN)
        poller.register(self._wake_read, zmq.POLLIN)
        gc.freeze()
        gc.set_threshold(50_000, 20, 50)
        self.say(Built(build.incarnation, os.getpid(), inlets.endpoint, inlets.express_endpoint))
        watch_at = self.clock()
        while not self.leave:
            while self.mail:
                message = self.mail.popleft()
                if isinstance(message, Seats):
                    core.owners(message.owners)
                elif isinstance(message, Stop):
                    self.leave = True
            now = self.clock()
            came = inlets.read(inlets.express, lambda frame, now=now: core.read(frame, now), lambda: True)  # type: ignore[misc]
            core.send()
            done = core.push()
            if now >= watch_at:
                watch_at = now + 0.05
                core.watch(now)
            if not came:
                self._wait(poller, 0.05 if done else 0.0005)
                self._drop_wake_ups()
