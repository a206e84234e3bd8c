"""The node: offers a host's slots. One per host, one thread; a process of its own for each run that has slots here.

It listens on one port, lets in who holds the cluster's key, says what it has, and starts a host process (`runtime.remote.host_process`) for a run that
asks for slots. What the run then does is between its driver and the host process. The first SIGTERM or Ctrl-C drains, and so does
a notice that the host goes: runs move their sub-units elsewhere, and the node ends when none is left. A second one ends it at once. When the node dies its host processes die with it.

It is one module of over 300 lines: callers, members and runs change one account of free slots, in one thread.
"""

from __future__ import annotations

import contextlib
import logging
import re
import selectors
import signal
import socket
import time
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from esault.cluster import address as addresses
from esault.cluster.audit import AuditLog
from esault.cluster.connection import Connection, Lost, Strangers, call, crowding, listen
from esault.cluster.host_processes import HostProcesses
from esault.cluster.key import CLUSTER, ClusterKey, Peer
from esault.cluster.messages import (
    ClockReply,
    ClockRequest,
    Hello,
    MarkText,
    Member,
    Nodes,
    ReadMark,
    Refusal,
    StartHost,
    Welcome,
)
from esault.cluster.shared import read_mark
from esault.cluster.shipment import check_versions
from esault.cluster.slot_messages import SlotDemand
from esault.cluster.survey import Unavailable
from esault.cluster.termination import TerminationNotice
from esault.cluster.tls import Refused
from esault.cluster.versions import PYTHON, differences, hello, installed
from esault.errors import UsageError

__all__ = ["Node"]

#: seconds between two looks at children and at who has not shown a key
_LOOK_EVERY = 0.2
#: seconds that a caller has to show its key and say hello, and callers at a time that have not
_PATIENCE, _MOST_STRANGERS = 5.0, 64
#: callers that are let in between two looks at the others
_ACCEPTED_AT_ONCE = 4
#: seconds between two tries to join, and that one may take
_JOIN_EVERY, _JOIN_WITHIN = 2.0, 1.0
#: seconds by which clocks may differ without a word
_CLOCKS = 5.0

log = logging.getLogger("esault.node")


@dataclass
class _Caller:
    connection: Connection
    hello: Hello | None = None
    #: once it has said hello
    who: Peer = field(default_factory=lambda: Peer(""))


