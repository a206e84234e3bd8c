"""The actor system of one run, from the command's side: start it, talk to it, end it for certain.

`start` forks the admin (one process, 127.0.0.1 only, signed messages: see `guard` and `processes`), `create` has it
fork an actor, `shutdown` leaves nothing: what does not end by itself is killed, by process id and start time. `start`
forks, so other threads of the command should hold no lock then that a process of the run needs. Systems that a process
has at a time share a secret, since Thespian has one serializer for all of a process.

It is one module of over 300 lines: starting, talking and ending share the handles of the processes, of which none may
be forgotten.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import inspect
import logging
import multiprocessing
import os
import shutil
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil

from esault.errors import EsaultError, UsageError
from esault.runtime.actors import descriptors, guard
from esault.runtime.process.owner import Owner

__all__ = ["ActorSystemHandle", "SystemDied", "start"]

_START_WITHIN = 10.0
_LOOK_EVERY = 0.25
#: un-acknowledged transmissions of one process, one per address: more than there are processes in a run
_MAX_UNDER_WAY = 1024
#: a transmission that is not taken is given up after this time
_GIVE_UP_AFTER = timedelta(seconds=60)
#: ... and tried again, where the connection broke, after this time (times the number of tries)
_RETRY_AFTER = timedelta(seconds=1)

_running: list[ActorSystemHandle] = []
#: one system starts at a time: what its processes inherit stands in globals until the fork
_starting = threading.Lock()


def _renew_lock() -> None:
    global _starting
    _starting = threading.Lock()


# A thread that held it is not in a forked process, and would never give it back.
os.register_at_fork(after_in_child=_renew_lock)


def start(
    secret: bytes,
    log_file: Path | None = None,
    *,
    title: str = "esault",
    scratch: Path | None = None,
    modules: Sequence[str] = (),
) -> ActorSystemHandle:
    """Start the actor system of a run; about 0.05 s once Thespian is imported (0.15 s).

    secret    signs every message (16 bytes at least); processes inherit it by fork and it is never written anywhere.
              Where this process has a running system already, that one's is used
    log_file  where Thespian writes what troubles it; None: nowhere
    title     the start of every process's title
    scratch   a folder that ends with the run: removed by `shutdown`, and by the admin if the command is killed
    modules   what actors need: imported before the first fork, or each process that forks actors would import it again

    Raises `EsaultError` when it does not start within 10 s, `RuntimeError` when the Thespian at hand is not as expected.
    """
    with _starting:
        others = [each for each in _running if each.owner == Owner.current()]
        if not others:
            guard.install(secret)
            _tune(log_file)
        for module in modules:  # only now: `guard` sees to it that the import of Thespian asks no resolver
            importlib.import_module(module)
        made = ActorSystemHandle(title, scratch, [each._transport.socket for each in others])
        _running[:] = [*others, made]
        return made


class SystemDied(EsaultError):
    """The first process of the actor system is gone."""


class ActorSystemHandle:
    """A running actor system. A context manager: it is shut down at the end of the block, and at exit at the latest."""

    def __init__(self, title: str, scratch: Path | None, sockets: Sequence[socket.socket] = ()) -> None:
        """`sockets`: of the other systems of this process, which those of this one must not hold."""
        # imported here: only after `guard` has seen to it that the import asks no resolver
        from thespian.system.systemBase import ExternalOpsToActors
        from thespian.system.transport import ExternalInterfaceTransportInit
        from thespian.system.transport.TCPTransport import TCPTransport

        from esault.runtime.actors import processes

        self.owner = Owner.current()
        self._scratch = scratch
        self._inbox: deque[object] = deque()
        with _reserved_port() as reserved:
            capabilities = {"Admin Port": reserved.getsockname()[1], "Process Startup Method": "fork"}
            context: Any = multiprocessing.get_context("fork")
            self._transport = TCPTransport(ExternalInterfaceTransportInit(), capabilities, None, context)
            self._port = ExternalOpsToActors(TCPTransport.getAdminAddr(capabilities), self._transport)
            processes.prepare(
                processes.Run(
                    self.owner,
                    title,
                    scratch,
                    (self._transport.socket, reserved, *sockets),
                    threading.current_thread() is threading.main_thread(),
                )
            )
            endpoint = self._transport.prepEndpoint(self._port.adminAddr, capabilities)
            admin = context.Process(
                target=processes.start_admin,
                args=(
                    self._transport.myAddress,
                    endpoint,
                    TCPTransport,
                    self._port.adminAddr,
                    capabilities,
                    context,
                ),
                name="esault-admin",
            )
            admin.start()
            # else multiprocessing would wait for it at exit, before this module's own exit handler
            multiprocessing.process._children.discard(admin)  # type: ignore[attr-defined]
            self._admin = admin
            self._processes: set[psutil.Process] = {psutil.Process(admin.pid)}
            self._closed = False
            atexit.register(self._at_exit)
            self._wait_for_admin()

    def _wait_for_admin(self) -> None:
        from thespian.system.messages.multiproc import EndpointConnected

        until = time.monotonic() + _START_WITHIN
        while self._admin.is_alive() and time.monotonic() < until:
            received = self._transport.run(None, timedelta(seconds=0.1))
            if isinstance(getattr(received, "message", None), EndpointConnected):
                return
        code = self._admin.exitcode
        self.shutdown(0.0)
        raise EsaultError(
            f"the actor system did not start within {_START_WITHIN:g} s"
            if code is None
            else f"the actor system's first process ended at once (exit code {code}): see above for its error"
        )

    @property
    def pid(self) -> int:
        """The admin's process id; all processes of the system descend from it."""
        return int(self._admin.pid)

    def alive(self) -> bool:
        """Return whether the admin still runs; without it no actor does."""
        return not self._closed and bool(self._admin.is_alive())

    def create(self, actor_class: type, requirements: object = None) -> Any:
        """The address of a new actor, a child of the admin (10-20 ms). The class must be importable by module and name.

        `requirements` (picklable) reach an `__init__(self, requirements)`. Raises `EsaultError` when it cannot be made.
        """
        from thespian.actors import ActorSystemException

        self._require_running()
        try:
            return self._port.newPrimaryActor(actor_class, requirements, None)
        except (ActorSystemException, ImportError) as error:
            raise EsaultError(f"no actor {actor_class.__qualname__} could be created: {error}") from error

    def tell(self, address: Any, message: object, within: float = 5.0) -> bool:
        """Send a message; whether it was taken by the actor's process within that many seconds."""
        from thespian.system.transport import TransmitIntent

        self._require_running()
        outcome: list[bool] = []

        def end(result: Any, intent: Any) -> None:
            outcome.append(bool(result))
            self._transport.abort_run()  # ends the turn below

        self._transport.scheduleTransmit(None, TransmitIntent(address, message, onSuccess=end, onError=end))
        until = time.monotonic() + within
        while not outcome and (left := until - time.monotonic()) > 0:
            # receiving goes on: the actor may only take it once it has got rid of what it sends
            self._take(self._port._run_transport(timedelta(seconds=left)))
        return outcome == [True]

    def listen(self, timeout: float | None) -> Any:
        """The next message that an actor sent to the command; None when none came within `timeout` seconds.

        Raises `SystemDied` when it has.
        """
        self._require_running()
        until = None if timeout is None else time.monotonic() + timeout
        while not self._inbox:
            # in turns, to see it when the admin has died
            wait = _LOOK_EVERY if until is None else min(_LOOK_EVERY, max(0.0, until - time.monotonic()))
            if self._take(self._port._run_transport(timedelta(seconds=wait))):
                continue
            if not self.alive():
                raise SystemDied("the actor system has died: its first process is gone")
            if until is not None and time.monotonic() >= until:
                return None
        return self._inbox.popleft()

    def _take(self, received: Any) -> bool:
        """Put what came into the inbox; False when it was nothing, or Thespian's own."""
        from thespian.actors import ActorSystemMessage

        from esault.runtime.actors.actor import unpack

        message = getattr(received, "message", None)
        if message is None or isinstance(message, ActorSystemMessage):
            return False
        self._inbox.extend(unpack(message))
        return True

    def shutdown(self, deadline: float = 5.0) -> None:
        """End the system: in good order until the deadline (seconds), then by force.

        Afterwards no process of it runs, no port is bound, the scratch folder is gone. May be called again.
        """
        if self._closed or self.owner != Owner.current():
            return
        self._closed = True
        until = time.monotonic() + deadline
        try:
            self._remember_processes()
            with contextlib.suppress(Exception):  # whatever is wrong with it, it is killed below
                self._ask_to_end(until)
            while self._survivors() and time.monotonic() < until:
                time.sleep(0.002)
            self._kill()
        finally:
            self._transport.close()
            if self._scratch is not None:
                shutil.rmtree(self._scratch, ignore_errors=True)
            atexit.unregister(self._at_exit)
            with contextlib.suppress(ValueError):  # one that did not start
                _running.remove(self)

    def __enter__(self) -> ActorSystemHandle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()

    def _require_running(self) -> None:
        if self._closed:
            raise UsageError("the actor system has been shut down")

    def _ask_to_end(self, until: float) -> None:
        from thespian.system.messages.admin import SystemShutdown, SystemShutdownCompleted

        if not self._admin.is_alive():
            return
        sent = self._port._tx_to_admin(SystemShutdown())
        while not sent.failed and time.monotonic() < until and self._admin.is_alive():
            wait = min(0.1, max(0.0, until - time.monotonic()))
            received = self._port._run_transport(timedelta(seconds=wait))
            if isinstance(getattr(received, "message", None), SystemShutdownCompleted):
                return

    def _remember_processes(self) -> None:
        """Note every process below those that are known: once a parent is gone its children are not found any more."""
        for process in list(self._processes):
            with contextlib.suppress(psutil.Error):
                self._processes.update(process.children(recursive=True))

    def _survivors(self) -> list[psutil.Process]:
        self._admin.is_alive()  # reaps it
        return [process for process in self._processes if _runs(process)]

    def _kill(self) -> None:
        until = time.monotonic() + 5.0
        while (survivors := self._survivors()) and time.monotonic() < until:
            self._remember_processes()  # those born since
            for process in survivors:
                with contextlib.suppress(psutil.Error):
                    process.kill()  # psutil compares the start time: never one that got the id later
            time.sleep(0.002)
        if survivors:
            pids = ", ".join(str(process.pid) for process in survivors)
            logging.getLogger(__name__).error("these processes of the run could not be killed: %s", pids)

    def _at_exit(self) -> None:
        self.shutdown(1.0)


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _reserved_port() -> socket.socket:
    """A free port, kept from other systems that are just starting until our admin listens on it.

    Bound, but not listening, with SO_REUSEADDR on both sides: the admin can bind it, a search for a free one skips it.
    """
    reserved = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind((guard.LOOPBACK, 0))
    return reserved


