"""The run that a command is for: `--run NAME`, which all take, and RUN, where nothing else is asked for."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from esault.cli.completion import complete_runs

__all__ = ["run_argument", "run_option"]


def run_option(command: Callable[..., Any], complete: Callable[..., Any] = complete_runs) -> Callable[..., Any]:
    """Adds `--run NAME` to a command."""
    return click.option(
        "--run",
        "run",
        metavar="NAME",
        shell_complete=complete,
        help="The topology's name, or the beginning of the run's id, if several are running; or HOST:PORT, what `esault run "
        "--control` says on another machine, with your key in ESAULT_KEY.",
    )(command)


def run_argument(command: Callable[..., Any], complete: Callable[..., Any] = complete_runs) -> Callable[..., Any]:
    """Adds RUN and `--run NAME`, which say the same, to a command that has no other argument."""

    @functools.wraps(command)
    def with_either(*arguments: Any, named: str | None, run: str | None, **options: Any) -> Any:
        if named is not None and run is not None and named != run:
            raise click.UsageError(f"{named!r} and --run {run} name two runs; write one of them")
        return command(*arguments, run=named if run is None else run, **options)

    argument = click.argument("named", metavar="[RUN]", required=False, shell_complete=complete)
    return argument(run_option(with_either, complete))
