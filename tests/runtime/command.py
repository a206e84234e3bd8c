"""A command with an actor system of its own, for tests that start several, or kill one.

    python command.py [SCRATCH]

prints one JSON line (`pids`, `ports` of all its processes, its `answer` to a question asked of an actor), and then one
line for each line it reads: `ask` is answered by the actor, `frozen` stops the leaf's process, `end` shuts down.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import sys
from pathlib import Path

import psutil

from esault.runtime.actors import system
from esault.runtime.actors.actor import ReportingActor


class Leaf(ReportingActor):
    def receiveMsg_str(self, message: str, sender: object) -> None:
        self.send(sender, os.getpid())


class Parent(ReportingActor):
    """Has a child, and answers with what the child says."""

    def receiveMsg_str(self, message: str, sender: object) -> None:
        self.client = sender
        if not hasattr(self, "leaf"):
            self.leaf = self.createActor(Leaf)
        self.send(self.leaf, message)

    def receiveMsg_int(self, message: int, sender: object) -> None:
        self.send(self.client, message)


def main(scratch: Path | None) -> None:
    with system.start(secrets.token_bytes(32), title="esault test", scratch=scratch) as handle:
        parent = handle.create(Parent)
        handle.tell(parent, "who are you?")
        leaf = handle.listen(60)
        tree = [psutil.Process(), *psutil.Process().children(recursive=True)]
        ports = [each.laddr.port for process in tree for each in process.net_connections() if each.status == "LISTEN"]
        print(json.dumps({"pids": [each.pid for each in tree], "ports": ports, "answer": leaf}), flush=True)
        for line in sys.stdin:
            if line == "ask\n":
                handle.tell(parent, "who are you?")
                print(handle.listen(60), flush=True)
            elif line == "frozen\n":
                os.kill(leaf, signal.SIGSTOP)
                print("frozen", flush=True)
            elif line == "end\n":
                handle.shutdown(1.0)
                print("ended", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
