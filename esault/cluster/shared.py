"""Files that several processes write must lie where all of them see the same: declared in hosts.toml, or seen by one host beside the driver's.

A mark is put into each folder that will be written to, and each host is asked what the mark says there: before a run starts, and
of a host that joins. What lies in no folder that is declared keeps the units that write it on one host (`Sharing.pinned`).
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from esault.cluster.address import is_loopback, split
from esault.cluster.connection import Connection, Lost
from esault.cluster.hosts_file import HostsFile
from esault.cluster.key import ClusterKey
from esault.cluster.messages import MarkText, ReadMark, Refusal
from esault.cluster.survey import ANSWER_WITHIN, Found, greet
from esault.cluster.tls import Refused
from esault.errors import UsageError

__all__ = ["Share", "Sharing", "Written", "check_shared", "read_mark"]

_MARK = ".esault-mark-"
_LENGTH = 32


@dataclass(frozen=True)
class Written:
    """Something that the processes of a run write and the driver looks after."""

    #: for people
    what: str
    path: Any
    #: the unit that writes it; None: all of them
    unit: str | None = None

    def __str__(self) -> str:
        return f"{self.what} ({self.path})"


@dataclass(frozen=True)
class Share:
    """A folder that is there already and that others must see as this machine does."""

    what: str
    folder: str

    def seen_by(self, node: Connection) -> bool:
        """Return whether the host of this node sees the folder. Raises Lost, Refused, UsageError."""
        text = secrets.token_hex(_LENGTH // 2)
        mark = Path(self.folder) / f"{_MARK}{secrets.token_hex(4)}"
        try:
            mark.write_text(text, encoding="ascii")
        except OSError as error:
            raise UsageError(f"{self.what}: {self.folder} cannot be written: {error.strerror or error}") from None
        try:
            answer = node.ask(ReadMark(str(mark)), ANSWER_WITHIN, MarkText, Refusal)
        finally:
            with contextlib.suppress(OSError):
                mark.unlink()
        return isinstance(answer, MarkText) and answer.text == text

    def unseen(self, host: str) -> str:
        """Return the error text for a host that does not see it."""
        return (
            f"{self.what}: host {host} does not see in {self.folder} what this machine has just written there, although "
            "hosts.toml says so, or it did before: mount it there"
        )


@dataclass(frozen=True)
class Sharing:
    """The folders that every host must see, and the one host for units that write elsewhere."""

    #: every host
    shares: tuple[Share, ...] = ()
    #: the one host that the units below stay on; None: there are no such units
    host: str | None = None
    #: unit -> what it writes, which lies in no folder that is declared
    pinned: tuple[tuple[str, Share], ...] = ()


def check_shared(written: Iterable[Written], file: HostsFile, found: Sequence[Found], key: ClusterKey) -> Sharing:
    """Raises UsageError for what hosts.toml declares as shared and a host sees otherwise, and for what is not declared and would
    be written by processes of several hosts, or on none that sees it.

    Hosts that listen on loopback alone are one machine, and share all there is; others that do not answer may come later.
    """
    if all(_is_here(address) for address in (*file.hosts, *(each.address for each in found))):
        return Sharing()
    declared = [os.path.realpath(folder) for folder in file.shared]
    shares: dict[str, Share] = {}
    own: list[tuple[Written, Share]] = []
    for each in written:
        named = os.path.abspath(os.path.expanduser(os.fspath(each.path)))
        full = os.path.realpath(named)
        share = Share(
            str(each), _existing(named)
        )  # as it is named, for a link to it may lead elsewhere on another host
        if any(full == folder or full.startswith(folder.rstrip("/") + "/") for folder in declared):
            shares[share.folder] = share
        elif each.unit is None:
            raise UsageError(_undeclared(each, file))
        else:
            own.append((each, share))
    seeing = [host for host in found if _sees(host, shares.values(), own, key)]
    if not own:
        return Sharing(tuple(shares.values()))
    able = [host for host in seeing if host.welcome.free and not host.welcome.draining]
    if not able:
        which = "the host that does has no free slot" if seeing else "no host sees the same there"
        raise UsageError(f"{_undeclared(own[0][0], file)}; or start a node on this machine, for {which}")
    best = max(able, key=lambda host: host.welcome.free)
    pinned = tuple((each.unit, share) for each, share in own if each.unit is not None)
    return Sharing(tuple(shares.values()), best.welcome.name, pinned)


def _is_here(address: str) -> bool:
    """Return whether it is this machine; one without an address so far is another."""
    try:
        return is_loopback(split(address)[0])
    except UsageError:
        return False


def read_mark(path: str) -> str | None:
    """On a host: what a mark says; None for what is none."""
    if not os.path.basename(path).startswith(_MARK):
        return None
    with contextlib.suppress(OSError, UnicodeError), open(path, encoding="ascii") as file:
        return file.read(_LENGTH)
    return None


def _undeclared(written: Written, file: HostsFile) -> str:
    said = f" (shared are: {', '.join(file.shared)})" if file.shared else ""
    return (
        f"{written.what} lies at {written.path}, which hosts.toml does not say is the same on all hosts: put it under a folder that "
        f'they share (such as NFS), and declare that: shared = ["/mnt/data"]{said}'
    )


def _existing(path: str) -> str:
    """The folder that is there already, in which this will be made."""
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return path


def _sees(host: Found, shares: Iterable[Share], own: Iterable[tuple[Written, Share]], key: ClusterKey) -> bool:
    """Return whether a host sees what is not declared; raises UsageError where it does not see what is."""
    node, _ = greet(host.address, key)
    try:
        for share in shares:
            if not share.seen_by(node):
                raise UsageError(share.unseen(host.welcome.name))
        return all(share.seen_by(node) for _, share in own)
    except (Lost, Refused) as error:
        raise UsageError(f"host {host.address} hung up: {error}") from None
    finally:
        node.close()
