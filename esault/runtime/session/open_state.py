"""The state directory that a run asks for: found, checked, and with the names of today."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from esault.control.checkpoints.completed import check_plan as check_kept
from esault.control.checkpoints.completed import renamed, without_takers
from esault.errors import UsageError
from esault.messages.delivery import Delivery
from esault.runtime.session.request import Request
from esault.state.checkpoint_place import savepoint_place
from esault.state.outputs import check_outputs
from esault.state.run_state import RunState, check_tables
from esault.state.state_path import state_path
from esault.topology.global_state import global_state
from esault.topology.plan import Plan
from esault.topology.rewired import is_beside
from esault.topology.unkept_attributes import unkept_attributes

__all__ = ["open_state"]


def open_state(request: Request, plan: Plan, notice: Callable[[str], None]) -> RunState | None:
    """The state directory, if there are to be checkpoints. Raises UsageError, CheckpointError."""
    if request.settings.delivery is not Delivery.EXACTLY_ONCE:
        options = {
            "--state": request.state is not None,
            "--resume": request.resume,
            "--restart": request.restart,
            "--from-savepoint": request.from_savepoint is not None,
            "--rename": bool(request.renames),
            "--allow-dropped-state": request.allow_dropped_state,
        }
        for name, said in options.items():
            if said:
                raise UsageError(f"{name} is about checkpoints: say how often with --checkpoint SECONDS")
        check_outputs(plan, None, None, notice)
        return None
    if (request.renames or request.allow_dropped_state) and not request.resume and request.from_savepoint is None:
        raise UsageError(
            "--rename and --allow-dropped-state are about what a run goes on from: say --resume or --from-savepoint"
        )
    for text in (*unkept_attributes(plan), *global_state(plan)):
        notice(f"warning: {text}")
    where = state_path(plan, request.state, request.renames)
    savepoint = None if request.from_savepoint is None else savepoint_place(request.from_savepoint, where.lies)
    made = RunState(where, request.resume, request.restart, notice, savepoint)
    try:
        if made.kept is not None:
            # what a shadow was compared by belongs to that comparison, and is gone with it
            handles = tuple(each for each in made.kept.handles if not is_beside(each.sink))
            made.kept = renamed(replace(made.kept, handles=handles), plan, request.renames)
            if request.allow_dropped_state:
                made.kept, told = without_takers(made.kept, plan)
                for text in told:
                    notice(text)
            check_kept(made.kept, plan, request.parallelism, made.from_savepoint)
            made.kept = replace(made.kept, topology=plan.name)
        elif request.resume:
            check_tables(plan, made.path)
        check_outputs(plan, made.path, made.kept, notice)
    except BaseException:
        made.close()
        raise
    return made
