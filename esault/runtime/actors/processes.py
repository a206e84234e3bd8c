"""Set-up of the processes of an actor system from their fork on: the admin's, and each actor's.

Thespian's own way is replaced where it leaves something behind or takes something away. The admin is a child of the
command (not detached by a second fork), so its end can be waited for; there is no logger process, and `logging` in an
actor is what the command had configured; SIGTERM, SIGINT and SIGHUP, which a terminal and systemd send to all processes
at once, are the command's to deal with; all other signals are as Python has them; no process keeps the command's
listening socket.

No process outlives the run: on Linux the kernel ends each process with the one that forked it (`PR_SET_PDEATHSIG`), and on
every system each one asks once a second whether the run's owner, and the process that forked it, are still there.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import logging
import multiprocessing
import os
import shutil
import signal
import socket
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import Any

from thespian.actors import ChildActorExited, WakeupMessage
from thespian.system import multiprocCommon
from thespian.system.addressManager import ActorLocalAddress
from thespian.system.messages.admin import PendingActorResponse
from thespian.system.messages.multiproc import EndpointConnected, LoggerConnected
from thespian.system.multiprocCommon import MultiProcAdmin, MultiProcManager, closeFileNums
from thespian.system.timing import ExpirationTimer
from thespian.system.transport import Thespian__UpdateWork, TransmitIntent

from esault.runtime.actors import guard
from esault.runtime.process.descriptors import make_room
from esault.runtime.process.owner import Owner
from esault.runtime.process.title import set_title
from esault.value_class import value_class

__all__ = ["Run", "prepare", "start_admin"]

_CHECK_EVERY = timedelta(seconds=1)
_CHECK_OWNER = "esault: is the owner alive?"
_PR_SET_PDEATHSIG = 1
# loaded here, so that it is not in each child
_libc = ctypes.CDLL(None) if sys.platform.startswith("linux") else None

_START_CHILD = (
    "childClass globalName endpoint transportClass sourceHash sourceToLoad parentAddr adminAddr notifyAddr loggerAddr "
    "childRequirements currentSystemCapabilities fileNumsToClose concurrency_context logDefs"
)


@value_class(frozen=True)
class Run:
    """The facts that every process of a run inherits."""

    owner: Owner
    #: the start of each process's title
    title: str
    #: a folder that ends with the run; the admin removes it when the owner dies
    scratch: Path | None
    #: what only the command must hold: closed in the children
    sockets: tuple[socket.socket, ...]
    #: False when the command may outlive the thread that starts the system (PR_SET_PDEATHSIG watches a thread)
    bound_to_thread: bool


_run: Run | None = None


def prepare(run: Run) -> None:
    """In the command, before the admin is forked: all processes from now on belong to this run.

    Raises `RuntimeError` when Thespian starts its actors in another way than this module replaces.
    """
    global _run
    guard.require_parameters(_original_start_child, _START_CHILD)
    _run = run
    multiprocCommon.startChild = start_child


_original_start_child = multiprocCommon.startChild

#: tells the admin that the process that forked it has ended
_PARENT_IS_GONE = signal.SIGUSR1


def start_admin(
    starter: Any, endpoint: Any, transport_class: Any, address: Any, capabilities: Any, context: Any
) -> None:
    """The admin process, from fork to end: holds the system's port, forks what the command creates."""
    # What was imported lives as long as each process of the run: no collector of theirs need look at it, and so copy its pages.
    gc.freeze()
    run = _inherited()
    for each in run.sockets:
        each.close()
    os.setsid()  # Ctrl-C in the terminal is for the command alone
    reset_signals()
    set_title(f"{run.title} admin")
    logging.root.addFilter(_is_not_of_the_system)
    transport = transport_class(endpoint)
    admin = Admin(transport, address, capabilities, None, context)
    admin.addrOfStarter = starter
    admin.asLogger = admin.asLogProc = None
    signal.signal(signal.SIGCHLD, admin.signalChildDied)
    signal.signal(_PARENT_IS_GONE, admin.end_all)
    if run.bound_to_thread:
        _die_with_parent(_PARENT_IS_GONE)
    # an admin that holds back its receiving while it has much to send could wait for itself
    transport.enableRXPauseFlowControl(False)
    _check_owner_later(transport)
    # Thespian's admin is not complete before a logger answers: this one is its own, and logs nothing
    transport.scheduleTransmit(None, TransmitIntent(transport.myAddress, LoggerConnected()))
    admin.run()


def _is_not_of_the_system(record: logging.LogRecord) -> bool:
    """Return False for Thespian's own words at the root logger, which would stand among the user's."""
    return not str(record.msg).startswith(("++++ Actor System", "---- Actor System", "Thespian source"))


