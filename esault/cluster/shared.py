"""What several hosts write must lie where all see the same: declared in hosts.toml, and looked at before a run starts.

A mark is put into each folder that will be written to, and each host is asked what the mark says there.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from esault.cluster.address import is_loopback, split
from esault.cluster.connection import Lost
from esault.cluster.hosts_file import HostsFile
from esault.cluster.key import ClusterKey
from esault.cluster.survey import ANSWER_WITHIN, Found, greet
from esault.cluster.tls import Refused
from esault.cluster.words import Look, Looked, Refusal
from esault.errors import UsageError

__all__ = ["check_shared", "read_mark"]

_MARK = ".esault-mark-"
_LENGTH = 32


def check_shared(what: Iterable[tuple[str, Any]], file: HostsFile, found: Sequence[Found], key: ClusterKey) -> None:
    """Raises UsageError for (what it is, path) that hosts.toml does not declare as shared, or that a host sees otherwise.

    Hosts that listen on loopback alone are one machine, and share all there is.
    """
    if all(is_loopback(split(each.address)[0]) for each in found):
        return
    shared = [os.path.realpath(folder) for folder in file.shared]
    folders: dict[str, str] = {}
    for name, path in what:
        full = os.path.realpath(os.path.expanduser(os.fspath(path)))
        if not any(full == folder or full.startswith(folder.rstrip("/") + "/") for folder in shared):
            said = f"; shared are: {', '.join(file.shared)}" if file.shared else ""
            raise UsageError(
                f"{name} lies at {path}, which hosts.toml does not say is the same on all hosts: put it under a folder that they share "
                f'(such as NFS), and declare that: shared = ["/mnt/data"]{said}'
            )
        folders[_existing(full)] = f"{name} ({path})"
    for folder, name in folders.items():
        _look(folder, name, found, key)


def read_mark(path: str) -> str | None:
    """On a host: what a mark says; None for what is none."""
    if not os.path.basename(path).startswith(_MARK):
        return None
    with contextlib.suppress(OSError, UnicodeError), open(path, encoding="ascii") as file:
        return file.read(_LENGTH)
    return None


def _existing(path: str) -> str:
    """The folder that is there already, in which this will be made."""
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return path


def _look(folder: str, name: str, found: Sequence[Found], key: ClusterKey) -> None:
    text = secrets.token_hex(_LENGTH // 2)
    mark = Path(folder) / f"{_MARK}{secrets.token_hex(4)}"
    try:
        mark.write_text(text, encoding="ascii")
    except OSError as error:
        raise UsageError(f"{name}: {folder} cannot be written: {error.strerror or error}") from None
    try:
        for each in found:
            node, _ = greet(each.address, key)
            try:
                answer = node.ask(Look(str(mark)), ANSWER_WITHIN, Looked, Refusal)
            except (Lost, Refused) as error:
                raise UsageError(f"host {each.address} hung up: {error}") from None
            finally:
                node.close()
            if not isinstance(answer, Looked) or answer.text != text:
                raise UsageError(
                    f"{name}: host {each.welcome.name} does not see in {folder} what this machine has just written there, although "
                    "hosts.toml says that it is shared: mount it there"
                )
    finally:
        with contextlib.suppress(OSError):
            mark.unlink()
