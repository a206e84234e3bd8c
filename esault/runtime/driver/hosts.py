"""The hosts of a run, from the driver's side: who is up, where each sub-unit is, and the way there.

Owns one `HostConnection` per node that is known, those that are named in hosts.toml and those that have joined them. The driver's actor
calls `read_events` when it is woken, and is told by what it passed what came of it.

It is one module of over 300 lines: joining, losing and draining a host change one table of hosts.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from esault.cluster.connection import Connection, Lost
from esault.cluster.key import ClusterKey, make_key
from esault.cluster.messages import (
    FromSubUnits,
    OutputLine,
    ProbeReadings,
    ProbeTargets,
    ProcessDied,
    StartHost,
    ToKeeper,
    ToSubUnit,
    Welcome,
)
from esault.cluster.shipment import needed, relative, ship
from esault.cluster.slot_messages import SlotDemand
from esault.cluster.tls import Refused
from esault.control.placement.placement import Cluster
from esault.control.run.driver import Driver
from esault.control.run.evacuation import Evacuation
from esault.control.run.slot_sharing import SlotSharing
from esault.elasticity.budget import unpriced
from esault.errors import UsageError
from esault.messages.control import Exited, Fork, Kill, Release
from esault.messages.probe import HostUsage, ProbeReading
from esault.runtime.messages import HostsSpec, RunSpec
from esault.runtime.process.console import MarkedStream
from esault.runtime.remote.host_connection import Granted, HostConnection, Joined, LostHost, News, Refusing

__all__ = ["Hosts"]

#: seconds that the first hosts have to get ready
READY_WITHIN: Final = 40.0
#: ... and one that does not take the run for now: the others begin without it
_SOON: Final = 5.0
#: seconds after which one that will never take the run ends it
_MISFIT_AFTER: Final = 2.0
#: seconds in which the hosts are told that the run is over
_LEAVE_WITHIN: Final = 2.0
#: lines that wait for a slow terminal; those beyond are dropped, and said so
_MOST_LINES: Final = 100_000


class Hosts:
    """See the module. All but `_wake` is called in the actor's thread."""

    def __init__(self, spec: RunSpec, hosts: HostsSpec, wake: Callable[[], None]) -> None:
        self._spec = spec
        self._hosts = hosts
        self._wake = wake
        self._key = ClusterKey(hosts.key)
        run_key = make_key(Path(spec.run_dir) / "key")
        self._run_key = ClusterKey(run_key)
        self._run_key_text = run_key.read_text(encoding="ascii")
        self.cluster = Cluster(hosts.rules, spec.settings.hourly_budget)
        self.evacuation = Evacuation()
        self._sharing = None if hosts.priority is None else SlotSharing()
        #: of a run that shares slots: what was said to nodes last, and numbers of the grants that were heard
        self._demanded: dict[str, SlotDemand] = {}
        self._grants: dict[str, int] = {}
        self._links: dict[str, HostConnection] = {}
        #: addresses by host name, of those that are not lost
        self._addresses: dict[str, str] = dict(hosts.names)
        #: addresses by which the nodes behind our links know themselves, by ours
        self._own: dict[str, str] = {}
        self._where: dict[int, str] = {}
        #: of those that have joined once
        self._addresses_seen: set[str] = set()
        self._since = time.monotonic()
        #: of those that were lost; a run that has not begun does not wait for them
        self._were_lost: set[str] = set()
        #: why they do not take the run, by address: those that do not fit, and those that do not answer or cannot just now
        self._refusals: dict[str, str] = {}
        self._unavailable: dict[str, str] = {}
        self.usage: dict[str, HostUsage] = {}
        self.readings: deque[ProbeReading] = deque()
        #: words of sub-units, Exited, and names of hosts (joined, lost) in the order in which they came
        self.inbox: deque[Any] = deque()
        self.notices: deque[str] = deque()
        self._lines: deque[tuple[str, str]] = deque()
        self._lines_there = threading.Event()
        self._dropping = False
        self._ended = False
        self._crowded = 0
        located = spec.located
        files = ship(located.folder, located.path, located.module)
        first = relative(located.path, located.folder) or located.module or ""
        self._code = (files, needed(files, first))
        for address, slots in hosts.nodes:
            self._add(address, slots)
        for address in hosts.absent if self._hosts_members else ():
            self._add(address, hosts.slots_of_newcomers)
        threading.Thread(target=self._print, name="esault-voices", daemon=True).start()

    def _add(self, address: str, slots: int) -> None:
        link = HostConnection(
            address,
            self._key,
            self._run_key,
            lambda node, welcome, offset, ahead: self._order(address, node, welcome, slots, offset, ahead),
            self._wake,
            lambda: time.monotonic() + self._spec.clock_offset,
        )
        self._links[address] = link
        link.start()

    def _order(
        self, address: str, node: Connection, welcome: Welcome, slots: int, offset: float, ahead: float
    ) -> StartHost:
        """In a link's thread: what is asked of a node. Raises Lost for one that has a link already, Refused for one that will not do."""
        self._own[address] = {each.name: each.address for each in welcome.members}.get(welcome.name, address)
        other = self._addresses.get(welcome.name, address)
        if other != address and other in self._links and self._links[other].up == welcome.name:
            if self._own[other] != self._own[address]:
                self._tell_twice(welcome.name, other, address)
            self._links[address].leave()
            raise Lost(f"{other} is the same host")
        self._check_seen(node, welcome.name)
        if self._spec.settings.hourly_budget and welcome.slot_price is None:
            raise Refused(unpriced(welcome.name))
        spec, (files, versions) = self._spec, self._code
        located = spec.located
        return StartHost(
            run=spec.run,
            name=spec.name,
            slots=self._asked_of(address, slots, welcome),
            function=located.function,
            path=relative(located.path, located.folder),
            module=located.module,
            files=files,
            cwd=located.cwd,
            params=dict(spec.params),
            settings=spec.settings,
            versions=versions,
            state_dir=spec.state_dir,
            clock_offset=offset,
            ahead=ahead,
            key=self._run_key_text,
            log_level=logging.root.level,
            priority=self._hosts.priority,
        )

    def _asked_of(self, address: str, slots: int, welcome: Welcome) -> int:
        if self._hosts.priority is None:
            return min(slots, welcome.free) if slots else welcome.free
        return slots if address not in self._addresses_seen else 0  # one that comes back gets what is wanted then

    def _check_seen(self, node: Connection, name: str) -> None:
        """A host that has joined or come back must see what the others see. Raises Refused."""
        sharing = self._hosts.sharing
        own = [share for _, share in sharing.pinned] if name == sharing.host else []
        try:
            for share in (*sharing.shares, *own):
                if not share.seen_by(node):
                    raise Refused(share.unseen(name))
        except UsageError as error:
            raise Refused(str(error)) from None

    # starting --------------------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        """Return whether all hosts are up that the run waits for: one that was lost meanwhile, or that takes long, it begins without."""
        missing = self._missing
        if len(missing) == len(self._hosts.nodes):
            return False
        waited = time.monotonic() - self._since
        away = {*self._were_lost, *(self._unavailable if waited > _SOON else ())}
        return waited > READY_WITHIN or away.issuperset(missing)

    def tell_missing(self) -> None:
        """Say of each host that is not up that the run begins without it."""
        for address in self._missing:
            why = self._unavailable.get(address, "").removeprefix(f"{address}: ")
            why = why and f" ({why})"
            self.notices.append(
                f"host {address} is not there{why}: the run begins without it, and uses it as soon as it can"
            )

    @property
    def _missing(self) -> list[str]:
        """The addresses of hosts that are to be up and are not."""
        return [address for address, _ in self._hosts.nodes if self._links[address].up not in self.cluster.hosts]

    @property
    def late(self) -> str | None:
        """Return why the run cannot start; None while it may."""
        missing, waited = self._missing, time.monotonic() - self._since
        refused = [self._refusals[address] for address in missing if address in self._refusals]
        if refused and waited > _MISFIT_AFTER:
            return f"a host does not take this run: {refused[0]}"
        if len(missing) < len(self._hosts.nodes):
            return None
        if waited > READY_WITHIN:
            return f"no answer from {', '.join(missing)} within {READY_WITHIN:g} s"
        if waited > _SOON and self._unavailable.keys() >= set(missing):
            return f"no host takes this run now: {'; '.join(self._unavailable[address] for address in missing)}"
        return None

    # what has come -----------------------------------------------------------------------------------

    def read_events(self) -> None:
        """Sort what has come: into `inbox`, `readings`, `notices`."""
        for link in list(self._links.values()):
            while link.events:
                self._take(link, link.events.popleft())

    def _take(self, link: HostConnection, event: Any) -> None:
        if isinstance(event, FromSubUnits):
            self.inbox.extend(event.messages)
        elif isinstance(event, ProcessDied):
            self._where.pop(event.incarnation, None)
            self.inbox.append(Exited(event.incarnation, event.reason))
        elif isinstance(event, ProbeReadings):
            self.readings.extend(event.readings)
            if event.usage is not None:
                self.usage[event.usage.name] = event.usage
        elif isinstance(event, OutputLine):
            self._heard(event)
        elif isinstance(event, Joined):
            self._joined(link, event)
        elif isinstance(event, LostHost):
            self._lost(event)
        elif isinstance(event, Refusing):
            if event.misfit and self._refusals.get(link.address) != event.why:
                self.notices.append(f"{event.why}; it takes no part so far")
            told, other = (self._refusals, self._unavailable) if event.misfit else (self._unavailable, self._refusals)
            told[link.address] = event.why
            other.pop(link.address, None)
        elif isinstance(event, News):
            self._news(link, event)
        elif isinstance(event, Granted):
            self._granted(event)
        else:
            self.notices.append(f"a host said something that is not known: {event!r:.200}")

    def _heard(self, event: OutputLine) -> None:
        if len(self._lines) < _MOST_LINES:
            self._lines.append((event.mark, event.text))
            self._lines_there.set()
            self._dropping = self._dropping and len(self._lines) > _MOST_LINES // 2
        elif not self._dropping:
            self._dropping = True
            self.notices.append(f"{_MOST_LINES:,} printed lines wait for a slow terminal: further ones are dropped")

    def _joined(self, link: HostConnection, event: Joined) -> None:
        other = self._addresses.get(event.name)
        if other is not None and other != link.address and event.name in self.cluster.hosts:
            self._tell_twice(event.name, other, link.address)
            link.leave()
            return
        link.begin()
        self._addresses_seen.add(link.address)
        self._were_lost.discard(link.address)
        self._addresses[event.name] = link.address
        self._refusals.pop(link.address, None)
        self._unavailable.pop(link.address, None)
        self._demanded.pop(event.name, None)
        self._grants.pop(event.name, None)
        sharing = self._hosts.sharing
        own = [share.folder for _, share in sharing.pinned] if event.name == sharing.host else []
        self.cluster.join(event.name, event.slots, (*event.offers, *own), event.slot_price)
        if event.remark:
            self.notices.append(event.remark)
        self.notices.append(f"host {event.name} ({link.address}) offers {event.slots} slots")

    def _granted(self, event: Granted) -> None:
        host, grant = self.cluster.hosts.get(event.name), event.grant
        if self._sharing is None or host is None:
            return
        if grant.slots < host.taken <= host.slots:
            self.notices.append(
                f"host {event.name}: {host.taken - grant.slots} of {host.taken} slots go to a run of higher priority"
            )
        self._grants[event.name] = grant.number
        now = time.monotonic() + self._spec.clock_offset
        self._sharing.granted(self.cluster, event.name, grant.slots, grant.obtainable, now)
        host.others = tuple((s.name, s.priority, s.slots) for s in grant.shares if s.run != self._spec.run)

    def share_slots(self, core: Driver, now: float) -> None:
        """Come down to what may be held, and tell nodes what is wanted."""
        if self._sharing is None:
            return
        self._sharing.step(core, self.cluster, now)
        for name, each in self._sharing.demands(core, self.cluster, now).items():
            word = SlotDemand(self._grants.get(name, 0), each.held, each.wanted, each.least)
            if self._demanded.get(name) != word:
                self._demanded[name] = word
                self._links[self._addresses[name]].demand(word)

    def _tell_twice(self, name: str, first: str, second: str) -> None:
        self.notices.append(
            f"{first} and {second} are both named {name!r}: the second is left out; start it with --name"
        )

    def _lost(self, event: LostHost) -> None:
        self.cluster.lose(event.name)
        address = self._addresses.pop(event.name, None)  # it may come back at another one
        if address is not None:
            self._were_lost.add(address)
        self.usage.pop(event.name, None)
        self.notices.append(f"host {event.name} is lost: {event.why}")
        gone = [incarnation for incarnation, host in self._where.items() if host == event.name]
        for incarnation in gone:
            del self._where[incarnation]
            self.inbox.append(Exited(incarnation, f"its host {event.name} is lost", with_host=True))

    def _news(self, link: HostConnection, event: News) -> None:
        for member in event.members:
            known = member.address in self._links or member.name in self._addresses
            if not known and not self._ended and self._hosts_members:
                self._add(member.address, self._hosts.slots_of_newcomers)
        if event.draining and event.name in self.cluster.hosts and not self.cluster.hosts[event.name].draining:
            self.cluster.drain(event.name)
            self.notices.append(f"host {event.name} drains: its sub-units go to other hosts")

    @property
    def _hosts_members(self) -> bool:
        """Return whether nodes that are not named may take part."""
        return self._hosts.slots_of_newcomers >= 0

    # what goes out -----------------------------------------------------------------------------------

    def keeper(self, message: Any) -> None:
        """To the keeper of the host that it is about."""
        if isinstance(message, Fork):
            incarnation = message.build.incarnation
            self._where[incarnation] = message.build.host
        elif isinstance(message, (Kill, Release)):
            incarnation = message.incarnation
        else:
            raise TypeError(f"no keeper takes {message!r:.100}")
        link = self._link(incarnation)
        if link is not None:
            link.say(ToKeeper(message))
        elif not isinstance(message, Release):
            self._where.pop(incarnation, None)
            self.inbox.append(Exited(incarnation, "its host is lost", with_host=True))
            self._wake()

    def deliver(self, incarnation: int, messages: tuple[Any, ...]) -> None:
        """To a sub-unit or an ack server."""
        link = self._link(incarnation)
        if link is not None:
            link.say(ToSubUnit(incarnation, messages))

    def _link(self, incarnation: int) -> HostConnection | None:
        host = self._where.get(incarnation)
        if host is None or host not in self.cluster.hosts:
            return None
        return self._links.get(self._addresses.get(host, ""))

    def tell_crowded(self, number: int) -> None:
        """So many sub-units have no slot of their own: hosts were lost, and those that are left are full."""
        if number > self._crowded:
            self.notices.append(
                f"{number} sub-units share slots with others: the hosts that are left are full; start more nodes"
            )
        self._crowded = number

    def release_empty(self) -> None:
        """Let hosts go that drain and have no sub-unit left."""
        for name, host in list(self.cluster.hosts.items()):
            if host.draining and not host.used and name not in self._where.values():
                self.cluster.lose(name)
                self.usage.pop(name, None)
                self._links[self._addresses.pop(name)].release()
                self.notices.append(f"host {name} is empty and leaves the run")

    def probe(self, targets: Mapping[int, tuple[str, float]], epoch: int) -> None:
        """Have each host probe its own."""
        by_host: dict[str, dict[int, tuple[str, float]]] = defaultdict(dict)
        for incarnation, target in targets.items():
            host = self._where.get(incarnation)
            if host is not None:
                by_host[host][incarnation] = target
        for host in self.cluster.hosts:
            self._links[self._addresses[host]].say(ProbeTargets(by_host.get(host, {}), epoch))

    def leave(self) -> None:
        """The run is over: the hosts may end its processes."""
        self._ended = True
        for link in self._links.values():
            link.leave()
        until = time.monotonic() + _LEAVE_WITHIN
        for link in self._links.values():
            if link.up is not None:
                link.join(max(0.0, until - time.monotonic()))

    def _print(self) -> None:
        """In a thread: what user code printed on other hosts; a slow terminal holds up nothing else."""
        while True:
            self._lines_there.wait()
            self._lines_there.clear()
            while self._lines:
                with contextlib.suppress(IndexError):
                    mark, text = self._lines.popleft()
                    MarkedStream(self._spec.console_fd, mark).write(f"{text}\n")  # a whole line: nothing is left of it
