"""The data loop of an ack server's process."""

from __future__ import annotations

import os

from esault.flow.delivery.ack_server import AckServer
from esault.flow.worker.garbage import settle_garbage
from esault.messages.control import AckRouting, Built, Stop
from esault.runtime.net.inlets import LOOK_EVERY, Inlets
from esault.runtime.net.links import UnixWire
from esault.runtime.worker.data_loop import DataLoop

__all__ = ["AckerLoop"]


class AckerLoop(DataLoop):
    """Serves an ack server."""

    def serve(self) -> None:
        inlets, wire = self.sockets()
        try:
            self._serve(inlets, wire)
        finally:
            inlets.close()
            wire.close()

    def _serve(self, inlets: Inlets, wire: UnixWire) -> None:
        build = self.build
        core = AckServer(build.incarnation, build.epoch, build.settings, wire)
        inlets.watch(self._waker.fileno())
        inlets.watch(wire.fileno())
        settle_garbage()
        self.say(Built(build.incarnation, os.getpid(), inlets.data.endpoint, inlets.express.endpoint))
        watch_at = look_at = self.clock()
        while not self.leave:
            if self.lease is not None and not self.lease.holds():
                self._stand_still(self.lease)
            while self.messages:
                message = self.messages.popleft()
                if isinstance(message, AckRouting):
                    core.owners(message.owners)
                elif isinstance(message, Stop):
                    self.leave = True
            now = self.clock()
            came = inlets.express.read(lambda frame, now=now: core.read(frame, now))  # type: ignore[misc]
            core.send()
            wire.retry()
            core.retry()
            if now >= watch_at:
                watch_at = now + 0.05
                core.watch(now)
            if now >= look_at:
                look_at = now + LOOK_EVERY
                inlets.mend()
            if not came:
                inlets.wait(0.05, False)
                self._waker.clear()
