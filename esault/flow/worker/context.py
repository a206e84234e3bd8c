"""The context in which user code of a sub-unit runs: made anew with each incarnation."""

from __future__ import annotations

from esault.flow.worker.environment import Environment
from esault.messages.control import Build
from esault.payload.undone import restore_note
from esault.topology.context import Context, logger_of
from esault.topology.plan import UnitPlan

__all__ = ["context_of"]


def context_of(build: Build, plan: UnitPlan, environment: Environment) -> Context:
    """Return it. Where all have gone back to a checkpoint, files of dead letters are told so first."""
    context = Context(
        unit=plan.name,
        sub_unit=build.incarnation,
        host=build.host,
        logger=logger_of(plan.spout or plan.factory),
        part=build.part,
        parts=build.parts,
        run=build.run,
        lineage=build.lineage or build.run,
        now=environment.clock,
        in_thread=environment.in_thread,
        run_dir=environment.run_dir,
        epoch=build.epoch,
    )
    context.at_checkpoint(build.checkpoint)
    if build.back_to is not None:
        note = restore_note(
            build.run, context.lineage, build.epoch, build.back_to, environment.clock(), build.continues
        )
        # Those that were written behind the checkpoint do not hold: their tuples come again.
        for path in plan.dead_letter_paths:
            box = environment.dead_letters(path)
            box.put(note)
            box.sync()
    return context
