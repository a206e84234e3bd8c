"""`esault`: the commands and their exit codes."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import click

from esault.errors import EsaultError, TopologyFailed
from esault.version import VERSION

__all__ = ["Outcome", "cli", "main"]

#: exit codes: the topology failed; wrong use, nothing started; stopped at once
FAILED, WRONG_USE, STOPPED = 1, 2, 130

_COMMANDS = {
    "new": "Write a small topology to start from.",
    "check": "Find mistakes in a topology and draw it.",
    "run": "Run a topology.",
    "policies": "What can scale a run: list the policies, explain one.",
    "status": "A running topology, from another terminal.",
    "scale": "Give a unit of a running topology more or fewer sub-units.",
    "throttle": "Slow a unit of a running topology down for a while.",
    "stop": "End a running topology in order.",
    "node": "Offer this host's slots to runs of other hosts.",
    "keys": "Make the key that the hosts of a cluster share.",
    "analyze": "Spark's report on a landed table.",
    "bench": "Measure, in a checkout.",
}


class Outcome(Exception):
    """Ends the command with this exit code; what there is to say has been said."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class _Commands(click.Group):
    """Imports a command's module when it is used: `esault --help` needs none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"esault.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="esault")
def cli() -> None:
    """An elastic stream engine: topologies of spouts and bolts that grow and shrink while tuples flow.

    Start with `esault new words.py`, then `esault run words.py`.
    """


def main(arguments: list[str] | None = None) -> Any:
    """The console script."""
    try:
        cli.main(args=arguments, prog_name="esault", standalone_mode=False)
    except Outcome as outcome:
        sys.exit(outcome.code)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.exceptions.Abort:
        sys.exit(STOPPED)
    except click.ClickException as error:
        error.show()
        sys.exit(WRONG_USE)
    except TopologyFailed as error:
        print(f"failed: {error}", file=sys.stderr)
        sys.exit(FAILED)
    except EsaultError as error:
        print(f"error: {error}", file=sys.stderr)
        _print_cause(error)
        sys.exit(WRONG_USE)
    sys.exit(0)


def _print_cause(error: BaseException) -> None:
    """The user's own traceback, where the error came out of their file."""
    import traceback

    cause = error.__cause__
    if cause is not None and not isinstance(cause, (EsaultError, OSError)):
        print("".join(traceback.format_exception(cause)).rstrip(), file=sys.stderr)
