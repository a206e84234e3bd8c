"""Dead letters for the page: the newest ones, as JSON, and sending them again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from esault.errors import UsageError
from esault.runtime.session.control_client import Running
from esault.runtime.session.dead_letters import dead_letters_of, send_again

__all__ = ["sent_again", "shown"]

#: dead letters that a page shows at most, and characters of a value and of a traceback
MOST, VALUE, TRACEBACK = 50, 2000, 8000
_TOLD = ("id", "time", "unit", "sub_unit", "hook", "key", "value", "event_time", "error", "traceback")


def _of(running: Running) -> list[Any]:
    return dead_letters_of(running.status.get("dead_letter_paths", ()))


def shown(paths: Iterable[str]) -> dict[str, Any]:
    """Return how many there are, how many of them were sent again, of which errors, and the newest that were not. Raises SourceError."""
    dead = dead_letters_of(paths)
    open_still = [each for each in dead if not each.sent]
    kinds = Counter((each.record["unit"], str(each.record["error"]).partition(":")[0]) for each in open_still)
    return {
        "count": len(dead),
        "sent": len(dead) - len(open_still),
        "kinds": [[unit, kind, count] for (unit, kind), count in kinds.most_common(10)],
        "newest": [
            {**_cut({name: each.record.get(name) for name in _TOLD}), "can_be_sent": each.can_be_sent}
            for each in open_still[: -MOST - 1 : -1]
        ],
    }


def _cut(record: dict[str, Any]) -> dict[str, Any]:
    """Keep one long value from making the page slow."""
    text = str(record["value"])
    if len(text) > VALUE:
        record["value"] = f"{text[:VALUE]} ..."
    record["traceback"] = str(record["traceback"])[-TRACEBACK:]
    return record


def sent_again(running: Running, request: Mapping[str, Any]) -> dict[str, Any]:
    """Send those of the request's `ids`, or without any all that were not sent yet. Raises UsageError, SourceError."""
    ids = request.get("ids", [])
    if not isinstance(ids, Iterable) or isinstance(ids, (str, Mapping)):
        raise UsageError("ids is a list of dead letters' ids")
    wanted = set(map(str, ids))
    chosen = [each for each in _of(running) if each.id in wanted or not (wanted or each.sent or not each.can_be_sent)]
    sent, refused = send_again(running.control_socket, chosen)
    return {"done": True, "sent": len(sent), "refused": dict(Counter(refused.values()))}
