"""A stranger who connects to any port of an actor system achieves nothing and breaks nothing."""

from __future__ import annotations

import contextlib
import os
import pickle
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from esault.runtime.actors import guard, system
from esault.runtime.actors.actor import ReportingActor
from esault.runtime.actors.signature import MAX_FRAME, Signer

ROOT = Path(__file__).parents[2]


class Target(ReportingActor):
    def receiveMsg_str(self, message: str, sender: Any) -> None:
        answers: dict[str, Callable[[], object]] = {
            "pid": os.getpid,
            "refused": guard.refused,
            "hello": lambda: "hello",
        }
        self.send(sender, answers[message]())

    def receiveMsg_tuple(self, message: tuple[Any, str], sender: Any) -> None:
        """Send a text to an address."""
        self.send(message[0], message[1])
        self.send(sender, "sent")


class System:
    """A system with one actor, and the ports of its processes."""

    def __init__(self, handle: system.ActorSystemHandle) -> None:
        self.handle = handle
        self.actor = handle.create(Target)
        self.pid = self.ask("pid")
        self.ports = {name: port(pid) for name, pid in (("actor", self.pid), ("admin", handle.pid))}
        self.ports["command"] = handle._transport.socket.getsockname()[1]

    def ask(self, message: object) -> Any:
        assert self.handle.tell(self.actor, message)
        return self.handle.listen(60)

    def works(self) -> bool:
        """Whether command, actor and admin all still do their work, and at once."""
        started = time.monotonic()
        answered = self.ask("hello") == "hello"
        another = self.handle.create(Target)
        created = self.handle.tell(another, "hello") and self.handle.listen(60) == "hello"
        return answered and created and self.handle.alive() and time.monotonic() - started < 1


def own(pid: int) -> list[Any]:
    """Sockets of a process but those that it has from this one by fork: another test may have left some open here."""
    here = {each.laddr for each in psutil.Process().net_connections() if each.status == "LISTEN"}
    return [each for each in psutil.Process(pid).net_connections() if each.laddr not in here]


def port(pid: int) -> int:
    (found,) = {each.laddr.port for each in own(pid) if each.status == "LISTEN"}
    return found


@pytest.fixture
def target() -> Iterator[System]:
    with system.start(secrets.token_bytes(32)) as handle:
        yield System(handle)


