"""The outputs of runs that may go on: what their sinks write is noted in the state directory, so that no other run empties it unseen."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from esault.errors import CheckpointError, UsageError
from esault.messages.checkpoint import CompletedCheckpoint
from esault.state import manifest
from esault.state.place import Place, put
from esault.state.state_dir import StateDir
from esault.topology.chaining import chainable
from esault.topology.plan import Plan
from esault.topology.sink import Sink

__all__ = ["check_outputs", "check_same_units", "note_outputs"]

#: in a state directory: the files and folders that the sinks of its run write
OUTPUTS = "outputs.json"
#: where state directories are by default
DEFAULT = Path(".esault")


def _paths(plan: Plan, replaced: bool = False) -> dict[str, str]:
    """Return what sinks write -> the name of the sink; `replaced`: only what a run that begins anew empties."""
    found: dict[str, str] = {}
    for sink in plan.sinks:
        if not replaced or getattr(sink.sink, "mode", None) == "replace":
            found.update((path if "://" in path else os.path.abspath(path), sink.name) for path in _written(sink.sink))
    return found


def _written(sink: Sink) -> list[str]:
    return [os.fspath(path) for path in sink.written_paths()]


def note_outputs(plan: Plan, state_dir: Place) -> None:
    """Write down what the run in this state directory writes. Raises CheckpointError."""
    path = state_dir / OUTPUTS
    try:
        put(path, json.dumps(sorted(_paths(plan))).encode())
    except OSError as error:
        raise CheckpointError(
            f"{path} cannot be written: {error.strerror or error}; free space or mend permissions"
        ) from error


def _others(own: Place | None) -> Iterator[tuple[StateDir, set[str]]]:
    """Yield the state directories beside this one, with what their runs write. Of one in an object store they are not looked for."""
    own = own if isinstance(own, Path) else None
    seen = set() if own is None else {own.resolve()}
    for beside in ([] if own is None else [own.parent]) + [DEFAULT]:
        for path in sorted(beside.iterdir()) if beside.is_dir() else ():
            if path.resolve() not in seen and path.is_dir():
                seen.add(path.resolve())
                with contextlib.suppress(OSError, ValueError):
                    yield StateDir(path, locked=False), set(json.loads((path / OUTPUTS).read_text()))


def check_outputs(
    plan: Plan, own: Place | None, kept: CompletedCheckpoint | None, notice: Callable[[str], None]
) -> None:
    """Check that what another run goes on with is not emptied; say where another has written to what this run goes on with.

    `own`: the state directory of this run, None without checkpoints; `kept`: what it goes on from. Raises UsageError.
    """
    writes = _paths(plan, replaced=kept is None)
    for other, paths in _others(own) if writes else ():
        both = sorted(paths & set(writes))
        newest = other.manifests()[:1]
        if not both or not newest:
            continue
        if kept is None and not other.ended:
            raise UsageError(
                f"sink {writes[both[0]]!r} would empty {both[0]}, which the run in {other.path} has written, and that one may go on "
                f'(checkpoint {other.last_number}). End it first by --resume, write elsewhere, or say mode="append"; if it is not '
                f"needed any more, remove {other.path}"
            )
        if kept is not None and Path(str(other.path), OUTPUTS).stat().st_mtime > kept.completed_at:
            notice(
                f"{', '.join(both)} {'have' if len(both) > 1 else 'has'} been written by the run in {other.path} since checkpoint "
                f"{kept.number}: rows of both stand there"
            )


def check_same_units(plan: Plan, own: Place) -> None:
    """Check that a run that begins anew, though `--resume` was said, empties nothing which one with the same units has written.

    It is for tables that are no files: nothing here can tell whether they hold rows. Raises UsageError.
    """
    for sink in plan.sinks:
        files = [path for path in _written(sink.sink) if "://" not in path]
        if getattr(sink.sink, "mode", None) != "replace" or files:
            continue
        for other, _ in _others(own):
            with contextlib.suppress(CheckpointError):
                kept = manifest.read(other.manifests()[0]) if other.manifests() and not other.ended else None
                if kept is not None and plan.units.keys() - chainable(plan) <= kept.units.keys() <= plan.units.keys():
                    raise UsageError(
                        f"--resume: there is no checkpoint of topology {plan.name!r} in {own}, and to begin anew would empty what sink "
                        f"{sink.name!r} writes. {other.path} holds a run with the same units, of topology {kept.topology!r}: if that was "
                        f"renamed, say --rename {kept.topology}={plan.name}; to begin anew, leave --resume out"
                    )
