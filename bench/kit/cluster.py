"""Nodes and a driver on this machine: each in a network namespace of its own where those can be made, else all on loopback."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import psutil

from bench.kit.measure import ROOT
from bench.kit.namespaces import Namespaces
from esault.cluster.key import make_key

__all__ = ["Cluster"]

NAMES = ("a", "b", "c")


class Cluster:
    """A context manager; `prefix` is what a command of the driver begins with."""

    def __init__(self, folder: Path, slots: int, names: Sequence[str] = NAMES) -> None:
        self.folder = folder
        self._names = tuple(names)
        self._slots = slots
        self._spaces = Namespaces(("driver", *self._names))
        self.nodes: dict[str, subprocess.Popen[str]] = {}
        self.namespaces = self._spaces.made
        self.prefix = self._spaces.prefix("driver")
        self.key = str(make_key(folder / "key"))

    def __enter__(self) -> Cluster:
        addresses = [self.start(name) for name in self._names]
        (self.folder / "hosts.toml").write_text(f'hosts = {addresses}\nkey = "key"\nshared = ["{self.folder}"]\n')
        return self

    def start(self, name: str) -> str:
        """Start a host's node, also once more; its address."""
        address = f"{self._spaces.address(name)}:7420" if self.namespaces else "127.0.0.1:0"
        node = subprocess.Popen(
            [
                *self._spaces.prefix(name),
                sys.executable,
                "-m",
                "esault",
                "node",
                "--listen",
                address,
                "--key",
                self.key,
                "--name",
                name,
                "--slots",
                str(self._slots),
                "--log-level",
                "error",
            ],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.nodes[name] = node
        assert node.stdout is not None
        return node.stdout.readline().split()[-1]

    def __exit__(self, *what: object) -> None:
        for node in self.nodes.values():
            node.kill()
            node.wait()
            if node.stdout is not None:
                node.stdout.close()
        self._spaces.remove()

    def cut(self, name: str) -> None:
        """Pull the plug of a host; on loopback there is none, and its node is killed."""
        if self.namespaces:
            self._spaces.cut(name)
        else:
            self.nodes[name].kill()

    def plug(self, name: str) -> None:
        """Put the plug of a host in again."""
        self._spaces.plug(name)

    def deafen(self, name: str, other: str, deaf: bool = True) -> None:
        """Lose all that a host sends to another one, and nothing that comes the other way; or no more."""
        self._spaces.deafen(name, other, deaf)

    def processes(self, name: str) -> list[psutil.Process]:
        """Return a host's node, and all that it has started."""
        try:
            node = psutil.Process(self.nodes[name].pid)
            return [node, *node.children(recursive=True)]
        except psutil.Error:
            return []
