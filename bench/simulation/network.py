"""The links between components: each keeps its order, and is late, cut or broken on its own.

What is under way while a way is cut comes once the way is open again, as TCP tries again; where a connection ends it is lost.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import Any

from bench.simulation.events import Events

__all__ = ["Channel", "Network", "Wire"]

#: frames that a link takes before it refuses more, as the sockets' high-water mark
CAPACITY = 8
#: seconds from one process to another of the same machine, and to one of another machine
NEAR, FAR = (0.00002, 0.0003), (0.0002, 0.003)


class Network:
    """The ways between machines, each direction by itself."""

    def __init__(self, events: Events, order: random.Random) -> None:
        self.events = events
        self._order = order
        #: (from, to) -> since when it is cut
        self.cuts: dict[tuple[str, str], float] = {}
        self._waiting: dict[tuple[str, str], list[Channel]] = {}
        #: messages are so many times as long under way
        self.slowness = 1.0

    def open(self, source: str, target: str) -> bool:
        """Return whether anything gets from one machine to the other."""
        return (source, target) not in self.cuts

    def delay(self, source: str, target: str) -> float:
        """Return how long the next message takes."""
        seconds = self._order.uniform(*(NEAR if source == target else FAR))
        if self._order.random() < 0.002:
            seconds += self._order.uniform(0.01, 0.3)  # it was lost and sent again, or no process of it had a processor
        return seconds * self.slowness

    def cut(self, source: str, target: str) -> None:
        """Let nothing through this way from now on."""
        self.cuts.setdefault((source, target), self.events.now)

    def heal(self, source: str, target: str) -> None:
        """Open it again. TCP tries again after up to as long as it was cut."""
        since = self.cuts.pop((source, target), None)
        if since is None:
            return
        lasted = self.events.now - since
        for channel in self._waiting.pop((source, target), ()):
            channel.retry(self._order.uniform(0.0, min(lasted, 2.0)))

    def wait(self, channel: Channel) -> None:
        """Note what waits for its way to be open."""
        self._waiting.setdefault((channel.source, channel.target), []).append(channel)


class Channel:
    """One connection between two components: what is put in comes out in this order, once, or never where it is closed."""

    def __init__(self, network: Network, source: str, target: str, name: str) -> None:
        self._network = network
        self.source, self.target, self._name = source, target, name
        self._under_way: deque[tuple[float, Callable[..., None], tuple[Any, ...]]] = deque()
        self._last = 0.0
        self.closed = False

    def __len__(self) -> int:
        return len(self._under_way)

    def put(self, call: Callable[..., None], *arguments: Any) -> None:
        """Have `call` happen at the other end."""
        if self.closed:
            return
        events = self._network.events
        self._last = max(self._last, events.now + self._network.delay(self.source, self.target))
        self._under_way.append((self._last, call, arguments))
        if len(self._under_way) == 1:
            events.at(self._last, self._name, self._arrive)

    def _arrive(self) -> None:
        if not self._under_way:
            return
        if not self._network.open(self.source, self.target):
            self._network.wait(self)
            return
        _, call, arguments = self._under_way.popleft()
        if self._under_way:
            self._network.events.at(self._under_way[0][0], self._name, self._arrive)
        call(*arguments)

    def retry(self, after: float) -> None:
        """Go on: the way is open again."""
        if self._under_way:
            self._network.events.after(after, self._name, self._arrive)

    def clear(self) -> None:
        """Lose what is under way."""
        self._under_way.clear()

    def close(self) -> None:
        """End the connection: what is under way is lost."""
        self.closed = True
        self.clear()


class Inlet:
    """A receiving socket, as `esault.testing` has it."""

    def __init__(self, machine: str, arrived: Callable[[], None]) -> None:
        self.machine = machine
        self.arrived = arrived
        #: queues of frames that have arrived, one for each link
        self.links: list[deque[bytes]] = []
        self.senders: list[DataLink] = []

    def waiting(self) -> list[deque[bytes]]:
        """Links with frames that have arrived."""
        return [link for link in self.links if link]

    def read(self) -> None:
        """Tell senders that were refused, and whose frames have been read, to go on."""
        for sender in self.senders:
            sender.free()


class DataLink:
    """The sending side of a data path."""

    def __init__(self, network: Network, machine: str, endpoint: str, inlet: Inlet | None, wake: Callable[[], None]):
        self._network = network
        self.machine, self.endpoint = machine, endpoint.removeprefix("memory://")
        self._express = endpoint.endswith("/express")
        self._queue: deque[bytes] = deque()
        self._wake = wake
        self._refused = self._closed = False
        self._again_at = 0.0
        self.far = inlet is not None and inlet.machine != machine
        self._inlet = inlet
        self._channel = Channel(network, machine, inlet.machine if inlet else machine, endpoint)
        if inlet is not None:
            inlet.links.append(self._queue)
            inlet.senders.append(self)

    def send(self, frame: bytes) -> bool:
        """Return whether it was taken."""
        if self._closed or self._network.events.now < self._again_at:
            return False
        if len(self._channel) + len(self._queue) >= CAPACITY:
            self._refused = True
            return False
        if self._inlet is None:  # none is there: what is sent is never read
            self._queue.append(frame)
        else:
            self._channel.put(self._arrive, frame)
        return True

    def _arrive(self, frame: bytes) -> None:
        self._queue.append(frame)
        assert self._inlet is not None
        self._inlet.arrived()

    def free(self) -> None:
        """Wake who was refused, where there is room now."""
        if self._refused and len(self._channel) + len(self._queue) < CAPACITY:
            self._refused = False
            self._wake()

    @property
    def closed(self) -> bool:
        """Return whether its sender needs it no more."""
        return self._closed

    def lose(self) -> int:
        """End the connection, as a reset does: what is under way is lost. Return how many frames were; the next one connects anew."""
        lost = len(self._channel)
        self._channel.clear()
        self._again_at = self._network.events.now + 0.2
        self._network.events.at(self._again_at, f"again {self.endpoint}", self._wake)
        return lost

    def finish(self) -> None:
        """Send nothing more; what goes to a data socket may be lost."""
        self._closed = True
        if not self._express:
            self._channel.close()
            self._queue.clear()

    def close(self) -> None:
        """Forget it."""
        self._closed = True
        self._channel.close()
        self._queue.clear()


class Wire:
    """The data path of one process: `Wire` of `esault.flow.channel.wire`, and the binding side of `MemoryWire`."""

    def __init__(
        self, network: Network, inlets: dict[str, Inlet], machine: str, wake: Callable[[], None], links: list[DataLink]
    ) -> None:
        """`inlets` by endpoint and `links` are those of the whole run; `wake`: this process has something to do."""
        self._network, self._inlets, self._machine, self._wake, self._links = network, inlets, machine, wake, links

    def bind(self, endpoint: str) -> Inlet:
        """Make a receiving side."""
        inlet = self._inlets[endpoint] = Inlet(self._machine, self._wake)
        return inlet

    def unbind(self, endpoint: str) -> None:
        """The receiver is gone, with what was not read."""
        self._inlets.pop(endpoint, None)

    def link(self, endpoint: str) -> DataLink:
        """Make a sending side."""
        made = DataLink(self._network, self._machine, endpoint, self._inlets.get(endpoint), self._wake)
        if made.far:
            self._links.append(made)
        return made
