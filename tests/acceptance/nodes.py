"""Nodes on loopback, each with a port and a name of its own: several hosts as far as the engine can tell."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import esault_command
import psutil
from namespaces import Network

from esault.cluster.key import make_key

ROOT = str(Path(__file__).parents[2])
ESAULT = ("-m", "esault")


class NodeProcess:
    """One `esault node`."""

    def __init__(
        self,
        folder: Path,
        name: str,
        *arguments: str,
        prefix: tuple[str, ...] = (),
        listen: str = "127.0.0.1:0",
        program: tuple[str, ...] = ESAULT,
    ):
        self.name = name
        self.log = folder / f"node-{name}.log"
        asked = ("node", "--listen", listen, "--name", name, *arguments)
        with self.log.open("w") as log:
            streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": log}
            if prefix or program != ESAULT:
                python = [*prefix, sys.executable, *program, *asked]
                variables = {**os.environ, "PYTHONPATH": ROOT}
                self.process = subprocess.Popen(python, cwd=folder, env=variables, text=True, **streams)
            else:
                self.process = esault_command.start(*asked, cwd=folder, **streams)
        self.address = ""

    def ready(self) -> NodeProcess:
        """Waits until it listens."""
        said = self.process.stdout.readline()
        assert said.startswith(f"node {self.name}: "), said + self.said()
        self.address = said.split()[-1]
        return self

    def said(self) -> str:
        return self.log.read_text()

    def kill(self, number: int = signal.SIGKILL) -> None:
        self.process.send_signal(number)

    def tree(self) -> list[psutil.Process]:
        try:
            return [psutil.Process(self.process.pid), *psutil.Process(self.process.pid).children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def freeze(self, on: bool = True) -> None:
        """All processes of this host stand still, or go on."""
        for process in self.tree():
            try:
                process.suspend() if on else process.resume()
            except psutil.NoSuchProcess:
                continue

    def end(self) -> None:
        tree = self.tree()
        for process in reversed(tree):
            try:
                process.resume()
                process.kill()
            except psutil.NoSuchProcess:
                continue
        self.process.wait(10)
        self.process.stdout.close()
        psutil.wait_procs(tree, 5)


class Nodes:
    """The nodes of a test, their key and their hosts.toml."""

    def __init__(self, folder: Path, network: Network | None = None) -> None:
        """`network`: where each node has a stack of its own; None: all on loopback."""
        self.folder = folder
        self.network = network
        self.key = str(make_key(folder / "key"))
        self.nodes: dict[str, NodeProcess] = {}

    def start(self, *names: str, slots: int = 4, more: tuple[str, ...] = (), prefix: tuple[str, ...] = ()) -> None:
        """Start these, and name all that there are in hosts.toml."""
        for name in names:
            options = ("--key", self.key, "--slots", str(slots), *more)
            if self.network is None:
                self.nodes[name] = NodeProcess(self.folder, name, *options)
            else:
                there, listen = self.network.on(name), self.network.addresses[name]
                self.nodes[name] = NodeProcess(self.folder, name, *options, prefix=(*there, *prefix), listen=listen)
        for name in names:
            self.nodes[name].ready()
        self.name_all()

    def name_all(self, *names: str) -> None:
        """Write hosts.toml."""
        addresses = [self.nodes[name].address for name in names or self.nodes]
        shared = "" if self.network is None else f'shared = ["{self.folder}"]\n'
        (self.folder / "hosts.toml").write_text(f"hosts = {addresses}\n{shared}")

    @property
    def options(self) -> tuple[str, ...]:
        """Of `esault run`."""
        return ("--hosts", "hosts.toml", "--key", self.key)

    def __getitem__(self, name: str) -> NodeProcess:
        return self.nodes[name]

    def end(self) -> None:
        for node in self.nodes.values():
            node.end()
