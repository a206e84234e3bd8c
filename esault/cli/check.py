"""`esault check`."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click

from esault.cli.topology_argument import params_of, place_of, set_option, topology_argument
from esault.counters import counted

__all__ = ["command"]


@click.command("check")
@topology_argument
@set_option
@click.option("--mermaid", is_flag=True, help="Draw for a page instead of a terminal.")
@click.option(
    "--engine",
    type=click.Choice(["actors", "local", "spark"]),
    default="actors",
    show_default=True,
    help="The engine that it shall run on.",
)
@click.option(
    "--settings",
    "shows_settings",
    is_flag=True,
    help="Say which options `run` takes from esault.toml and the environment.",
)
@click.option("--chaining", is_flag=True, help="Say also of bolts that are not chained why they are not.")
@click.option(
    "--connect", is_flag=True, help="Ask sources, sinks and lookup tables whether they can be reached, as `run` does."
)
@click.pass_context
def command(
    ctx: click.Context,
    topology: str,
    settings: tuple[str, ...],
    mermaid: bool,
    engine: str,
    shows_settings: bool,
    chaining: bool,
    connect: bool,
) -> None:
    """Build TOPOLOGY, find what is wrong with it, and draw it. Nothing is read or written; only --connect asks servers."""
    from esault.runtime.session.new_state import refused_states
    from esault.topology.declared import misfits
    from esault.topology.doubts import lost_times, timeless_timers, unused_ticks
    from esault.topology.drawing import draw
    from esault.topology.drawing import mermaid as draw_mermaid
    from esault.topology.global_state import global_state
    from esault.topology.unkept_attributes import unkept_attributes

    place = place_of(topology)
    built = place.build(params_of(place, settings))
    plan = built.plan()
    if engine == "spark":
        from esault.spark.engine.adapted import adapted, notices
        from esault.spark.engine.refusals import check_topology

        check_topology(adapted(built))
        for notice in notices(built):
            click.echo(f"note: {notice}", err=True)
    print(draw_mermaid(plan) if mermaid else draw(plan))
    if engine != "spark" and not mermaid:
        from esault.topology.chaining import described
        from esault.topology.reading_order import readers

        for line in described(plan, others=chaining):
            click.echo(line)
        for line in readers(plan):
            click.echo(line)
    if shows_settings:
        click.echo("\n".join(_settings(ctx, topology)))
    if connect:
        from esault.runtime.session.plan_check import check_plan

        check_plan(plan, sys.maxsize, {})
    warnings = [
        *misfits(plan),
        *lost_times(plan),
        *timeless_timers(plan),
        *unkept_attributes(plan),
        *global_state(plan),
        *unused_ticks(plan),
        *refused_states(plan),
    ]
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)
    if not mermaid:
        found = f"{len(warnings)} warning{'s' * (len(warnings) > 1)}" if warnings else "no mistakes found"
        print(f"{plan.name}: {counted(len(plan.units), 'unit')}, {found}")


def _settings(ctx: click.Context, topology: str) -> Iterator[str]:
    from esault.cli.run import command as run
    from esault.cli.settings_file import origins

    found = list(origins(run.make_context("run", [topology], parent=ctx.parent)))
    yield from (f"setting: {option} {value} ({origin})" for option, value, origin in found)
    if not found:
        yield "setting: all options of `esault run` are at their defaults"
