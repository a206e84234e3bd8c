"""`esault throttle`."""

from __future__ import annotations

import click

from esault.cli.completion import complete_units
from esault.cli.running_option import run_option
from esault.errors import UsageError

__all__ = ["command"]


@click.command("throttle", context_settings={"ignore_unknown_options": True})
@click.argument("unit", shell_complete=complete_units)
@click.argument("rate", type=float)
@click.option(
    "--for",
    "seconds",
    type=float,
    required=True,
    metavar="S",
    help="For so many seconds; then it goes on as fast as it can.",
)
@run_option
def command(unit: str, rate: float, seconds: float, run: str | None) -> None:
    """Let UNIT of a running topology process RATE tuples a second at most, for a while.

    For example `esault throttle count 500 --for 30`; a spout reads so many. The rate is that of all its sub-units together. Nothing is lost:
    what is not processed waits, and soon its senders do. A later throttle takes the place of an earlier one; a run that is ended does not
    wait for it.
    """
    from esault.runtime.session.control_client import ask, choose

    if not rate > 0:
        raise UsageError(
            f"unit {unit!r} cannot be throttled to {rate:g}: a rate is a number of tuples a second above 0"
        )
    chosen = choose(run)
    for _ in ask(chosen.control_socket, {"do": "throttle", "unit": unit, "rate": rate, "seconds": seconds}):
        print(f"{chosen.name}, {unit}: {rate:g} tuples a second at most for {seconds:g} s")
