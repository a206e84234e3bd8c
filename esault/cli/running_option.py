"""`--run`, which all commands for a running topology take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

__all__ = ["run_option"]


def run_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--run NAME` to a command."""
    return click.option(
        "--run",
        "run",
        metavar="NAME",
        help="The topology's name, or the beginning of the run's id, if several are running.",
    )(command)
