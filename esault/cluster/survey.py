"""A first look at the hosts of a run, before anything starts: who is there, what they have, whether all fit together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from esault.cluster.address import split
from esault.cluster.connection import Connection, Lost, call
from esault.cluster.key import ClusterKey
from esault.cluster.messages import Refusal, Welcome
from esault.cluster.tls import Refused
from esault.cluster.versions import differences, hello
from esault.errors import UsageError

__all__ = ["Found", "Unavailable", "Unreachable", "greet", "share_by_priority", "share_out", "survey"]

#: seconds that a host has to answer
ANSWER_WITHIN = 5.0
#: hosts that are asked at a time: one that is gone without a word takes as long as that
_AT_ONCE = 32


@dataclass(frozen=True)
class Found:
    """A node that answered."""

    address: str
    welcome: Welcome


class Unavailable(UsageError):
    """Hosts that do not have now what was rightly asked for: tried again later, it may begin."""

    wrong_use = False


class Unreachable(Unavailable):
    """No process answers there, or it was gone before it had answered all."""


def greet(address: str, key: ClusterKey) -> tuple[Connection, Found]:
    """A connection to one node, and what it says of itself. Raises UsageError, naming the address and what is wrong.

    Unreachable, where no process answers to the end.
    """
    host, port = split(address)
    try:
        node = call(host, port, key.client, ANSWER_WITHIN)
    except Lost as error:
        raise Unreachable(f"host {address} cannot be reached: {error}; is `esault node` running there?") from None
    except Refused as error:
        raise UsageError(f"host {address} is not let in: {error}") from None
    try:
        answer = node.ask(hello(), ANSWER_WITHIN)
        if isinstance(answer, Refusal):
            raise UsageError(answer.text)
        if not isinstance(answer, Welcome):
            raise UsageError(f"host {address} answered {answer!r:.100}")
        differs = differences(answer)
        if differs:
            raise UsageError(f"host {address} does not fit: {differs}; install the same on both")
    except Lost as error:
        node.close()
        raise Unreachable(f"host {address} hung up: {error}; does it have another key?") from None
    except Refused as error:
        node.close()
        raise UsageError(f"host {address} does not let us in: {error}") from None
    except UsageError:
        node.close()
        raise
    return node, Found(address, answer)


def ask(address: str, key: ClusterKey) -> Found:
    """Return what one node says of itself. Raises UsageError."""
    node, found = greet(address, key)
    node.close()
    return found


def survey(addresses: Sequence[str], key: ClusterKey) -> tuple[list[Found], dict[str, Unreachable]]:
    """These nodes and those that have joined them; and of those named the ones that do not answer.

    Raises UsageError for the first of those named that answers and will not do, and where none answers.
    """
    found: dict[str, Found] = {}
    names: dict[str, str] = {}
    absent: dict[str, Unreachable] = {}

    def ask_named(address: str) -> Found | Unreachable:
        try:
            return ask(address, key)
        except Unreachable as error:
            return error

    with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        for address, each in zip(addresses, pool.map(ask_named, addresses)):
            if isinstance(each, Unreachable):
                absent[address] = each
                continue
            name = each.welcome.name
            if name in names and names[name] != each.address:
                raise UsageError(
                    f"{names[name]} and {each.address} are both named {name!r}: start one of them with --name"
                )
            names[name] = each.address
            found[each.address] = each
    if not found:
        raise next(iter(absent.values()))
    members = {m.address: m.name for each in found.values() for m in each.welcome.members if m.name not in names}

    def ask_member(address: str) -> Found | None:
        try:
            return ask(address, key)
        except UsageError:
            return None  # it has left, or comes back while the run goes on

    with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        for address, more in zip(members, pool.map(ask_member, members)):
            if more is not None and members[address] not in names:
                names[members[address]] = address
                found[address] = more
    return list(found.values()), absent


def share_out(found: Iterable[Found], slots: int | None) -> tuple[tuple[str, int], ...]:
    """Return the slots to ask of each node: all that are free, or `slots` in all, dealt out one by one. Raises UsageError."""
    usable = [each for each in found if each.welcome.free and not each.welcome.draining]
    free = sum(each.welcome.free for each in usable)
    if not usable:
        raise Unavailable("no host has a free slot: wait until another run has ended, or start more nodes")
    if slots is None:
        return tuple((each.address, each.welcome.free) for each in usable)
    if slots > free:
        raise Unavailable(f"--slots {slots}: the hosts have {free} free slots in all")
    shares = dict.fromkeys((each.address for each in usable), 0)
    while sum(shares.values()) < slots:
        for each in usable:
            if shares[each.address] < each.welcome.free and sum(shares.values()) < slots:
                shares[each.address] += 1
    return tuple((address, share) for address, share in shares.items() if share)


def share_by_priority(found: Iterable[Found], slots: int, priority: int) -> tuple[tuple[str, int], ...]:
    """Return the slots to ask of each node to begin with: free ones first, then those that runs of lower priority can give.

    Nodes of which none is asked are named, too: the run may want some later. Raises UsageError.
    """
    usable = [each.welcome for each in found if not each.welcome.draining]
    address = {each.welcome.name: each.address for each in found}
    free = {each.name: each.free for each in usable}
    held = {
        each.name: sum(
            max(0, share.slots - share.least)
            for share in each.shares
            if share.priority is not None and share.priority < priority
        )
        for each in usable
    }
    if sum(free.values()) + sum(held.values()) < slots:
        raise Unavailable(
            f"the run takes {slots} slots to begin, and the hosts have {sum(free.values())} free and {sum(held.values())} that runs of "
            "lower priority can give: start more nodes, wait until another run has ended, or give it a higher --priority"
        )
    shares = dict.fromkeys(free, 0)
    for room in (free, held):
        while sum(shares.values()) < slots and any(room.values()):
            for name in [name for name in room if room[name]]:
                if sum(shares.values()) < slots:
                    shares[name] += 1
                    room[name] -= 1
    return tuple((address[name], share) for name, share in shares.items())
