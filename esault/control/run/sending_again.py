"""Dead letters that are sent into the running topology again, until what came of them is durable."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from esault.errors import UsageError
from esault.messages.control import SendAgain, SendingBegan, SentAgain
from esault.messages.delivery import Delivery
from esault.payload.undone import Undone, restore_note
from esault.value_class import value_class

if TYPE_CHECKING:
    from esault.control.run.driver import Driver

__all__ = ["Resend", "SendingAgain"]


@value_class(frozen=True)
class Resend:
    """One of them: where it failed, and its tuples as the codec packs them."""

    id: str
    unit: str
    #: "input:N" of the unit, or "step:NAME"
    at: str
    packed: bytes
    #: of its record: `run`, `epoch`, `checkpoint` and `time`, from which it follows whether a restore has undone it; empty: unknown
    made: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class _Request:
    #: incarnation -> ids
    waiting: dict[int, list[str]]
    #: incarnation -> the newest checkpoint without them, once they have gone out
    without: dict[int, int] = field(default_factory=dict)
    #: those that are processed: with checkpoints durable when one is complete behind this number
    done: list[tuple[int, list[str]]] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


class SendingAgain:
    """Each goes to a sub-unit that sends to where it failed. With checkpoints it counts as sent with the first complete one behind it."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._number = 0
        self._requests: dict[int, _Request] = {}
        #: by the restores of this run
        self._undone = Undone()

    def ask(self, resends: Sequence[Resend]) -> Callable[[], dict[str, Any] | None]:
        """Send them, and return what gives the answer once it is there: ids that were sent, and why others were not. Raises UsageError."""
        driver = self._driver
        if driver.phase != "running":
            raise UsageError(f"{driver.plan.name} is not running (any more, or yet): it takes no dead letters")
        if any(unit.replicas > 1 for unit in driver.plan.units.values()):
            raise UsageError(
                "units with replicas take no dead letters while they run: give them to a later run by DeadLetters(path)"
            )
        self._number += 1
        number = self._number
        made = self._requests[number] = _Request(defaultdict(list))
        by_owner: dict[int, list[tuple[str, str, bytes]]] = defaultdict(list)
        for i, each in enumerate(resends):
            if {**each.made, "lineage": ""} in self._undone:
                # Who asks has read its file before it was noted there.
                made.refused[each.id] = "all went back to a checkpoint before it: its tuple comes again by itself"
                continue
            try:
                sender, place = self._place(each)
            except UsageError as error:
                made.refused[each.id] = str(error)
                continue
            owners = [r.incarnation for r in driver.units[sender].subs.values() if r.started_at and not r.leaving]
            if not owners:
                made.refused[each.id] = f"unit {sender!r} has no sub-unit now: try again in a moment"
                continue
            owner = owners[i % len(owners)]
            by_owner[owner].append((each.id, place, each.packed))
            made.waiting[owner].append(each.id)
        for owner, those in by_owner.items():
            driver.outbox.append((owner, SendAgain(number, tuple(those))))
        return lambda: self._answer(number)

    def _place(self, resend: Resend) -> tuple[str, str]:
        """Return the unit in whose processes it goes on, and where. Raises UsageError."""
        plan = self._driver.plan
        kind, _, what = resend.at.partition(":")
        if resend.unit in plan.chained:
            inside = plan.chained[resend.unit]
            return inside, resend.at if kind == "step" else f"input:{resend.unit}:{what}"
        unit = plan.units.get(plan.now(resend.unit))
        if unit is None:
            raise UsageError(plan.unknown(resend.unit))
        if kind == "step":
            return unit.name, resend.at
        if not what.isdecimal() or int(what) >= len(unit.inputs):
            raise UsageError(f"unit {unit.name!r} has no input {what} any more")
        source = unit.inputs[int(what)].source
        return plan.chained.get(source, source), f"input:{unit.name}:{what}"

    def began(self, message: SendingBegan) -> None:
        """Take note of the checkpoints that hold what has gone out."""
        request = self._requests.get(message.number)
        if request is not None and message.incarnation in request.waiting:
            request.without[message.incarnation] = message.checkpoint

    def go_back(self, to: int, now: float) -> None:
        """All goes back to this checkpoint: what it holds has been sent, also where its sender has not said so, and would count twice."""
        driver = self._driver
        self._undone.note(restore_note(driver.run, "", driver.epoch, to, now, driver.continues))
        for request in self._requests.values():
            asked = [(request.without.get(i), ids) for i, ids in request.waiting.items()]
            for without, ids in [*request.done, *asked]:
                if without is not None and to > without:
                    request.sent += ids
                else:
                    why = "all went back to a checkpoint meanwhile: send it again"
                    request.refused.update(dict.fromkeys(ids, why))
            request.done, request.waiting = [], {}

    def answered(self, message: SentAgain) -> None:
        """Take an answer; one that is not waited for any more is left."""
        request = self._requests.get(message.number)
        ids = None if request is None else request.waiting.pop(message.incarnation, None)
        if request is None or ids is None:
            return
        refused = dict(message.refused)
        request.refused.update(refused)
        done = [id for id in ids if id not in refused]
        if self._driver.settings.delivery is Delivery.EXACTLY_ONCE:
            without = request.without.get(message.incarnation, self._driver.checkpoints.last_begun)
            request.done.append((without, done))
        else:
            request.sent += done

    def _answer(self, number: int) -> dict[str, Any] | None:
        request, driver = self._requests[number], self._driver
        newest = driver.completed.number if driver.completed is not None else 0
        open_still = []
        for begun, ids in request.done:
            if newest > begun:
                request.sent += ids
            else:
                open_still.append((begun, ids))
        request.done = open_still
        living = {i for unit in driver.units.values() for i in unit.subs}
        for gone in [i for i in request.waiting if i not in living]:
            for id in request.waiting.pop(gone):
                request.refused[id] = "the process that sent it has died or left meanwhile: send it again"
        if request.waiting or request.done:
            return None
        del self._requests[number]
        return {"done": True, "sent": request.sent, "refused": request.refused}
