"""The node: offers a host's slots. One per host, one thread; a process of its own for each run that lodges here.

It listens on one port, lets in who holds the cluster's key, says what it has, and starts a lodge (`runtime.lodge`) for a run that
asks for slots. What the run then does is between its driver and the lodge. The first SIGTERM or Ctrl-C drains: runs move their
sub-units elsewhere, and the node ends when none is left. A second one ends it at once. When the node dies its lodges die with it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from typing import Any

from esault.cluster import address as addresses
from esault.cluster.connection import Connection, Lost, Strangers, call, listen
from esault.cluster.key import ClusterKey
from esault.cluster.letter import pack
from esault.cluster.shared import read_mark
from esault.cluster.shipment import check_versions
from esault.cluster.tls import Refused
from esault.cluster.versions import PYTHON, differences, hello
from esault.cluster.words import Hello, Lodge, Lodged, Look, Looked, Member, Nodes, Refusal, Tick, Tock, Welcome
from esault.errors import UsageError
from esault.version import VERSION

__all__ = ["Node"]

#: seconds between two looks at children and at who has not shown a key
_LOOK_EVERY = 0.2
#: seconds that a caller has to show its key and say hello, and callers at a time that have not
_PATIENCE, _MOST_STRANGERS = 5.0, 64
#: seconds between two tries to join, and that one may take
_JOIN_EVERY, _JOIN_WITHIN = 2.0, 1.0
#: seconds by which clocks may differ without a word
_CLOCKS = 5.0

log = logging.getLogger("esault.node")


@dataclass
class _Caller:
    connection: Connection
    hello: Hello | None = None


@dataclass
class _Lodging:
    """A run that has slots here."""

    run: str
    name: str
    slots: int
    process: subprocess.Popen[bytes]
    #: who asked for it, until it has been told the port
    caller: _Caller | None
    said: bytearray = field(default_factory=bytearray)


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
        join: str | None = None,
        loopback_only: bool = False,
    ) -> None:
        """Listens at once. Raises UsageError when it cannot."""
        host, port = addresses.split(listen_at)
        if host in ("0.0.0.0", "::", "*"):  # noqa: S104
            raise UsageError(f"--listen {listen_at}: name the address by which the other hosts reach this one")
        if loopback_only and not addresses.is_loopback(host):
            raise UsageError(
                f"--listen {listen_at}: without a key a node listens on this machine alone; make one with `esault keys FILE`, copy it "
                "to all hosts, and say --key FILE"
            )
        try:
            self._listener = listen(host, port)
        except OSError as error:
            raise UsageError(
                f"--listen {listen_at}: {error.strerror or error}; is a node there already? Name another port, or an address of "
                "this host"
            ) from None
        if name is not None and not re.fullmatch(r"[\w.-]{1,64}", name):
            raise UsageError(f"--name {name!r}: write letters, digits, dots and dashes, 64 at most")
        self._host = host
        self.address = addresses.join(host, self._listener.getsockname()[1])
        self.name = name or f"{socket.gethostname()}-{self._listener.getsockname()[1]}"
        self.slots, self.offers = slots, offers
        self.draining = False
        self._key = key
        self._join = join
        self._joined: Connection | None = None
        self._join_at = 0.0
        self._members = {self.name: Member(self.name, self.address)}
        self._callers: dict[int, _Caller] = {}
        self._lodgings: dict[str, _Lodging] = {}
        self._strangers = Strangers(f"node {self.name}")
        self._signals = 0
        self._select = selectors.DefaultSelector()
        self._select.register(self._listener, selectors.EVENT_READ, self._accept)

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
            while self._signals < 2 and not (self.draining and not self._lodgings):
                for key, _ in self._select.select(_LOOK_EVERY):
                    key.data()
                if self._signals and not self.draining:
                    self.drain()
                self._look()
        finally:
            signal.set_wakeup_fd(-1)
            self.close()
            wake_read.close()
            wake_write.close()

    def _signalled(self, number: int, frame: Any) -> None:
        self._signals += 1

    def drain(self) -> None:
        """Take no more runs; those that are here go elsewhere."""
        self.draining = True
        if self._lodgings:
            log.warning(
                "node %s drains: %d run(s) hand over their sub-units (again to end at once)",
                self.name,
                len(self._lodgings),
            )
        self._tell_news()

    def close(self) -> None:
        """End all that lodge here, and hang up."""
        for lodging in self._lodgings.values():
            lodging.process.kill()
        for lodging in self._lodgings.values():
            lodging.process.wait()
            if lodging.process.stdout is not None:
                lodging.process.stdout.close()
        for caller in self._callers.values():
            caller.connection.close()
        if self._joined is not None:
            self._joined.close()
        self._listener.close()
        self._select.close()

    @property
    def free(self) -> int:
        """Slots that no run has."""
        return max(0, self.slots - sum(each.slots for each in self._lodgings.values()))

    # callers ---------------------------------------------------------------------------------------

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                try:
                    made, _ = self._listener.accept()
                except ConnectionError:
                    continue
                strangers = [each for each in self._callers.values() if each.hello is None]
                if len(strangers) >= _MOST_STRANGERS:
                    self._turn_away(
                        min(strangers, key=lambda each: each.connection.since), "too many connections that say nothing"
                    )
                try:
                    connection = Connection(made, self._key.server, server=True)
                except (OSError, Lost):
                    made.close()
                    continue
                caller = self._callers[connection.fileno()] = _Caller(connection)
                self._select.register(connection, selectors.EVENT_READ, lambda caller=caller: self._read(caller))

    def _read(self, caller: _Caller) -> None:
        try:
            for message in caller.connection.receive():
                self._take(caller, message)
        except Refused as error:
            self._turn_away(caller, str(error))
        except Lost:
            self._hang_up(caller)

    def _turn_away(self, caller: _Caller, why: str) -> None:
        self._strangers.note(caller.connection.peer, why)
        self._hang_up(caller)

    def _hang_up(self, caller: _Caller) -> None:
        if self._callers.pop(caller.connection.fileno(), None) is None:
            return
        self._select.unregister(caller.connection)
        caller.connection.close()
        for lodging in self._lodgings.values():
            if lodging.caller is caller:
                lodging.caller = None

    def _take(self, caller: _Caller, message: Any) -> None:
        if isinstance(message, Hello):
            self._greet(caller, message)
        elif caller.hello is None:
            raise Refused(f"it began with {type(message).__name__}, not with Hello")
        elif isinstance(message, Tick):
            caller.connection.send(Tock(message.number, time.monotonic()))
        elif isinstance(message, Lodge):
            self._lodge(caller, message)
        elif isinstance(message, Look):
            caller.connection.send(Looked(read_mark(message.path)))
        elif isinstance(message, Nodes):
            self._learn(message.members)
        else:
            raise Refused(f"a node does not take {type(message).__name__}")

    def _greet(self, caller: _Caller, message: Hello) -> None:
        differs = differences(message)
        if differs:
            self._refuse(
                caller,
                f"host {self.name} has eSault {VERSION} and Python {PYTHON}, and you have eSault {message.esault} and Python {message.python}: install the same on both",
                differs,
            )
            return
        other = self._members.get(message.name)
        if message.name and other is not None and other.address != message.address:
            self._refuse(
                caller,
                f"there is a node named {message.name!r} already, at {other.address}; say --name",
                "a name twice",
            )
            return
        runs = {each.run: each.slots for each in self._lodgings.values()}
        caller.connection.send(
            Welcome(
                self.name,
                self.slots,
                0 if self.draining else self.free,
                self.offers,
                self.draining,
                tuple(self._members.values()),
                VERSION,
                PYTHON,
                time.time(),
                runs,
            )
        )
        caller.hello = message
        if message.name:
            log.info("node %s (%s) has joined", message.name, message.address)
            self._learn((Member(message.name, message.address),))

    def _refuse(self, caller: _Caller, text: str, why: str) -> None:
        log.warning("node %s refused %s: %s", self.name, caller.connection.peer, why)
        caller.connection.send(Refusal(text))

    # members ---------------------------------------------------------------------------------------

    def _learn(self, members: tuple[Member, ...]) -> None:
        news = [each for each in members if self._members.get(each.name) != each]
        if news:
            self._members.update({each.name: each for each in news if each.name != self.name})
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
        try:
            joined = call(host, port, self._key.client, _JOIN_WITHIN)
            answer = joined.ask(hello(self.name, self.address), _JOIN_WITHIN)
        except (Lost, Refused) as error:
            log.warning("node %s cannot join %s yet: %s", self.name, self._join, error)
            self._join_at = now + 2 * _JOIN_EVERY
            return
        if not isinstance(answer, Welcome):
            joined.close()
            text = answer.text if isinstance(answer, Refusal) else repr(answer)[:200]
            raise UsageError(f"{self._join} does not let this node join: {text}")
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

    # lodgings --------------------------------------------------------------------------------------

    def _lodge(self, caller: _Caller, message: Lodge) -> None:
        try:
            if self.draining:
                raise UsageError(f"host {self.name} drains and takes no runs")
            if message.run in self._lodgings:
                raise UsageError(f"run {message.run} is just leaving host {self.name}")
            if not 0 < message.slots <= self.free:
                who = ", ".join(f"{each.name} has {each.slots}" for each in self._lodgings.values())
                raise UsageError(
                    f"host {self.name} has {self.free} of {self.slots} slots free, not {message.slots} ({who or 'no run is here'})"
                )
            check_versions(message.versions, self.name)
        except UsageError as error:
            self._refuse(caller, str(error), str(error))
            return
        if abs(message.ahead) > _CLOCKS:
            log.warning(
                "node %s: the clock here is %+.0f s off that of %s; times of its run are the driver's: set the clocks (NTP)",
                self.name,
                message.ahead,
                caller.connection.peer,
            )
        fd, path = tempfile.mkstemp(prefix="esault-lodge-")  # readable by this user alone
        with open(fd, "wb") as file:
            file.write(pack(message))
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "esault.runtime.lodge",
                path,
                self.name,
                self._host,
                self._key.path,
                str(os.getpid()),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        lodging = self._lodgings[message.run] = _Lodging(message.run, message.name, message.slots, process, caller)
        self._select.register(process.stdout, selectors.EVENT_READ, lambda: self._hear(lodging))
        log.info("run %s (%s) has %d slots on node %s", message.run, message.name, message.slots, self.name)

    def _hear(self, lodging: _Lodging) -> None:
        assert lodging.process.stdout is not None
        data = lodging.process.stdout.read(65536)
        if data == b"":
            self._select.unregister(lodging.process.stdout)
            return
        if data is None or lodging.caller is None:
            return
        lodging.said += data
        line, newline, _ = bytes(lodging.said).partition(b"\n")
        if not newline:
            return
        caller, lodging.caller = lodging.caller, None
        word, _, rest = line.decode("utf-8", "replace").partition(" ")
        answer = Lodged(lodging.run, int(rest)) if word == "port" else Refusal(rest.replace("\\n", "\n"))
        with contextlib.suppress(Lost):
            caller.connection.send(answer)

    def _look(self) -> None:
        """Now and then: who has ended, who says nothing, what could not be sent."""
        for lodging in list(self._lodgings.values()):
            if lodging.process.poll() is not None:
                self._ended(lodging)
        self._strangers.tell()
        now = time.monotonic()
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

    def _ended(self, lodging: _Lodging) -> None:
        del self._lodgings[lodging.run]
        assert lodging.process.stdout is not None
        with contextlib.suppress(KeyError, ValueError):
            self._select.unregister(lodging.process.stdout)
        lodging.process.stdout.close()
        if lodging.caller is not None:
            with contextlib.suppress(Lost):
                lodging.caller.connection.send(
                    Refusal(
                        f"the run's first process on host {self.name} ended at once (exit code {lodging.process.returncode}); see its log"
                    )
                )
        log.info("run %s has left node %s", lodging.run, self.name)