class Node:
    """See the module. `serve` blocks until the node has ended."""

    def __init__(
        self,
        listen_at: str,
        key: ClusterKey,
        slots: int,
        *,
        name: str | None = None,
        offers: tuple[str, ...] = (),
        slot_price: float | None = None,
        join: str | None = None,
        loopback_only: bool = False,
        audit: AuditLog | None = None,
        notice: TerminationNotice | None = None,
    ) -> None:
        """Listens at once. Raises UsageError when it cannot."""
        installed()  # while it is what runs here: it may be replaced under a living node
        host, port = addresses.split(listen_at)
        if host in ("0.0.0.0", "::", "*"):  # noqa: S104
            raise UsageError(f"--listen {listen_at}: name the address by which the other hosts reach this one")
        if loopback_only and not addresses.is_loopback(host):
            raise UsageError(
                f"--listen {listen_at}: without a key a node listens on this machine alone; make one with `esault keys FILE`, copy it "
                "to all hosts, and say --key FILE"
            )
        if name is not None and not re.fullmatch(r"[\w.-]{1,64}", name):
            raise UsageError(f"--name {name!r}: write letters, digits, dots and dashes, 64 at most")
        try:
            self._listener = listen(host, port)
        except OSError as error:
            raise UsageError(
                f"--listen {listen_at}: {error.strerror or error}; is a node there already? Name another port, or an address of "
                "this host"
            ) from None
        self.address = addresses.join(host, self._listener.getsockname()[1])
        self.name = name or f"{socket.gethostname()}-{self._listener.getsockname()[1]}"
        self.offers = offers
        self.slot_price = slot_price
        self.draining = False
        self._key = key
        self._audit = audit
        self._notice = notice
        self._join = join
        self._joined: Connection | None = None
        self._join_at = 0.0
        #: it was let in once: what is refused later is no mistake of who started this node
        self._has_joined = False
        self._members = {self.name: Member(self.name, self.address)}
        #: names of those that had joined here and have hung up: they may come back at another address
        self._gone: set[str] = set()
        self._callers: dict[int, _Caller] = {}
        self._strangers = Strangers(f"node {self.name}")
        self._signals = 0
        self._select = selectors.DefaultSelector()
        self._select.register(self._listener, selectors.EVENT_READ, self._accept)
        self._host_processes = HostProcesses(self.name, self._listener.getsockname()[0], slots, self._select)

    # serving ---------------------------------------------------------------------------------------

    def serve(self) -> None:
        """Until a signal has ended it."""
        wake_read, wake_write = socket.socketpair()
        wake_read.setblocking(False)
        wake_write.setblocking(False)
        self._select.register(wake_read, selectors.EVENT_READ, lambda: wake_read.recv(4096))
        signal.set_wakeup_fd(wake_write.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._signalled)
        try:
            while self._signals < 2 and not (self.draining and not self._host_processes):
                self.turn(_LOOK_EVERY)
                if not self.draining and (self._signals or self._about_to_go()):
                    self.drain()
        finally:
            signal.set_wakeup_fd(-1)
            self.close()
            wake_read.close()
            wake_write.close()

    def _about_to_go(self) -> bool:
        """Return whether this host is about to be taken away."""
        if self._notice is None or not self._notice.look():
            return False
        log.warning("node %s: this host is about to be taken away: %s", self.name, self._notice.command)
        return True

    def turn(self, seconds: float) -> None:
        """Deal with what has come, or comes within so long."""
        for key, _ in self._select.select(seconds):
            key.data()
        self._look()

    def _signalled(self, number: int, frame: Any) -> None:
        self._signals += 1

    def drain(self) -> None:
        """Take no more runs; those that are here go elsewhere."""
        self.draining = True
        self._host_processes.refuse_waiting(f"host {self.name} drains")
        if self._host_processes:
            log.warning(
                "node %s drains: %d run(s) hand over their sub-units (again to end at once)",
                self.name,
                len(self._host_processes),
            )
        self._tell_news()

    def close(self) -> None:
        """End all runs that have slots here, and hang up."""
        self._host_processes.close()
        for caller in self._callers.values():
            caller.connection.close()
        if self._joined is not None:
            self._joined.close()
        self._listener.close()
        self._select.close()
        if self._audit is not None:
            self._audit.close()
        if self._notice is not None:
            self._notice.close()

    @property
    def slots(self) -> int:
        """Sub-units that there is room for."""
        return self._host_processes.pool.slots

    # callers ---------------------------------------------------------------------------------------

    def _accept(self) -> None:
        # A few at a time: a peer that calls without end must not keep the node from those that it knows.
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                made, _ = self._listener.accept()
            except BlockingIOError:
                return
            except ConnectionError:
                continue
            except OSError as error:  # no more descriptors, or no memory: who is here stays, and others come later
                self._strangers.note("a caller", f"it cannot be accepted: {error.strerror or error}")
                return
            strangers = [each for each in self._callers.values() if each.hello is None]
            if len(strangers) >= _MOST_STRANGERS:
                crowding_one = strangers[crowding([each.connection.peer for each in strangers])]
                self._turn_away(crowding_one, "too many connections that say nothing")
            try:
                connection = Connection(made, self._key.server, server=True)
            except (OSError, Lost):
                made.close()
                continue
            caller = self._callers[connection.fileno()] = _Caller(connection)
            self._select.register(connection, selectors.EVENT_READ, partial(self._read, caller))

    def _read(self, caller: _Caller) -> None:
        try:
            for message in caller.connection.receive():
                self._take(caller, message)
        except Refused as error:
            self._turn_away(caller, str(error))
        except Lost:
            self._hang_up(caller)
        except Exception:  # a mistake in it, or in what was said, is no reason to end the runs of others
            log.exception("node %s cannot deal with what %s said", self.name, caller.connection.peer)
            self._hang_up(caller)

    def _turn_away(self, caller: _Caller, why: str) -> None:
        self._note(caller, "connect", why)
        self._strangers.note(caller.connection.peer, why)
        self._hang_up(caller)

    def _hang_up(self, caller: _Caller) -> None:
        if self._callers.pop(caller.connection.fileno(), None) is None:
            return
        self._select.unregister(caller.connection)
        caller.connection.close()
        self._host_processes.hung_up(caller)
        if caller.hello is not None and caller.hello.name:
            self._gone.add(caller.hello.name)

    def _take(self, caller: _Caller, message: Any) -> None:
        if isinstance(message, Hello):
            self._greet(caller, message)
        elif caller.hello is None:
            raise Refused(f"it began with {type(message).__name__}, not with Hello")
        elif isinstance(message, ClockRequest):
            caller.connection.send(ClockReply(message.number, time.monotonic()))
        elif isinstance(message, StartHost):
            if self._allowed(caller, "run", "start", run=message.run, topology=message.name, slots=message.slots):
                self._start_host(caller, message)
        elif isinstance(message, SlotDemand):
            self._host_processes.demand(caller, message)
        elif isinstance(message, ReadMark):
            if self._allowed(caller, "run", "read a mark", path=message.path):
                caller.connection.send(MarkText(read_mark(message.path)))
        elif isinstance(message, Nodes):
            if caller.who.role != CLUSTER:
                raise Refused(f"{caller.who} is no node")
            self._learn(message.members)
        else:
            raise Refused(f"a node does not take {type(message).__name__}")

    def _note(self, caller: _Caller, does: str, answer: str, **more: Any) -> None:
        if self._audit is not None:
            self._audit.write(str(caller.who), caller.connection.peer, does, answer, **more)

    def _allowed(self, caller: _Caller, role: str, does: str, **more: Any) -> bool:
        """Return whether it may; else it is told, and hung up on."""
        if caller.who.may(role):
            return True
        why = f"the key of {caller.who} has the role {caller.who.role!r}, and this takes {role!r}"
        self._note(caller, does, why, **more)
        self._refuse(
            caller, f"host {self.name}: {why}: make one by `esault keys FILE --role {role} --of CLUSTER_KEY`", why
        )
        self._hang_up(caller)
        return False

    def _greet(self, caller: _Caller, message: Hello) -> None:
        caller.who = caller.connection.who(self._key)
        if message.name and not self._allowed(caller, CLUSTER, "join", name=message.name, address=message.address):
            return
        differs = differences(message)
        if differs:
            self._refuse(
                caller,
                f"host {self.name} has eSault {installed()} and Python {PYTHON}, and you have eSault {message.esault} and Python "
                f"{message.python}: install the same on both",
                differs,
            )
            self._note(caller, "look", differs)
            self._hang_up(caller)
            return
        other = self._members.get(message.name)
        elsewhere = other is not None and other.address != message.address
        if elsewhere and message.name not in self._gone:
            self._refuse(
                caller,
                f"there is a node named {message.name!r} already, at {self._members[message.name].address}; say --name",
                "a name twice",
            )
            self._note(caller, "join", "a name twice", name=message.name, address=message.address)
            self._hang_up(caller)
            return
        caller.connection.send(
            Welcome(
                name=self.name,
                slots=self.slots,
                free=0 if self.draining else self._host_processes.pool.free,
                offers=self.offers,
                draining=self.draining,
                members=tuple(self._members.values()),
                esault=installed(),
                python=PYTHON,
                wall=time.time(),
                shares=self._host_processes.pool.shares(),
                slot_price=self.slot_price,
            )
        )
        caller.hello = message
        does = {"name": message.name, "address": message.address} if message.name else {}
        self._note(caller, "join" if message.name else "look", "accepted", **does)
        if message.name:
            log.info("node %s (%s) has joined", message.name, message.address)
            self._gone.discard(message.name)
            if elsewhere:
                del self._members[message.name]
            self._learn((Member(message.name, message.address),))

    def _refuse(self, caller: _Caller, text: str, why: str, for_now: bool = False) -> None:
        log.warning("node %s refused %s: %s", self.name, caller.connection.peer, why)
        caller.connection.send(Refusal(text, for_now))

    # members ---------------------------------------------------------------------------------------

    def _learn(self, members: tuple[Member, ...]) -> None:
        """Remember who is new. Of two with one name the first stands: nodes that knew different ones would else tell each other so
        for ever."""
        news = [each for each in members if each.name not in self._members]
        if news:
            self._members.update({each.name: each for each in news})
            self._tell_news()

    def _tell_news(self) -> None:
        news = Nodes(tuple(self._members.values()), self.draining)
        for caller in list(self._callers.values()):
            if caller.hello is not None:
                with contextlib.suppress(Lost):
                    caller.connection.send(news)
        if self._joined is not None:
            with contextlib.suppress(Lost):
                self._joined.send(Nodes(news.members, False))

    def _try_to_join(self) -> None:
        """Call the node that was named; again when it is gone, for it may come back."""
        assert self._join is not None
        now = time.monotonic()
        if now < self._join_at:
            return
        self._join_at = now + _JOIN_EVERY
        host, port = addresses.split(self._join)
        joined: Connection | None = None
        try:
            joined = call(host, port, self._key.client, _JOIN_WITHIN)
            answer = joined.ask(hello(self.name, self.address), _JOIN_WITHIN)
            if not isinstance(answer, Welcome):
                text = answer.text if isinstance(answer, Refusal) else repr(answer)[:200]
                if not self._has_joined:
                    joined.close()
                    raise UsageError(f"{self._join} does not let this node join: {text}")
                raise Refused(text)
        except (Lost, Refused) as error:
            if joined is not None:
                joined.close()
            log.warning("node %s cannot join %s yet: %s", self.name, self._join, error)
            self._join_at = now + 2 * _JOIN_EVERY
            return
        self._has_joined = True
        log.info("node %s has joined %s", self.name, self._join)
        self._joined = joined
        self._select.register(joined, selectors.EVENT_READ, self._read_joined)
        self._learn(answer.members)

    def _read_joined(self) -> None:
        assert self._joined is not None
        try:
            for message in self._joined.receive():
                if isinstance(message, Nodes):
                    self._learn(message.members)
        except (Lost, Refused):
            self._select.unregister(self._joined)
            self._joined.close()
            self._joined = None

    # host processes --------------------------------------------------------------------------------------

    def _start_host(self, caller: _Caller, message: StartHost) -> None:
        try:
            if self.draining:
                raise Unavailable(f"host {self.name} drains and takes no runs")
            check_versions(message.versions, self.name)
            self._host_processes.start(message, partial(self._answer, caller), caller)
        except UsageError as error:
            self._note(caller, "start", str(error), run=message.run, topology=message.name, slots=message.slots)
            self._refuse(caller, str(error), str(error), isinstance(error, Unavailable))
            return
        self._note(caller, "start", "accepted", run=message.run, topology=message.name, slots=message.slots)
        if abs(message.ahead) > _CLOCKS:
            log.warning(
                "node %s: the clock here is %+.0f s off that of %s; times of its run are the driver's: set the clocks (NTP)",
                self.name,
                message.ahead,
                caller.connection.peer,
            )

    def _answer(self, caller: _Caller, answer: Any) -> None:
        with contextlib.suppress(Lost):  # it has hung up
            caller.connection.send(answer)

    def _look(self) -> None:
        """Now and then: who has ended, who says nothing, what could not be sent."""
        now = time.monotonic()
        self._host_processes.look()
        self._host_processes.divide(now)
        self._strangers.tell()
        for caller in list(self._callers.values()):
            if caller.hello is None and now - caller.connection.since > _PATIENCE:
                self._turn_away(caller, "it did not show its key in time")
            elif caller.connection.waits:
                try:
                    caller.connection.flush()
                except Lost:
                    self._hang_up(caller)
        if self._join is not None and self._joined is None and not self.draining:
            self._try_to_join()
