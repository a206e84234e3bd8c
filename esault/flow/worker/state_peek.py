"""The answer of a bolt's sub-unit to a question for the state of its keys. Whatever goes wrong with it, the run goes on."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from esault.messages.control import PeekedState, PeekState
from esault.payload.json_text import json_text, key_text
from esault.payload.opened_state import opened
from esault.routing.ring import canonical, key_of
from esault.topology.shown_windows import shown_windows

if TYPE_CHECKING:
    from esault.flow.operators.operator import Operator

__all__ = ["peeked"]


def peeked(incarnation: int, operator: Operator, question: PeekState) -> PeekedState:
    """Answer a question. What stands under no key, such as a watermark, is told only where there is one object for all."""
    try:
        return _peeked(incarnation, operator, question)
    except Exception as error:  # such as of a class' own __getstate__
        why = f"the state cannot be shown: {type(error).__name__}: {error}"
        return PeekedState(incarnation, question.number, 0, (), why)


def _shown(operator: Operator, state: Any) -> Any:
    window = operator.plan.window
    return state if window is None else shown_windows(window.kind, state)


def _peeked(incarnation: int, operator: Operator, question: PeekState) -> PeekedState:
    by_key = operator.plan.objects.endswith("key")
    names = [name for name in operator.state.names() if name is not None or not by_key]
    count = len(names)
    keys = iter(question.keys)
    if not question.keys:
        if question.prefix:
            prefix = question.prefix
            names = [n for n in names if (n if type(n) is str else key_text(key_of(n))).startswith(prefix)]
            count = len(names)
        keys = map(key_of, names)
    found = []
    for key in islice(keys, question.limit):
        state = operator.state.peek(canonical(key))
        if state is not None:
            found.append((json_text(key), json_text(_shown(operator, opened(state, operator.codec)))))
    return PeekedState(incarnation, question.number, count, tuple(found))
