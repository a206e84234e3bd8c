"""The driver's end of the connection to one host: a thread in the driver's process.

It calls the host's node, asks for slots, enters the host process that the node has started, and carries words both ways. A host that says
nothing for `SILENCE` seconds is lost: its host process is never spoken to again. Where the node is still there, or comes back, a new host process is
asked for: to the run that is another host's slots that have just joined.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from esault.cluster.address import split
from esault.cluster.connection import Connection, Lost, call
from esault.cluster.key import ClusterKey
from esault.cluster.messages import (
    ENDED,
    Attach,
    Attached,
    ClockReply,
    ClockRequest,
    Detach,
    Heartbeat,
    HostStarted,
    Member,
    Nodes,
    Refusal,
    StartHost,
    Welcome,
)
from esault.cluster.slot_messages import SlotDemand, SlotGrant
from esault.cluster.tls import Refused
from esault.cluster.versions import differences, hello
from esault.runtime.process.waker import Waker
from esault.runtime.remote.driver_connection import BEAT_EVERY
from esault.value_class import value_class

__all__ = ["Granted", "HostConnection", "Joined", "LostHost", "News", "Refusing"]

#: seconds without a word after which a host is lost; its own processes stand still half a second earlier (`lease`)
SILENCE: Final = 2.5
#: seconds that a host has to answer, and to get a host process ready
_ANSWER_WITHIN, _READY_WITHIN = 5.0, 30.0
#: ... and to be called: one that comes back is found soon, and to call once more does no harm
_CALL_WITHIN = 2.0
#: seconds until a host that is lost or does not answer is called again: at first, and at most
_AGAIN, _AGAIN_AT_MOST = 0.5, 2.0
#: round trips by which a host's clock is compared
_TICKS = 5
#: seconds by which clocks may differ without a word
_CLOCKS = 5.0


@value_class(frozen=True)
class Joined:
    """The host's slots can be used."""

    name: str
    slots: int
    offers: tuple[str, ...]
    #: something the user should know about it
    remark: str = ""
    slot_price: float = 0.0


@value_class(frozen=True)
class LostHost:
    """All that was there is gone."""

    name: str
    why: str


@value_class(frozen=True)
class Refusing:
    """The host does not take this run, or cannot be reached; it will be asked again."""

    why: str
    #: it is there and will not do
    misfit: bool


@value_class(frozen=True)
class News:
    """News of the host's node about itself and others."""

    name: str
    members: tuple[Member, ...]
    draining: bool


@value_class(frozen=True)
class Granted:
    """The host's node says how many slots the run may hold there."""

    name: str
    grant: SlotGrant


