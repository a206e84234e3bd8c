"""The place of a checkpoint, as a user says it: a folder, a topology's name, a savepoint of either."""

from __future__ import annotations

from pathlib import Path

from esault.errors import UsageError
from esault.object_store.object_path import ObjectPath
from esault.state.place import Place, place_of
from esault.state.savepoints import SAVEPOINTS, Savepoints, is_whole
from esault.state.state_path import default_dir

__all__ = ["checkpoint_place", "savepoint_place", "state_place"]


def state_place(text: str) -> Place:
    """Return the state directory that is meant: a folder, an address in an object store, or `.esault/NAME` of a topology's name.

    Raises UsageError.
    """
    path = place_of(text)
    if isinstance(path, ObjectPath):
        if not path.is_dir():
            raise UsageError(f"{text} is no state directory: nothing is there")
        return path
    if not _holds_state(path) and default_dir(text).is_dir():
        path = default_dir(text)
    if not path.is_dir():
        raise UsageError(f"{text} is no state directory, and there is no {default_dir(text)}")
    return path


def checkpoint_place(text: str) -> Place:
    """Return the folder that is meant: a state directory, a savepoint's folder, or `PLACE/SAVEPOINT`. Raises UsageError."""
    place, _, name = text.rstrip("/").rpartition("/")
    whole = place_of(text)
    if isinstance(whole, ObjectPath):
        named = whole.parent / SAVEPOINTS / whole.name
        return named if not is_whole(whole) and is_whole(named) else state_place(text)
    if place and not _holds_state(whole):
        states = [state for state in (Path(place), default_dir(place)) if state.is_dir()]
        for state in states:
            if (state / SAVEPOINTS / name).is_dir():
                return state / SAVEPOINTS / name
        if states and not whole.is_dir() and not default_dir(text).is_dir():
            state = next((each for each in states if _holds_state(each)), states[0])
            known = ", ".join(Savepoints(state).names()) or "none"
            raise UsageError(f"{text} is no state directory, and {state} has no savepoint {name!r}; there are: {known}")
    return state_place(text)


def _holds_state(folder: Place) -> bool:
    """Return whether it is more than a folder of that name, such as a package that is called as its topology is."""
    return folder.is_dir() and ((folder / SAVEPOINTS).is_dir() or any(True for _ in folder.glob("checkpoint-*.json")))


def savepoint_place(text: str, state_dir: Place) -> Place:
    """Return the folder of a savepoint to go on from: a path, a name in this state directory, or one beside it.

    Raises UsageError.
    """
    if not text.strip():
        known = ", ".join(Savepoints(state_dir).names()) or "none"
        raise UsageError(
            f"--from-savepoint is empty: say the name of a savepoint, or its folder; in {state_dir} there are: {known}"
        )
    if "/" in text or text in (".", ".."):
        return checkpoint_place(text)
    if is_whole(state_dir / SAVEPOINTS / text):
        return state_dir / SAVEPOINTS / text
    if _holds_state(Path(text)):
        return checkpoint_place(text)
    near = (state_dir.parent,) if isinstance(state_dir, Path) else ()
    found = [
        path
        for folder in dict.fromkeys((*near, default_dir(".")))
        for path in sorted(folder.glob(f"*/{SAVEPOINTS}/{text}"))
    ]
    beside: list[Place] = sorted({path.resolve(): path for path in reversed(found)}.values(), key=str)
    if len(beside) == 1:
        return beside[0]
    if beside:
        raise UsageError(
            f"--from-savepoint {text}: several have that name: {', '.join(map(str, beside))}; say which, by its path"
        )
    if Path(text).is_dir():
        return checkpoint_place(text)
    known = ", ".join(Savepoints(state_dir).names()) or "none"
    raise UsageError(
        f"--from-savepoint {text}: there is no savepoint of that name in {state_dir} (there are: {known}) or beside it"
    )
