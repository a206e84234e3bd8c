"""The dead letters of a path or of a running topology."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from esault.errors import UsageError
from esault.runtime.session.control_client import RemoteRun, ask, running
from esault.topology.plan import Plan

if TYPE_CHECKING:  # all sources come with it, and few runs ask for dead letters
    from esault.sources.dead_letter_files import DeadLetter

__all__ = ["dead_letter_paths", "dead_letters_at", "dead_letters_of", "send_again"]

#: bytes of dead letters in one request
PORTION = 2**20


def dead_letter_paths(plan: Plan) -> list[str]:
    """Return where a topology's units and function steps keep dead letters, as absolute paths, each once."""
    return list(dict.fromkeys(os.path.abspath(path) for unit in plan.units.values() for path in unit.dead_letter_paths))


def dead_letters_of(paths: Iterable[str]) -> list[DeadLetter]:
    """Return the dead letters of these paths in the order of their times. Raises SourceError."""
    from esault.sources.dead_letter_files import DeadLetterFiles

    found = {dead.id: dead for path in paths for dead in DeadLetterFiles(path).read()}
    return sorted(found.values(), key=lambda dead: float(dead.record["time"]))


def dead_letters_at(where: str) -> list[DeadLetter]:
    """Return the dead letters of a path, or of the running topology of this name. Raises UsageError where it is neither."""
    from esault.sources.dead_letter_files import DeadLetterFiles

    if DeadLetterFiles(where).find() or os.path.isdir(where):
        return dead_letters_of([where])
    found = [each for each in running() if each.name == where or each.run.startswith(where)]
    if not found:
        raise UsageError(
            f"{where}: there are no dead letters, and no topology of this name is running; name what dead_letter(path) was given"
        )
    return dead_letters_of(path for each in found for path in each.status.get("dead_letter_paths", ()))


def send_again(control_socket: Path | RemoteRun, dead: Iterable[DeadLetter]) -> tuple[list[str], dict[str, str]]:
    """Send dead letters into a running topology, and mark as sent those whose results are durable.

    Returns the ids that were sent, and by id why others were not. A crash before the mark repeats one, and loses none. Raises UsageError,
    SourceError; what was sent before is marked.
    """
    from esault.sources.dead_letter_files import DeadLetterFiles

    sent: list[str] = []
    refused: dict[str, str] = {}
    for portion in _portions(dead, refused):
        text = json.dumps([[d.id, d.record["unit"], d.record["at"], d.record["packed"], _made(d)] for d in portion])
        answer = list(ask(control_socket, {"do": "send_again", "dead_letters": text}, patience=None))[-1]
        done = set(answer["sent"])
        DeadLetterFiles.mark(each for each in portion if each.id in done)
        sent += answer["sent"]
        refused.update(answer["refused"])
    return sent, refused


def _made(dead: DeadLetter) -> dict[str, Any]:
    return {name: dead.record[name] for name in ("run", "epoch", "checkpoint", "time") if name in dead.record}


def _portions(dead: Iterable[DeadLetter], refused: dict[str, str]) -> Iterator[list[DeadLetter]]:
    portion: list[DeadLetter] = []
    size = 0
    for each in dead:
        length = len(each.record.get("packed") or "")
        if each.sent:
            refused[each.id] = "it was sent again before"
        elif not each.can_be_sent:
            refused[each.id] = "it has no tuple"
        elif length > PORTION:
            refused[each.id] = "it is too large: give it to a later run by DeadLetters(path)"
        else:
            if portion and size + length > PORTION:
                yield portion
                portion, size = [], 0
            portion.append(each)
            size += length + 200
    if portion:
        yield portion
