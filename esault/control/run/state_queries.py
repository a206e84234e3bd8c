"""Questions for the state of keys, from another terminal to the sub-units that have them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from esault.control.units.unit import Unit
from esault.errors import UsageError
from esault.messages.control import PeekedState, PeekState
from esault.routing.ring import position

__all__ = ["StateQueries", "keys_of"]

#: keys in an answer, at most
MOST = 1000


def keys_of(text: str) -> tuple[Any, ...]:
    """Return the keys that may be meant by what was typed: the text itself, and what it says as JSON."""
    found: list[Any] = [text]
    try:
        said = _frozen(json.loads(text))
    except ValueError:
        return (text,)
    if said is not None and not isinstance(said, (float, dict)) and said != text:
        found.append(said)
    return tuple(found)


def _frozen(said: Any) -> Any:
    return tuple(map(_frozen, said)) if isinstance(said, list) else said


class StateQueries:
    """Each is asked of the sub-units that may have the keys, and answered when all of them have said something, or one is gone.

    While keys move no sub-unit may have the state of a key, or two: what is asked then waits for the end of the change, or, of keys
    that are named, for that of their subscale.
    """

    def __init__(self, send: Callable[[tuple[int, Any]], None]) -> None:
        self._send = send
        self._number = 0
        #: number -> sub-units that have not answered
        self._waiting: dict[int, set[int]] = {}
        self._found: dict[int, list[PeekedState]] = {}

    def ask(
        self, find: Callable[[], Unit], keys: tuple[Any, ...], prefix: str, limit: int
    ) -> Callable[[], dict[str, Any] | None]:
        """Ask, and return what gives the answer once it is there. Raises UsageError.

        `find` gives the unit: it is another one where all have gone back meanwhile.
        """
        unit = find()
        if unit.plan.kind != "bolt" or unit.plan.objects == "sub-unit":
            raise UsageError(f"unit {unit.name!r} keeps no state by key: bolts by_key(), partial_key() and single() do")
        if not 1 <= limit <= MOST:
            raise UsageError(f"limit={limit}: an answer has 1 to {MOST} keys")
        self._number += 1
        question = PeekState(self._number, keys, prefix, limit)
        self._begin(unit, question)

        def answer() -> dict[str, Any] | None:
            number, now = question.number, find()
            if number not in self._waiting and not self._begin(now, question):
                return None
            waiting = self._waiting[number]
            if waiting and waiting <= set(now.subs):
                return None
            del self._waiting[number]
            told = self._found.pop(number)
            if waiting:
                return {"error": "a sub-unit that was asked has left or died meanwhile: ask again"}
            for each in told:
                if each.refused:
                    return {"error": f"unit {now.name!r}: {each.refused}"}
            found = [pair for each in told for pair in each.found][:limit]
            return {
                "done": True,
                "keys": sum(each.count for each in told),
                "found": [{"key": json.loads(key), "state": json.loads(state)} for key, state in found],
            }

        return answer

    def _begin(self, unit: Unit, question: PeekState) -> bool:
        """Send the question, and return True; False while keys move."""
        if unit.replication.busy or (unit.change is not None and not _stay(unit, question.keys)):
            return False
        asked = set(unit.subs)
        if question.keys and unit.plan.objects == "key" and unit.table is not None:
            asked = {unit.table.owner(position(key)) for key in question.keys} & asked
        self._waiting[question.number], self._found[question.number] = asked, []
        for incarnation in sorted(asked):
            self._send((incarnation, question))
        return True

    def answered(self, message: PeekedState) -> None:
        """Take an answer; one that is not waited for any more is left."""
        waiting = self._waiting.get(message.number)
        if waiting is not None and message.incarnation in waiting:
            waiting.discard(message.incarnation)
            self._found[message.number].append(message)


def _stay(unit: Unit, keys: tuple[Any, ...]) -> bool:
    """Return whether none of these keys is about to move, or on its way: who owns it by the table has it, and is asked before it can give it.

    Without keys all that there are are asked for.
    """
    if not keys or unit.plan.objects != "key" or unit.change is None:
        return False
    places = [position(key) for key in keys]
    return not any(move.low <= place <= move.high for move in unit.change.moves for place in places)
