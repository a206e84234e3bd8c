"""`--log-format`, of the commands that run on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

__all__ = ["log_format_option"]


def log_format_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--log-format` to a command."""
    return click.option(
        "--log-format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="Of what is logged, on standard error: text for people, or a JSON object a line.",
    )(command)
