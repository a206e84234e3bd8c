"""Separate network stacks on one machine: a namespace for each host, all plugged into a switch in one of its own.

The switch is a bridge of the kernel, or a relay of ours, which can delay and drop frames where the kernel has no `tc netem`.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
from pathlib import Path


def why_not() -> str | None:
    """Why namespaces cannot be made here; None: they can."""
    if shutil.which("ip") is None:
        return "there is no `ip` here: apt-get install iproute2"
    if os.geteuid() != 0:
        return "network namespaces need root here"
    probe = f"es{secrets.token_hex(3)}"
    made = subprocess.run(["ip", "netns", "add", probe], capture_output=True, text=True, check=False)
    if made.returncode:
        return f"this sandbox allows no network namespaces: {made.stderr.strip()}"
    link = ["ip", "-n", probe, "link", "add", "v0", "type", "veth", "peer", "name", "v1"]
    tried = subprocess.run(link, capture_output=True, text=True, check=False)
    subprocess.run(["ip", "netns", "del", probe], check=False)
    return f"this kernel has no veth: {tried.stderr.strip()}" if tried.returncode else None


class Network:
    """Hosts by name; the first has the address 10.77.0.1."""

    def __init__(self, *names: str) -> None:
        self._id = secrets.token_hex(3)
        self._switch = f"es{self._id}-switch"
        self.addresses = {name: f"10.77.0.{i}" for i, name in enumerate(names, 1)}
        try:
            ip("netns", "add", self._switch)
            self._make_switch()
            for name, address in self.addresses.items():
                self._plug_in(name, address)
        except BaseException:
            self.remove()
            raise

    def space(self, name: str) -> str:
        """The host's namespace."""
        return f"es{self._id}-{name}"

    def _make_switch(self) -> None:
        ip("-n", self._switch, "link", "add", "bridge", "type", "bridge")
        ip("-n", self._switch, "link", "set", "bridge", "up")

    def _plug_in(self, name: str, address: str) -> None:
        space = self.space(name)
        ip("netns", "add", space)
        ip("-n", space, "link", "set", "lo", "up")
        ip("-n", space, "link", "add", "eth0", "type", "veth", "peer", "name", f"to-{name}", "netns", self._switch)
        ip("-n", space, "addr", "add", f"{address}/24", "dev", "eth0")
        ip("-n", space, "link", "set", "eth0", "up")
        self._connect(f"to-{name}")
        ip("-n", self._switch, "link", "set", "dev", f"to-{name}", "up")

    def _connect(self, cable: str) -> None:
        ip("-n", self._switch, "link", "set", "dev", cable, "master", "bridge")

    def on(self, name: str) -> tuple[str, ...]:
        """What a command begins with to run on that host."""
        return ("ip", "netns", "exec", self.space(name))

    def cut(self, name: str, off: bool = True) -> None:
        """Pull the host's plug at the switch: it cannot tell, and nobody hangs up. Or put it back."""
        ip("-n", self._switch, "link", "set", "dev", f"to-{name}", "down" if off else "up")

    def remove(self) -> None:
        """All of it; links go with their namespaces."""
        for space in [*map(self.space, self.addresses), self._switch]:
            subprocess.run(["ip", "netns", "del", space], capture_output=True, check=False)


class RelayedNetwork(Network):
    """Its switch is `relay.py`."""

    def __init__(self, *names: str) -> None:
        self._relay: subprocess.Popen[str] | None = None
        super().__init__(*names)
        relay = [sys.executable, str(Path(__file__).with_name("relay.py")), *names]
        self._relay = subprocess.Popen(
            ["ip", "netns", "exec", self._switch, *relay], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.order("count")

    def _make_switch(self) -> None:
        """The relay is started when all cables are there."""

    def _connect(self, cable: str) -> None:
        """It listens on every cable."""

    def order(self, *words: object) -> dict[str, int]:
        """Tell the relay something; how many frames it has forwarded, lost and cut off so far."""
        assert self._relay is not None
        self._relay.stdin.write(f"{json.dumps(words)}\n")
        self._relay.stdin.flush()
        return json.loads(self._relay.stdout.readline())

    def suffer(self, delay: float = 0.0, jitter: float = 0.0, loss: float = 0.0) -> None:
        """Each frame takes `delay` seconds and up to `jitter` more, and is lost with the probability `loss`."""
        self.order("delay", delay, jitter, loss)

    def cut(self, name: str, off: bool = True) -> None:
        """As of a bridge."""
        for other in self.addresses:
            if other != name:
                self.part(name, other, off)

    def part(self, name: str, other: str, off: bool = True) -> None:
        """These two do not reach each other any more, and all others do. Or they do again."""
        for ends in ((name, other), (other, name)):
            self.order("cut" if off else "heal", *ends)

    def remove(self) -> None:
        """All of it."""
        if self._relay is not None:
            self._relay.stdin.close()
            self._relay.wait(10)
            self._relay.stdout.close()
        super().remove()


def ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ip {' '.join(arguments)}: {done.stderr}"
