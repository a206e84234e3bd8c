"""The run that began last in a state directory, and what a run that goes on there goes on with."""

from __future__ import annotations

import json
from dataclasses import dataclass

from esault.errors import CheckpointError
from esault.state.place import Place, put

__all__ = ["BEGUN", "LastRun", "continued", "forget_run", "last_run", "note_run"]

#: in the state directory: a run has begun here, and its sinks with it
BEGUN = "begun"


@dataclass(frozen=True)
class LastRun:
    """A run that began here, with what it goes on with itself."""

    run: str
    continues: tuple[str, int] | None = None


def continued(last: LastRun | None, kept: tuple[str, int] | None) -> tuple[str, int] | None:
    """Return the run that one which is resumed goes on with, and from which of its checkpoints, 0: from its beginning.

    `kept`: the run that wrote the newest checkpoint, and its number; None: there is none. A run without one of its own may not
    even have noted with what it goes on. So the next takes its place, and does not go on with it.
    """
    if kept is not None:
        run, number = kept
        if last is not None and last.continues is not None and last.continues[0] == run:
            number = min(number, last.continues[1])  # of a savepoint that has another number here
        return run, number
    if last is None:
        return None  # an older version did not say
    return last.continues or (last.run, 0)


def last_run(path: Place) -> LastRun | None:
    """Return the run that began here last; None where nothing says so, as an older version did not."""
    try:
        run, continues = json.loads((path / BEGUN).read_text())
        return LastRun(str(run), None if continues is None else (str(continues[0]), int(continues[1])))
    except (OSError, ValueError, TypeError, LookupError):
        return None


def note_run(path: Place, last: LastRun | None) -> None:
    """Note that this run has begun here; None: that one has, and the next does not go on with it. Raises CheckpointError."""
    text = "" if last is None else json.dumps([last.run, last.continues])
    try:
        put(path / BEGUN, text.encode())
    except OSError as error:
        raise CheckpointError(
            f"{path / BEGUN} cannot be written: {error.strerror or error}; free space or mend permissions"
        ) from error


def forget_run(path: Place) -> None:
    """Forget the last run: what comes next does not go on with it, also where a crash is between. Raises CheckpointError."""
    if last_run(path) is not None:
        note_run(path, None)
