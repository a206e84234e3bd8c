"""`esault check`."""

from __future__ import annotations

import click

from esault.cli.topology_argument import params_of, place_of, set_option, topology_argument

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
@click.option("--chaining", is_flag=True, help="Say for each bolt whether `run --chaining` chains it, and why not.")
def command(topology: str, settings: tuple[str, ...], mermaid: bool, engine: str, chaining: bool) -> None:
    """Build TOPOLOGY, find what is wrong with it, and draw it. Nothing is read or written."""
    from esault.topology.declared import misfits
    from esault.topology.drawing import draw
    from esault.topology.drawing import mermaid as draw_mermaid

    place = place_of(topology)
    plan = place.build(params_of(place, settings)).plan()
    if engine == "spark":
        from esault.spark.engine.refusals import check_topology

        check_topology(plan)
    print(draw_mermaid(plan) if mermaid else draw(plan))
    if chaining:
        from esault.topology.chaining import described

        for line in described(plan):
            click.echo(line)
    warnings = misfits(plan)
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)
    if not mermaid:
        found = f"{len(warnings)} warning{'s' * (len(warnings) > 1)}" if warnings else "no mistakes found"
        print(f"{plan.name}: {len(plan.units)} units, {found}")
