"""A dead letter: a tuple that failed, with all that is needed to look at it, and to send it again."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from esault.errors import PayloadError
from esault.flow.operators.user_error import hook_of, in_words, traceback_of
from esault.payload.codec import Codec
from esault.topology.context import Context

__all__ = ["dead_letter", "rows_of"]

#: hooks that get one tuple, and those that get a batch; others get none, and what failed in them cannot come again
_OF_A_TUPLE = frozenset(("process", "process_broadcast"))
_OF_A_BATCH = frozenset(("process_batch", "process_columns"))


def rows_of(hook: str, key: Any, value: Any) -> Sequence[tuple[Any, Any]] | None:
    """Return the tuples that a hook of a bolt was called with; None where it was called with none."""
    if hook in _OF_A_TUPLE:
        return [(key, value)]
    return list(value) if hook in _OF_A_BATCH else None


def dead_letter(
    context: Context,
    codec: Codec,
    error: BaseException,
    hook: str,
    key: Any,
    *,
    value: Any,
    number: int,
    at: str | None,
    rows: Sequence[tuple[Any, Any]] | None,
    event_time: float | None = None,
    combined: bool = False,
) -> dict[str, Any]:
    """Return the record of a dead letter, of plain values but for key and value.

    `hook`: what raised, or the name of a function step; `number`: of the dead letter among those of this hook and sub-unit; `at`: where it
    goes when it is sent again, "input:0" of its unit or "step:NAME"; `rows`: what goes there. Without one of both it cannot be sent.
    `packed` has the rows exactly, as the codec packs them; `key` and `value` are for people. `checkpoint` says behind which it was written.
    `combined`: each value in `rows` is a `Partial` that holds one of the user's.
    """
    packed = None
    if at is not None and rows is not None:
        try:
            packed = base64.b64encode(codec.pack_value(rows)).decode("ascii")
        except PayloadError:
            at = None  # it did not come over a wire, and cannot go over one
    now = context.now()
    named = f"{context.run}/{context.unit}/{hook}/{context.sub_unit}/{number}/{now!r}/{packed}"
    return {
        "id": blake2b(named.encode(errors="replace"), digest_size=6).hexdigest(),
        "run": context.run,
        "lineage": context.lineage,
        "epoch": context.epoch,
        "checkpoint": context.checkpoint,
        "time": now,
        "unit": context.unit,
        "sub_unit": context.sub_unit,
        "hook": hook_of(error, hook),
        "at": at if packed is not None else None,
        "key": key,
        "value": value,
        "event_time": event_time,
        "error": in_words(error),
        "traceback": traceback_of(error),
        "packed": packed,
        **({"combined": True} if combined else {}),
    }
