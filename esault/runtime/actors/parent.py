"""An actor that forks others, and hears of their ends."""

from __future__ import annotations

from multiprocessing.process import BaseProcess
from typing import Any

from thespian.actors import ActorExitRequest, ChildActorExited

from esault.runtime.actors.actor import ReportingActor

__all__ = ["ParentActor", "newest_child"]


class ParentActor(ReportingActor):
    """A subclass says in `child_exited` what the end of a child means."""

    def fork(self, actor: type[ReportingActor], requirements: object) -> tuple[Any, BaseProcess | None]:
        """Fork a process for an actor, and return its address and its process; None where Thespian does not tell it.

        Raises OSError where the system allows no further process.
        """
        manager: Any = self._myRef
        manager.fork_error = None
        address = self.createActor(actor, requirements)
        if manager.fork_error is not None:
            raise manager.fork_error
        return address, newest_child(self)

    def ask_to_exit(self, address: Any) -> None:
        """End a child after the messages that it has been sent."""
        self.send(address, ActorExitRequest())

    def child_exited(self, address: Any) -> None:
        """Take note that the process of a child is gone."""
        raise NotImplementedError

    def receiveMsg_ChildActorExited(self, message: ChildActorExited, sender: Any) -> None:
        """Thespian tells that a child is gone."""
        self.child_exited(message.childAddress)


def newest_child(actor: Any) -> BaseProcess | None:
    """The process of the actor that this one made last; None where this Thespian does not tell.

    Thespian reaps its children; what they ended with is kept in these objects alone (`MultiProcReplicator._child_procs`, 4.0.1).
    """
    children = getattr(getattr(actor, "_myRef", None), "_child_procs", None)
    process = getattr(children[-1], "childProc", None) if children else None
    return process if isinstance(process, BaseProcess) else None