class Admin(MultiProcAdmin):  # type: ignore[misc]
    """Thespian's admin without a logger process, and with an eye on the run's owner."""

    def h_LoggerConnected(self, envelope: Any) -> bool:
        self.asLogger = envelope.sender
        self.transport.scheduleTransmit(None, TransmitIntent(self.addrOfStarter, EndpointConnected(0)))
        self._activate()
        return True

    def h_LogRecord(self, envelope: Any) -> bool:
        return True

    def h_WakeupMessage(self, envelope: Any) -> bool:
        if envelope.message.payload == _CHECK_OWNER:
            if not _inherited().owner.alive():
                self.end_all()
            _check_owner_later(self.transport)
        return True

    def childDied(self) -> Any:
        for child in _take_stillborn(self):
            for request in self._pendingChildren.pop(child.childNum, []):
                self._sendPendingActorResponse(
                    request, None, PendingActorResponse.ERROR_Invalid_ActorClass, "its process died at once"
                )
        return super().childDied()

    def end_all(self, signum: int = 0, frame: FrameType | None = None) -> None:
        """At once: kill the children (and so theirs), remove the scratch folder, end."""
        for child in getattr(self, "_child_procs", []):
            with contextlib.suppress(OSError):
                child.childProc.kill()
        scratch = _inherited().scratch
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)
        os._exit(1)

    def _cleanupAdmin(self, finish_cleanup: Callable[[], None]) -> None:
        finish_cleanup()


def start_child(
    actor_class: Any,
    global_name: Any,
    endpoint: Any,
    transport_class: Any,
    source_hash: Any,
    source: Any,
    parent: Any,
    admin: Any,
    notify: Any,
    logger: Any,
    requirements: Any,
    capabilities: Any,
    fds_to_close: Any,
    context: Any,
    log_defs: Any,
) -> None:
    """An actor's process, from fork to end. Called in place of Thespian's `startChild`, with its arguments."""
    run = _inherited()
    _die_with_parent(signal.SIGKILL)
    closeFileNums(fds_to_close)
    make_room()
    reset_signals()
    set_title(f"{run.title} {str(getattr(actor_class, '__name__', actor_class)).rpartition('.')[2]}")
    transport = transport_class(endpoint)
    manager = Manager(
        actor_class,
        global_name,
        transport,
        source_hash,
        source,
        parent,
        admin,
        requirements,
        capabilities,
        context,
        log_defs,
    )
    manager.asLogger = logger
    signal.signal(signal.SIGCHLD, manager.signalChildDied)
    transport.scheduleTransmit(None, TransmitIntent(notify, EndpointConnected(endpoint.addrInst)))
    _check_owner_later(transport)
    manager.run()


class Manager(MultiProcManager):  # type: ignore[misc]
    """Thespian's shell around one actor, with an eye on the run's owner. A child's death is told exactly once."""

    def handleMessages(self, envelope: Any) -> Any:
        if isinstance(envelope, Thespian__UpdateWork):
            return True  # of a connection that could not be taken: it is no message, and Thespian's own shell ends here
        message = envelope.message
        if isinstance(message, WakeupMessage) and message.payload == _CHECK_OWNER:
            if not _inherited().owner.alive() or os.getppid() != _parent_pid():
                os._exit(1)
            _check_owner_later(self.transport)
            return True
        return super().handleMessages(envelope)

    #: why the last child could not be forked; Thespian tells of it in its own log alone
    fork_error: OSError | None = None

    def _startChildActor(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super()._startChildActor(*args, **kwargs)
        except OSError as error:
            self.fork_error = error
            raise

    def _handleOneMessage(self, envelope: Any) -> Any:
        message = envelope.message
        if isinstance(message, ChildActorExited):
            # a child that ends in good order is told of twice: by itself, and by SIGCHLD
            gone = message.childAddress
            if not isinstance(gone.addressDetails, ActorLocalAddress) and gone not in self.childAddresses:
                return True
        return super()._handleOneMessage(envelope)

    def childDied(self) -> Any:
        for child in _take_stillborn(self):
            self._retryPendingChildOperations(child.childNum, None)
        return super().childDied()


def _take_stillborn(parent: Any) -> list[Any]:
    """The children that died before they had an address: Thespian does not tell of those, and would wait for ever."""
    children: list[Any] = getattr(parent, "_child_procs", [])
    dead = [each for each in children if not hasattr(each, "childRealAddr") and not parent._checkChildLiveness(each)]
    parent._child_procs = [each for each in children if each not in dead]
    return dead


def reset_signals() -> None:
    """Forget the handlers that were inherited; what a terminal or systemd sends to all is swallowed, since the command deals with
    it (not ignored: a subprocess would inherit that)."""
    signal.set_wakeup_fd(-1)
    for each in signal.valid_signals():
        if callable(signal.getsignal(each)):
            signal.signal(each, signal.SIG_DFL)
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, lambda signum, frame: None)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda signum, frame: None)


def _check_owner_later(transport: Any) -> None:
    if not hasattr(transport, "run_time"):
        transport.run_time = ExpirationTimer(None)  # else only set by run(), and needed by addWakeup
    transport.addWakeup(_CHECK_EVERY, _CHECK_OWNER)


def _die_with_parent(signum: int) -> None:
    """Have the kernel send this signal when the process that forked this one ends, however it ends."""
    if _libc is None:
        return
    if _libc.prctl(_PR_SET_PDEATHSIG, signum, 0, 0, 0) != 0:
        logging.getLogger(__name__).debug("no PR_SET_PDEATHSIG here: the owner is watched, nothing else")
    if os.getppid() != _parent_pid():  # it ended before the kernel knew
        os._exit(1)


def _parent_pid() -> int | None:
    """The process that forked this one, which need not be its parent any more."""
    parent = multiprocessing.parent_process()
    return None if parent is None else parent.pid


def _inherited() -> Run:
    if _run is None:
        raise RuntimeError("processes.prepare(run) must come before the actor system starts")
    return _run
