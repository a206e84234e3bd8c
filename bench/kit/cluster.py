"""Nodes and a driver on this machine: each in a network namespace of its own where those can be made, else all on loopback."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.kit.measure import ROOT
from esault.cluster.key import make_key

__all__ = ["Cluster"]

NAMES = ("a", "b", "c")


class Cluster:
    """A context manager; `prefix` is what a command of the driver begins with."""

    def __init__(self, folder: Path, slots: int, names: Sequence[str] = NAMES) -> None:
        self.folder = folder
        self._names = tuple(names)
        self._slots = slots
        self._id = secrets.token_hex(3)
        self._spaces: list[str] = []
        self.nodes: dict[str, subprocess.Popen[str]] = {}
        self.namespaces = os.geteuid() == 0 and shutil.which("ip") is not None and self._plug()
        self.prefix = self._on("driver")
        self.key = str(make_key(folder / "key"))

    def _plug(self) -> bool:
        """A bridge, and a namespace for each host; whether that is allowed here."""
        switch = f"eb{self._id}-switch"
        commands = [
            f"netns add {switch}",
            f"-n {switch} link add bridge type bridge",
            f"-n {switch} link set bridge up",
        ]
        self._spaces.append(switch)
        for i, name in enumerate(("driver", *self._names), 1):
            space = f"eb{self._id}-{name}"
            self._spaces.append(space)
            commands += [
                f"netns add {space}",
                f"-n {space} link set lo up",
                f"-n {space} link add eth0 type veth peer name to-{name} netns {switch}",
                f"-n {space} addr add 10.78.0.{i}/24 dev eth0",
                f"-n {space} link set eth0 up",
                f"-n {switch} link set dev to-{name} master bridge",
                f"-n {switch} link set dev to-{name} up",
            ]
        for command in commands:
            if subprocess.run(["ip", *command.split()], capture_output=True, check=False).returncode:
                self._unplug()
                return False
        return True

    def _unplug(self) -> None:
        for space in self._spaces:
            subprocess.run(["ip", "netns", "del", space], capture_output=True, check=False)
        self._spaces.clear()

    def _on(self, name: str) -> list[str]:
        return ["ip", "netns", "exec", f"eb{self._id}-{name}"] if self.namespaces else []

    def __enter__(self) -> Cluster:
        addresses = []
        for i, name in enumerate(self._names, 2):
            address = f"10.78.0.{i}:7420" if self.namespaces else "127.0.0.1:0"
            node = subprocess.Popen(
                [
                    *self._on(name),
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
            addresses.append(node.stdout.readline().split()[-1])
        (self.folder / "hosts.toml").write_text(f'hosts = {addresses}\nkey = "key"\nshared = ["{self.folder}"]\n')
        return self

    def __exit__(self, *what: object) -> None:
        for node in self.nodes.values():
            node.kill()
            node.wait()
            if node.stdout is not None:
                node.stdout.close()
        self._unplug()

    def cut(self, name: str) -> None:
        """Pull the plug of a host; on loopback there is none, and its node is killed."""
        if self.namespaces:
            switch = f"eb{self._id}-switch"
            subprocess.run(["ip", "-n", switch, "link", "set", "dev", f"to-{name}", "down"], check=True)
        else:
            self.nodes[name].kill()
