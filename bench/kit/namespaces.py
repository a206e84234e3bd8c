"""Network namespaces on one machine, each with an address, all on one bridge: hosts, as far as sockets can tell."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

__all__ = ["Namespaces"]


class Namespaces:
    """A namespace for each name, where they can be made: `made` says so. Without, all is on loopback."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._id = secrets.token_hex(3)
        self._spaces: list[str] = []
        self.made = os.geteuid() == 0 and shutil.which("ip") is not None and self._plug()

    def _plug(self) -> bool:
        """A bridge, and a namespace for each host; whether that is allowed here."""
        switch = f"eb{self._id}-switch"
        commands = [
            f"netns add {switch}",
            f"-n {switch} link add bridge type bridge",
            f"-n {switch} link set bridge up",
        ]
        self._spaces.append(switch)
        for name in self._names:
            space = f"eb{self._id}-{name}"
            self._spaces.append(space)
            commands += [
                f"netns add {space}",
                f"-n {space} link set lo up",
                f"-n {space} link add eth0 type veth peer name to-{name} netns {switch}",
                f"-n {space} addr add {self._address(name)}/24 dev eth0",
                f"-n {space} link set eth0 up",
                f"-n {switch} link set dev to-{name} master bridge",
                f"-n {switch} link set dev to-{name} up",
            ]
        for command in commands:
            if subprocess.run(["ip", *command.split()], capture_output=True, check=False).returncode:
                self.remove()
                return False
        return True

    def remove(self) -> None:
        """Remove them all."""
        for space in self._spaces:
            subprocess.run(["ip", "netns", "del", space], capture_output=True, check=False)
        self._spaces.clear()

    def _address(self, name: str) -> str:
        return f"10.78.0.{self._names.index(name) + 1}"

    def address(self, name: str) -> str:
        """The address of a host."""
        return self._address(name) if self.made else "127.0.0.1"

    def prefix(self, name: str, tmp: Path | None = None) -> list[str]:
        """Return what a command begins with that runs on a host; with `tmp` that folder is its /tmp."""
        if not self.made:
            return []
        enter = ["ip", "netns", "exec", f"eb{self._id}-{name}"]
        return enter if tmp is None else [*enter, "sh", "-c", f'mount --bind "{tmp}" /tmp && exec "$@"', "sh"]

    def cut(self, name: str) -> None:
        """Pull the plug of a host."""
        switch = f"eb{self._id}-switch"
        subprocess.run(["ip", "-n", switch, "link", "set", "dev", f"to-{name}", "down"], check=True)

    def plug(self, name: str) -> None:
        """Put the plug of a host in again."""
        switch = f"eb{self._id}-switch"
        subprocess.run(["ip", "-n", switch, "link", "set", "dev", f"to-{name}", "up"], check=True)

    def deafen(self, name: str, other: str, deaf: bool) -> None:
        """Have what a host sends to another one go to an address that is not there; or no more."""
        what = ["replace", self.address(other), "lladdr", "02:00:00:00:00:fe", "nud", "permanent"]
        if not deaf:
            what = ["del", self.address(other)]
        subprocess.run(["ip", "-n", f"eb{self._id}-{name}", "neigh", *what, "dev", "eth0"], check=True)