def _tune(log_file: Path | None) -> None:
    """Set what Thespian keeps in module variables, before the processes inherit it."""
    from thespian.system import transport, utilis
    from thespian.system.transport import asyncTransportBase
    from thespian.system.transport.TCPTransport import TCPTransport

    descriptors.install(sys.modules[TCPTransport.__module__])
    descriptors.look_again(transport.TransmitIntent)
    if not getattr(TCPTransport.close, "closes_sockets", False):
        TCPTransport.close = _closing_sockets(TCPTransport.close)
    _set(asyncTransportBase, "MAX_PENDING_TRANSMITS", _MAX_UNDER_WAY)
    _set(transport, "DEFAULT_MAX_TRANSMIT_PERIOD", _GIVE_UP_AFTER)
    make_intent: Callable[..., None] = transport.TransmitIntent.__init__
    parameters = inspect.signature(make_intent).parameters
    if list(parameters)[-1] != "retryPeriod":
        raise guard.moved("TransmitIntent.__init__ does not end with retryPeriod")
    make_intent.__defaults__ = (*(make_intent.__defaults__ or ())[:-1], _RETRY_AFTER)
    _set(utilis, "_thesplog_file", None if log_file is None else os.fspath(log_file))
    _set(utilis, "_thesplog_old_file", None if log_file is None else f"{os.fspath(log_file)}.old")
    if log_file is None:
        utilis.thesplog_control(logging.CRITICAL + 1, False, 0)
    else:
        utilis.thesplog_control(logging.WARNING, False, 1024 * 1024)


def _closing_sockets(close: Callable[[Any], None]) -> Callable[[Any], None]:
    """Thespian's own leaves the sockets of a transport to the garbage collector."""

    def close_all(self: Any) -> None:
        holders = [self]
        for name in ("_openSockets", "_incomingSockets", "_transmitIntents"):
            holders += getattr(self, name, {}).values()
        sockets = [each.socket for each in holders if getattr(each, "socket", None) is not None]
        close(self)
        for each in sockets:
            each.close()

    close_all.closes_sockets = True  # type: ignore[attr-defined]
    return close_all


def _set(module: Any, name: str, value: object) -> None:
    if not hasattr(module, name):
        raise guard.moved(f"{module.__name__} has no {name}")
    setattr(module, name, value)