class HostConnection(threading.Thread):
    """See the module. `events` is filled here; `on_event` is called in this thread."""

    def __init__(
        self,
        address: str,
        key: ClusterKey,
        run_key: ClusterKey,
        order: Callable[[Connection, Welcome, float, float], StartHost],
        on_event: Callable[[], None],
        clock: Callable[[], float],
    ) -> None:
        """`key` opens the node, `run_key` the run's processes there.

        `order`: makes what is asked for, of the connection to the node, its welcome, the clock offset of its host and how far its clock is
        ahead. Raises Refused for a node that will not do, Lost for one that will not do now."""
        super().__init__(name=f"esault-host-{address}", daemon=True)
        self.address = address
        self._key, self._run_key = key, run_key
        self._order = order
        self._on_event = on_event
        self._clock = clock
        #: Joined, LostHost, Refusing, News, and what the host process says
        self.events: deque[Any] = deque()
        #: the host's name, while it is up
        self.up: str | None = None
        self._outbox: deque[Any] = deque()
        #: what the run holds and wants there, for the node
        self._demands: deque[SlotDemand] = deque()
        #: the driver knows of this host process: until then its messages were meant for the one before
        self._begun = False
        self._leaving = self._releasing = False
        self._waker = Waker()

    def begin(self) -> None:
        """`Joined` was heard: what is said from now on is for this host process, and what was said before for one that is no more."""
        self._outbox.clear()
        self._begun = True
        self._waker.wake()

    def say(self, word: Any) -> None:
        """To the host process, in order. Words to a host that is lost go nowhere."""
        self._outbox.append(word)
        self._waker.wake()

    def demand(self, word: SlotDemand) -> None:
        """To the host's node, in order."""
        self._demands.append(word)
        self._waker.wake()

    def release(self) -> None:
        """The run needs this host no more: its host process may end. The host is called again, should it come back."""
        self._releasing = True
        self._waker.wake()

    def leave(self) -> None:
        """The run is over: say goodbye and end."""
        self._leaving = True
        self._waker.wake()

    def _tell(self, event: Any) -> None:
        self.events.append(event)
        self._on_event()

    def run(self) -> None:
        """The thread."""
        backoff = _AGAIN
        while not self._leaving:
            try:
                self._once()
                backoff = _AGAIN
            except (Lost, Refused) as error:
                if self.up is None:
                    self._tell(Refusing(f"{self.address}: {error}", isinstance(error, Refused)))
                else:
                    name, self.up = self.up, None
                    backoff = _AGAIN
                    self._tell(LostHost(name, str(error)))
            except Exception as error:  # a mistake in the engine: told, not swallowed
                name, self.up = self.up or self.address, None
                self._tell(LostHost(name, f"the link to it failed: {type(error).__name__}: {error}"))
            until = time.monotonic() + backoff
            backoff = min(2 * backoff, _AGAIN_AT_MOST)
            while not self._leaving and time.monotonic() < until:
                time.sleep(0.05)

    def _once(self) -> None:
        """From the call to the end of this host's part in the run. Raises Lost, Refused."""
        host, port = split(self.address)
        node = call(host, port, self._key.client, _CALL_WITHIN)
        host_process: Connection | None = None
        try:
            asked = self._clock()
            welcome = node.ask(hello(), _ANSWER_WITHIN)
            if isinstance(welcome, Refusal):
                raise Refused(welcome.text)
            if not isinstance(welcome, Welcome) or differences(welcome):
                raise Refused(differences(welcome) if isinstance(welcome, Welcome) else f"it answered {welcome!r:.100}")
            ahead = welcome.wall - (asked + self._clock()) / 2
            self._tell(News(welcome.name, welcome.members, welcome.draining))
            if welcome.draining:
                raise Lost(f"host {welcome.name} drains")
            order = self._order(node, welcome, self._compare_clocks(node), ahead)
            if order.slots < 1 and order.priority is None:
                raise Lost(f"host {welcome.name} has no free slot of its {welcome.slots}")
            started = node.ask(order, _READY_WITHIN, HostStarted, Refusal)
            if isinstance(started, Refusal):
                raise (Lost if started.for_now else Refused)(started.text)
            host_process = call(host, started.port, self._run_key.client, _ANSWER_WITHIN)
            host_process.ask(Attach(order.run), _ANSWER_WITHIN, Attached)
            self._begun = self._releasing = False
            self._demands.clear()
            self.up = welcome.name
            remark = ""
            if abs(ahead) > _CLOCKS:
                remark = f"the clock of host {welcome.name} is {ahead:+.0f} s off; times of this run are this machine's: set the clocks (NTP)"
            self._tell(Joined(welcome.name, order.slots, welcome.offers, remark, welcome.slot_price or 0.0))
            self._serve(node, host_process)
        finally:
            node.close()
            if host_process is not None:
                host_process.close()

    def _compare_clocks(self, node: Connection) -> float:
        """Our clock minus the host's monotonic one, by the quickest of a few round trips."""
        best, offset = float("inf"), 0.0
        for number in range(_TICKS):
            asked = self._clock()
            answer = node.ask(ClockRequest(number), _ANSWER_WITHIN, ClockReply)
            now = self._clock()
            if answer.number == number and now - asked < best:
                best, offset = now - asked, (asked + now) / 2 - answer.monotonic
        return offset

    def _serve(self, node: Connection, host_process: Connection) -> None:
        heard = beat_at = time.monotonic()
        node_there = self._hear(node)  # what it said while it was asked for other things
        while not self._leaving and not self._releasing:
            now = time.monotonic()
            if now >= beat_at:
                beat_at = now + BEAT_EVERY
                host_process.send(Heartbeat())
            while self._begun and self._outbox:
                host_process.send(self._outbox.popleft())
            node_there = node_there and self._say_demands(node)
            also = [self._waker.fileno(), *([node.fileno()] if node_there else [])]
            ready = host_process.wait(max(0.0, beat_at - time.monotonic()), *also)
            if self._waker.fileno() in ready:
                self._waker.clear()
            if node_there and node.fileno() in ready:
                node_there = self._hear(node)
            if host_process.fileno() in ready:
                got = [word for word in host_process.receive() if not isinstance(word, Heartbeat)]
                heard = time.monotonic()
                for word in got:
                    if isinstance(word, Detach):
                        raise Lost(word.text)
                if got:
                    self.events.extend(got)
                    self._on_event()
            elif time.monotonic() - heard > SILENCE:
                raise Lost(f"no word from it for {SILENCE:g} s")
        with contextlib.suppress(Lost):
            while self._begun and self._outbox:
                host_process.send(self._outbox.popleft())
            host_process.send(Detach(ENDED))
            host_process.close(2.0)
        self.up = None

    def _say_demands(self, node: Connection) -> bool:
        """Tell the node what is wanted; whether it is there."""
        try:
            while self._demands:
                node.send(self._demands.popleft())
        except Lost:
            return False
        return True

    def _hear(self, node: Connection) -> bool:
        """Pass on what the node says; whether it is there. Its host processes die with it, which the other connection tells."""
        try:
            for word in node.receive():
                if isinstance(word, Nodes) and self.up is not None:
                    self._tell(News(self.up, word.members, word.draining))
                elif isinstance(word, SlotGrant) and self.up is not None:
                    self._tell(Granted(self.up, word))
        except (Lost, Refused):
            return False
        return True
