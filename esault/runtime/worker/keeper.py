"""The keeper: forks all sub-units and ack servers of the host, and ends what must not stay.

It has no thread and no socket of the data path, so that what it forks inherits neither. It hears at once of a child's death.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import time
from multiprocessing.process import BaseProcess
from typing import Any

import esault.runtime.worker.sub_unit_actor  # noqa: F401 - so that children find it imported
from esault.flow.operators.operator_parameters import OperatorParameters
from esault.flow.worker.environment import Environment
from esault.messages.change import EndRead, RangesHandedOver, RangesHeld, StateInstalled
from esault.messages.control import (
    AckRoutingSet,
    Added,
    Built,
    Ended,
    Exited,
    Finished,
    Fork,
    Kill,
    NotForked,
    Release,
    Stopped,
)
from esault.messages.probe import KeyLoad, Usage
from esault.messages.status import Status, SubUnitCounts
from esault.runtime.actors.parent import ParentActor
from esault.runtime.messages import (
    ChildSpec,
    ForkedChild,
    KeeperStarted,
    Leave,
    Messages,
    Pid,
    RunSpec,
    StartKeeper,
    Wake,
)
from esault.runtime.net.inlets import remove_files
from esault.runtime.process.exits import LAST_THREADS, exit_code, how_ended
from esault.runtime.process.owner import Owner
from esault.runtime.process.title import set_title
from esault.runtime.worker.fork_retries import ForkRetries, shortage
from esault.runtime.worker.sub_unit_actor import NOT_BEGUN, UNHEARD, SubUnitActor
from esault.state.place import load_client, place_of
from esault.topology.context import Context
from esault.value_class import prepare_now

__all__ = ["Keeper"]


#: seconds between two looks at who lives
LOOK_EVERY = 0.25
#: classes of which each sub-unit makes objects: looked through here once, they are so in every child
_OF_CHILDREN = (
    *(Context, OperatorParameters, Environment, Messages, Pid, Built, Added, AckRoutingSet),
    *(RangesHeld, StateInstalled, RangesHandedOver, Status, SubUnitCounts, Usage, KeyLoad, EndRead),
    *(Ended, Finished, Stopped),
)


class Keeper(ParentActor):
    """One per host."""

    def __init__(self) -> None:
        super().__init__()
        self._spec: RunSpec | None = None
        self._driver: Any = None
        self._driver_process: Owner | None = None
        self._addresses: dict[int, Any] = {}
        self._processes: dict[int, Owner] = {}
        #: what knows how they ended
        self._children: dict[int, BaseProcess] = {}
        #: sub-units that were ended here
        self._killed: set[int] = set()
        #: sub-units to be ended as soon as it is known which process they are
        self._condemned: set[int] = set()
        #: forks that failed, and those that did not, which may have to be done again
        self._retries = ForkRetries()
        self._forked: dict[int, Fork] = {}
        self._leaving = False

    def receiveMsg_StartKeeper(self, message: StartKeeper, sender: Any) -> None:
        """The first message."""
        self._spec = message.spec
        self._driver, self.reporter = sender, sender
        self._driver_process = message.driver
        set_title(f"esault {message.spec.name} keeper")
        if message.spec.state_dir is not None:
            load_client(place_of(message.spec.state_dir))
        self.send(sender, KeeperStarted(Owner.current()))
        prepare_now(*_OF_CHILDREN)
        # What is here now, all that was imported, is in every child as well and lives as long: no child's collector need look at
        # it. Each newcomer did so for itself once, for 30 ms of a processor while tuples flowed (the collector's share of a split).
        # It is not collected first: imports leave some hundred dead objects, and the run waits for its first sub-units.
        gc.freeze()
        self.tick_after(LOOK_EVERY)

    def receiveMsg_Fork(self, message: Fork, sender: Any) -> None:
        """A process for a sub-unit or an ack server."""
        assert self._spec is not None
        incarnation = message.build.incarnation
        if message.reused:
            self._rename(message.reused, incarnation)
            return
        try:
            address, child = self.fork(SubUnitActor, ChildSpec(self._spec, message.build, self._driver))
        except OSError as error:
            self._not_forked(message, shortage(error))
            return
        self._retries.forked(incarnation)
        self._forked[incarnation] = message
        self._addresses[incarnation] = address
        if child is not None:
            self._children[incarnation] = child
        self.send(address, Wake())
        self.send(self._driver, ForkedChild(incarnation, address))

    def _not_forked(self, message: Fork, why: str) -> None:
        """Try again later, and tell the driver."""
        tries, again = self._retries.failed(message, time.monotonic())
        self.send(self._driver, NotForked(message.build.incarnation, why, tries, again))

    def _rename(self, old: int, new: int) -> None:
        """A process goes on as another sub-unit."""
        address = self._addresses.pop(old, None)
        if address is None:  # it died meanwhile
            self.send(self._driver, Exited(new, "its process is gone"))
            return
        self._addresses[new] = address
        if old in self._processes:
            self._processes[new] = self._processes.pop(old)
        if old in self._children:
            self._children[new] = self._children.pop(old)
        self.send(self._driver, ForkedChild(new, address))

    def receiveMsg_Pid(self, message: Pid, sender: Any) -> None:
        """So that it can be ended by id; it runs."""
        self._retries.forget(message.incarnation)
        self._forked.pop(message.incarnation, None)
        with contextlib.suppress(ProcessLookupError):
            self._processes[message.incarnation] = Owner.of(message.pid)
        if message.incarnation in self._condemned:
            self.receiveMsg_Kill(Kill(message.incarnation), sender)

    def receiveMsg_Kill(self, message: Kill, sender: Any) -> None:
        """End one at once."""
        if message.incarnation not in self._addresses and self._retries.forget(message.incarnation):
            return
        process = self._processes.get(message.incarnation)
        if process is None:
            self._condemned.add(message.incarnation)  # who it is comes with its first word
        elif process.alive():
            self._killed.add(message.incarnation)
            os.kill(process.pid, signal.SIGKILL)

    def receiveMsg_Release(self, message: Release, sender: Any) -> None:
        """One has said its last word."""
        address = self._addresses.get(message.incarnation)
        if address is not None:
            self.ask_to_exit(address)

    def child_exited(self, address: Any) -> None:
        """Tell the driver."""
        for incarnation, known in list(self._addresses.items()):
            if known == address:
                self._gone(incarnation)

    def _gone(self, incarnation: int, patience: float = 0.0) -> None:
        del self._addresses[incarnation]
        process = self._processes.pop(incarnation, None)
        if self._spec is not None:
            remove_files(self._spec.run_dir, incarnation)
        condemned = incarnation in self._condemned
        self._condemned.discard(incarnation)
        fork = self._forked.pop(incarnation, None)
        child = self._children.pop(incarnation, None)
        code = exit_code(child, patience) if child is not None else None
        met = NOT_BEGUN.get(code) if code is not None else None
        if met is not None and fork is not None and not condemned and not self._leaving:
            self._not_forked(fork, shortage(OSError(met, os.strerror(met))))
            return
        self._retries.forget(incarnation)
        reason = "what it said did not reach the driver" if code == UNHEARD else how_ended(code)
        if incarnation in self._killed:
            self._killed.discard(incarnation)
            reason = "the run ended it"
        if not self._leaving:
            self.send(self._driver, Exited(incarnation, reason, 0 if process is None else process.pid))

    def receiveMsg_Leave(self, message: Leave, sender: Any) -> None:
        """All have said their last word: they may go."""
        self._leaving = True
        for address in self._addresses.values():
            self.ask_to_exit(address)

    def tick(self) -> None:
        """Look who lives: without a driver there is nothing to keep, and a signal of a child's death may be lost.

        The actor system hears of it by SIGCHLD, which is forgotten where it comes while another child is being made.
        """
        if self._driver_process is not None and not self._driver_process.alive():
            for process in self._processes.values():
                if process.alive():
                    os.kill(process.pid, signal.SIGKILL)
            return
        for fork in [] if self._leaving else self._retries.due(time.monotonic()):
            self.receiveMsg_Fork(fork, None)
        for incarnation, process in list(self._processes.items()):
            if incarnation in self._addresses and not process.alive():
                # A process that says itself that it goes may take its time, and is not waited for; it has at most threads that are on their way out.
                self._gone(incarnation, LAST_THREADS)
        self.tick_after(LOOK_EVERY)
