"""The data loop of a process: sockets around a core, in a thread beside the actor."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from esault.background import BackgroundLoop, in_background
from esault.errors import CheckpointError, EsaultError
from esault.flow.operators.event_loop import EventLoop
from esault.flow.operators.user_error import UserError, described, is_transient, pack_cause
from esault.flow.sub_unit_factory import sub_unit
from esault.flow.worker.environment import Environment
from esault.flow.worker.garbage import settle_garbage
from esault.flow.worker.spout_unit import SpoutSubUnit
from esault.flow.worker.sub_unit import SubUnit
from esault.messages.control import Build, Built, Failed
from esault.messages.status import Status
from esault.runtime.messages import RunSpec
from esault.runtime.net.inlets import LOOK_EVERY, Inlets
from esault.runtime.net.links import UnixWire
from esault.runtime.net.status_pipe import Report, StatusWriter
from esault.runtime.process.heap import give_back, keep_freed
from esault.runtime.process.lease import Lease
from esault.runtime.process.time_slice import short_slice
from esault.runtime.process.usage import process_usage
from esault.runtime.process.waker import Waker
from esault.runtime.worker.fork_retries import is_shortage, shortage
from esault.state.dead_letter_file import DeadLetterFile
from esault.state.place import place_of
from esault.state.spool import spooled
from esault.state.state_store import FileStateStore
from esault.state.states_on_disk import StatesOnDisk
from esault.topology.inherited_plan import take_plan

__all__ = ["DataLoop", "SubUnitLoop"]

#: turns between two looks at the sockets, and seconds after which no other is begun: one of slow user code is one tuple
TURNS, LONGEST_TURNS = 4, 0.001
#: longest wait, seconds
LONGEST_WAIT = 0.25
#: seconds in which the run's folder is there again, where another program has removed it
FOLDER_WITHIN = 10.0
#: seconds that the actor's thread keeps the interpreter at most, once this one wants it; of the 5 ms that Python gives, p99 is
#: half as long again
SWITCH = 0.0005


class DataLoop(threading.Thread):
    """Owns the sockets and the core of one process.

    `mail` takes control messages from the actor (call `wake` after putting some in); what the core has to say is put
    into `outbox`, and `on_outbox` is called, in this thread.
    """

    def __init__(self, spec: RunSpec, build: Build, on_outbox: Callable[[], None]) -> None:
        super().__init__(name="esault-data", daemon=True)
        self.spec = spec
        self.build = build
        self.messages: deque[Any] = deque()
        self.outbox: deque[Any] = deque()
        self._on_outbox = on_outbox
        #: takes reports, where it can, in place of the actor
        self.statuses: StatusWriter | None = None
        self._count = 0
        self._waker = Waker()
        self._offset = spec.clock_offset
        self._background = BackgroundLoop()
        self.leave = False
        #: of a run on several hosts
        self.lease: Lease | None = None

    def clock(self) -> float:
        """Seconds since the epoch, never going back; the same in all processes of the host."""
        return time.monotonic() + self._offset

    def wake(self) -> None:
        """There is mail. Any thread may call this."""
        self._waker.wake()

    def say(self, *messages: Any) -> None:
        """Messages for the driver."""
        told = False
        for message in messages:
            if isinstance(message, Status) and self._report(message):
                continue
            self._count += 1
            self.outbox.append(message)
            told = True
        if told:
            self._on_outbox()

    def _report(self, status: Status) -> bool:
        return self.statuses is not None and self.statuses.send(Report(os.getpid(), self._count, status))

    def run(self) -> None:
        """The thread."""
        sys.setswitchinterval(SWITCH)
        short_slice()
        try:
            self.serve()
        except (UserError, EsaultError) as error:
            text, cause, transient = str(error), pack_cause(error), is_transient(error)
            short = isinstance(error.__cause__, OSError) and is_shortage(error.__cause__)
            damaged = isinstance(error, CheckpointError) and not short  # what cannot be opened just now may be whole
            self.say(Failed(self.build.incarnation, self.build.unit, text, cause, damaged, transient))
        except (KeyboardInterrupt, GeneratorExit) as error:
            # No signal comes to this thread: it is not the main one. So user code raised it.
            text = f"unit {self.build.unit!r} raised {type(error).__name__}, which ends a run whatever on_error says: {described(error)}"
            self.say(Failed(self.build.incarnation, self.build.unit, text))
        except BaseException as error:
            if isinstance(error, OSError) and is_shortage(
                error
            ):  # of this process: another one in its place may have what it takes
                text = f"{self.build.unit or 'an ack server'}: {shortage(error)}"
                self.say(Failed(self.build.incarnation, self.build.unit, text, pack_cause(error), transient=True))
                return
            text = f"the engine itself failed in {self.build.unit or 'an ack server'}:\n{traceback.format_exc()}"
            self.say(Failed(self.build.incarnation, self.build.unit, text))

    def serve(self) -> None:
        """Build the core and serve it until it has stopped."""
        raise NotImplementedError

    def sockets(self) -> tuple[Inlets, UnixWire]:
        """The ways in and out of this sub-unit or ack server."""
        until = time.monotonic() + FOLDER_WITHIN
        while True:
            try:
                return self._sockets()
            except FileNotFoundError:  # another program removes the run's folder, which the command makes again
                if time.monotonic() >= until:
                    raise
                time.sleep(0.05)

    def _sockets(self) -> tuple[Inlets, UnixWire]:
        here, folder, incarnation = self.spec.host_context, self.spec.run_dir, self.build.incarnation
        if here is None:
            return Inlets(folder, incarnation), UnixWire()
        from esault.cluster.key import ClusterKey
        from esault.runtime.net.secure_inlets import host_inlets
        from esault.runtime.net.secure_links import HostWire

        if self.lease is None:
            self.lease = Lease(here.lease)
        key = ClusterKey(here.key)
        return (
            Inlets(folder, incarnation, host_inlets(here.host, here.address, self.spec.run, key.server)),
            HostWire(here.host, key.client),
        )

    def _stand_still(self, lease: Lease) -> None:
        """The driver has not been heard of late: others may own by now what this process owned. The keeper ends it soon."""
        while not lease.holds():
            time.sleep(0.02)


def _event_loop(clock: Callable[[], float]) -> EventLoop:
    from esault.event_loop import SteppedLoop  # asyncio takes time to load, and few units need it

    return SteppedLoop(clock)


class SubUnitLoop(DataLoop):
    """Serves a sub-unit."""

    core: SubUnit

    def serve(self) -> None:
        keep_freed()
        again, spout = True, None
        while again:  # or this process becomes another sub-unit
            inlets, wire = self.sockets()
            try:
                spout = self._serve(inlets, wire, spout)
            finally:
                inlets.close()
                wire.close()
            again = not self.core.stopped

    def _serve(self, inlets: Inlets, wire: UnixWire, spout: Any) -> Any:
        """Until the sub-unit has stopped, or `build` is another one; its spout, which goes on."""
        build, spec = self.build, self.spec
        unit = spec.laid_out(take_plan(spec.located, spec.params)).unit(build.unit)
        state_store = None if spec.state_dir is None else FileStateStore(place_of(spec.state_dir))
        boxes: dict[str | None, DeadLetterFile] = {}

        def dead_letters(path: str | None) -> DeadLetterFile:
            return boxes.setdefault(path, DeadLetterFile(path, build.incarnation))

        if unit.kind == "spout":
            if spec.stdin_fd is not None:
                os.dup2(spec.stdin_fd, 0)
            if spout is not None:
                unit = replace(unit, spout=spout)
            elif spec.state_dir is not None and unit.spooled:
                unit = spooled(unit, Path(spec.state_dir), build.part)
        environment = Environment(
            wire=wire,
            clock=self.clock,
            dead_letters=dead_letters,
            seed=None,
            run_dir=spec.run_dir,
            state_store=state_store,
            event_loop=_event_loop,
            background=self._background,
            in_thread=in_background,
            wake=self._waker.wake,
            states_on_disk=StatesOnDisk,
            free_memory=give_back,
            pause=time.sleep,
        )
        core = self.core = sub_unit(build, unit, environment)
        core.metrics.usage = process_usage(wire.traffic)
        gc.collect()
        settle_garbage()  # what was built lives as long as the process
        woken = self._waker.fileno()
        inlets.watch(woken)
        inlets.watch(wire.fileno())
        if core.loop is not None:
            inlets.watch(core.loop.fileno())
        self.say(*core.outbox)  # what is to be said of the state comes before the run begins
        core.outbox.clear()
        self.say(Built(build.incarnation, os.getpid(), inlets.data.endpoint, inlets.express.endpoint))
        lease, look_at = self.lease, 0.0
        came = True  # something may have come in
        while not core.stopped:
            if lease is not None and not lease.holds():
                self._stand_still(lease)
            while self.messages:
                message = self.messages.popleft()
                if isinstance(message, Build):
                    self.build = message
                    for sink in core.outputs.sinks:
                        with contextlib.suppress(Exception):  # what it has staged is beyond what all went back to
                            sink.close()
                    core.close()
                    return core.spout if isinstance(core, SpoutSubUnit) else None
                core.handle(message)
            if came and woken in inlets.read(core.read, core.may_read):
                self._waker.clear()
            came = True
            wire.retry()
            worked, until = False, self.clock() + LONGEST_TURNS
            if until > look_at:
                look_at = until + LOOK_EVERY
                inlets.mend()
            for _ in range(TURNS):
                worked = core.turn()
                # A control message waits for no more than one batch; nor does a probe, where batches take long.
                if not worked or self.messages or self.clock() > until:
                    break
            if core.outbox:
                self.say(*core.outbox)
                core.outbox.clear()
            if worked or self.messages:
                continue
            came = inlets.wait(min(core.next_at - self.clock(), LONGEST_WAIT), core.may_read)
        self.say(*core.outbox)
        core.close()
        return None