def connect(number: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", number), timeout=2)


class CreatesAFile:
    """Unpickling it creates a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.mkdir, (str(self.path),))


def frame(body: bytes) -> bytes:
    return b"%d>%b" % (len(body), body)


@pytest.mark.parametrize("who", ["actor", "admin", "command"])
def test_a_stranger_who_sends_what_he_likes_changes_nothing(target: System, who: str, tmp_path: Path) -> None:
    trap = CreatesAFile(tmp_path / "created")
    sent = [
        frame(pickle.dumps(trap)),
        frame(pickle.dumps((trap, trap))),
        frame(b"\0" * 48 + pickle.dumps(trap)),
        frame(Signer(secrets.token_bytes(32)).dumps((trap, trap))),
        frame(pickle.dumps("ACK")),
        b"-5>",
        b"0>",
        b"7",
        b"9" * 100_000,
        b"%d>" % 10**18 + b"x" * 1000,
        b"%d>" % (MAX_FRAME - 1) + b"\0" * 1000,
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        secrets.token_bytes(10_000),
    ]
    before = target.ask("refused")
    for data in sent:
        with contextlib.suppress(OSError), connect(target.ports[who]) as stranger:
            stranger.sendall(data)
            if who == "command":
                assert target.handle.listen(0.02) is None
            # what is refused is closed without an answer; an incomplete length is waited for
            stranger.settimeout(0.2 if data == b"7" else 2)
            with contextlib.suppress(TimeoutError):
                assert stranger.recv(100) == b""
    assert target.works()
    assert not (tmp_path / "created").exists()
    if who == "actor":
        assert target.ask("refused") - before == len(sent) - 1


def test_the_trap_of_these_tests_would_work(tmp_path: Path) -> None:
    pickle.loads(pickle.dumps(CreatesAFile(tmp_path / "created")))
    assert (tmp_path / "created").exists()


def test_strangers_who_say_nothing_stall_nobody(target: System) -> None:
    with contextlib.ExitStack() as stack:
        silent = []
        for _ in range(3 * guard.MAX_STRANGERS):
            silent.append(stack.enter_context(connect(target.ports["actor"])))
            silent[-1].sendall(b"12")
        assert target.works()
        open_ = [
            each
            for each in psutil.Process(target.pid).net_connections()
            if each.status == "ESTABLISHED" and each.laddr.port == target.ports["actor"]
        ]
        assert len(open_) <= guard.MAX_STRANGERS + 10


def test_a_stranger_who_announces_much_and_sends_much_costs_no_memory(target: System) -> None:
    before = psutil.Process(target.pid).memory_info().rss
    for _ in range(3):
        with contextlib.suppress(OSError), connect(target.ports["actor"]) as stranger:
            stranger.sendall(b"%d>" % (MAX_FRAME - 1))
            for _ in range(30):
                stranger.sendall(b"\0" * 1_000_000)
    assert target.works()
    assert psutil.Process(target.pid).memory_info().rss - before < 8e6


def test_a_stranger_on_the_port_of_a_dead_actor_stops_nobody(target: System, tmp_path: Path) -> None:
    victim = target.handle.create(Target)
    target.handle.tell(victim, "pid")
    pid = target.handle.listen(60)
    number = port(pid)
    os.kill(pid, signal.SIGKILL)
    answers = [b"-1>", frame(pickle.dumps("ACK")), frame(pickle.dumps(CreatesAFile(tmp_path / "created"))), b"9" * 99]
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bind(listener, number)
        listener.listen()
        listener.settimeout(0.1)
        over = threading.Event()
        got = []

        def answer() -> None:
            while not over.is_set():
                with contextlib.suppress(TimeoutError, OSError):
                    connection, _ = listener.accept()
                    with connection:
                        connection.settimeout(0.2)
                        got.append(connection.recv(1000))
                        connection.sendall(answers[len(got) % len(answers)])
                        connection.recv(1000)

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            for _ in range(30):
                assert target.ask((victim, "for the dead")) == "sent"
            until = time.monotonic() + 4
            while len(got) < 2 and time.monotonic() < until:
                time.sleep(0.01)
            assert target.ask("hello") == "hello"
        finally:
            over.set()
            thread.join()
    assert len(got) >= 2 and not (tmp_path / "created").exists()
    assert target.works()


def bind(listener: socket.socket, number: int) -> None:
    until = time.monotonic() + 3
    while True:
        try:
            return listener.bind(("127.0.0.1", number))
        except OSError:  # the dead process is not quite gone
            if time.monotonic() > until:
                raise
            time.sleep(0.01)


def test_all_sockets_are_on_the_loopback_address(target: System) -> None:
    processes = [psutil.Process(), *psutil.Process(target.handle.pid).children(), psutil.Process(target.handle.pid)]
    connections = [each for process in processes[1:] for each in own(process.pid)]
    assert {each.laddr.ip for each in connections} == {"127.0.0.1"}
    assert {each.type for each in connections} == {socket.SOCK_STREAM}


def test_a_secret_of_another_run_opens_nothing(target: System, tmp_path: Path) -> None:
    with connect(target.ports["actor"]) as stranger:
        stranger.sendall(frame(Signer(b"x" * 32).dumps((target.actor, CreatesAFile(tmp_path / "created")))))
        assert stranger.recv(100) == b""
    assert target.works() and not (tmp_path / "created").exists()


def test_a_short_secret_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"has 8 bytes; 16 is the least: use secrets.token_bytes\(32\)"):
        guard.install(b"tooshort")


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=20)
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    "moved",
    [
        "del tcp.TCPTransport._acceptNewIncoming",
        "del tcp.ReceiveBuffer",
        "del tcp.MAX_INCOMING_SOCKET_PERIOD",
        "del asyncTransportBase.exclusive_processing",
        "del streamBuffer.ackPacket",
        "streamBuffer.ackPacket = 'YES'",
        "tcp.TCPTransport._addedDataToIncoming = lambda self, other: None",
        "IPBase.IPActorAddress.__init__ = lambda self, host, port: None",
        "del IPBase.IPActorAddress.bindArgs",
        # names that are still there, but that Thespian uses no longer
        "tcp.TCPTransport.serializer = lambda self, intent: b'%d>%b' % (4, pickle.dumps(1))",
        "tcp.TCPIncoming_Common.__init__ = lambda self, a, b: setattr(self, '_rData', original(pickle.loads))",
    ],
)
def test_a_thespian_that_has_changed_is_an_error_that_names_its_version(moved: str) -> None:
    said = python(
        "import pickle, os\n"
        "from thespian.system.transport import IPBase, TCPTransport as tcp, asyncTransportBase, streamBuffer\n"
        "from esault.runtime.actors import guard\n"
        f"original = tcp.ReceiveBuffer\n{moved}\n"
        "try: guard.install(os.urandom(32))\n"
        "except RuntimeError as error: print(error)\n"
    )
    assert said.startswith("Thespian ") and "is not built as esault expects" in said
    assert "pip install 'thespian==4.0.1'\n" in said


def test_no_name_is_looked_up_and_nothing_but_the_loopback_address_is_connected_to() -> None:
    said = python(
        "import sys, secrets\n"
        "def watch(event, args):\n"
        "    if event in ('socket.connect', 'socket.bind', 'socket.sendto') and args[1][0] != '127.0.0.1':\n"
        "        print(event, args, flush=True)\n"
        "    elif event == 'socket.getaddrinfo' and args[0] not in (None, '127.0.0.1', 'localhost'):\n"
        "        print(event, args, flush=True)\n"
        "    elif event.startswith('socket.gethost') or event == 'socket.getnameinfo':\n"
        "        print(event, args, flush=True)\n"
        "sys.addaudithook(watch)\n"
        "from esault.runtime.actors import system\n"
        "from esault.runtime.actors.actor import ReportingActor\n"
        "class Someone(ReportingActor):\n"
        "    def receiveMsg_str(self, message, sender): self.send(sender, message)\n"
        "with system.start(secrets.token_bytes(32)) as handle:\n"
        "    handle.tell(handle.create(Someone), 'it works')\n"
        "    print(handle.listen(60))\n"
    )
    assert said == "it works\n"


def test_a_second_secret_takes_the_place_of_the_first() -> None:
    for _ in range(2):
        with system.start(secrets.token_bytes(32)) as handle:
            assert System(handle).works()


@pytest.mark.slow
def test_signing_costs_little() -> None:
    signer = Signer(secrets.token_bytes(32))
    message = {"sub-unit": 1, "table": list(range(50))}

    def seconds(call: Any) -> float:
        started = time.perf_counter()
        for _ in range(1000):
            call()
        return (time.perf_counter() - started) / 1000

    signed = min(seconds(lambda: signer.loads(signer.dumps(message))) for _ in range(10))
    plain = min(seconds(lambda: pickle.loads(pickle.dumps(message))) for _ in range(10))
    assert signed - plain < 50e-6
