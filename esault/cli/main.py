"""`esault`: the commands and their exit codes."""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import io
import os
import sys
from typing import Any

import click

from esault.errors import EsaultError, SinkError, SourceError, TopologyFailed
from esault.version import VERSION

__all__ = ["DIFFERENT", "FAILED", "STOPPED", "WRONG_USE", "Outcome", "cli", "main"]

#: exit codes: the topology failed; wrong use, nothing started; its shadow put out something else; stopped at once
FAILED, WRONG_USE, DIFFERENT, STOPPED = 1, 2, 3, 130

_COMMANDS = {
    "new": "Write a small topology to start from.",
    "check": "Find mistakes in a topology and draw it.",
    "plan": "What a topology would need under a load: sub-units, hosts, cost.",
    "run": "Run a topology.",
    "connectors": "Where streams come from and go to: list the sources and sinks, explain one.",
    "policies": "What can scale a run: list the policies, explain one.",
    "ui": "A page in a browser that shows running topologies, and reports.",
    "list": "Runs of this user: those under way, and those in the background that are over.",
    "logs": "What a run in the background has logged and printed.",
    "status": "A running topology, from another terminal.",
    "scale": "Give a unit of a running topology more or fewer sub-units.",
    "state": "The state of keys of a running topology.",
    "checkpoint": "Savepoints, and a look into checkpoints: units, keys, state.",
    "deadletters": "Tuples that failed: list them, show them, send them again.",
    "throttle": "Slow a unit of a running topology down for a while.",
    "stop": "End a running topology in order.",
    "node": "Offer this host's slots to runs of other hosts.",
    "keys": "Make the key that the hosts of a cluster share.",
    "analyze": "Spark's report on a landed table.",
    "compact": "Few large files in place of a table's many small ones.",
    "vacuum": "Remove files of a table that no version of the last days has.",
    "completion": "What your shell needs to complete commands, units, policies and runs.",
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
        for each in command.params:
            if isinstance(each, click.Option):
                each.envvar = _variable(cmd_name, each)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in _COMMANDS:
            import difflib  # for this error alone

            near = difflib.get_close_matches(args[0], _COMMANDS, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(_COMMANDS)}"
            raise click.UsageError(f"there is no command {args[0]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


def _variable(command: str, option: click.Option) -> str | None:
    """Return the variable of an option that its function knows by another name; click asks for those of the others by itself."""
    said = next((each for each in option.opts if each.startswith("--")), "").lstrip("-").replace("-", "_")
    return f"ESAULT_{command.upper()}_{said.upper()}" if said and said != option.name else None


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "ESAULT"})
@click.version_option(VERSION, prog_name="esault")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """An elastic stream engine: topologies of spouts and bolts that grow and shrink while tuples flow.

    Start with `esault new words.py`, then `esault run words.py`. Options can also stand in `esault.toml`, as [run] and checkpoint = 1,
    or in the environment, as ESAULT_RUN_CHECKPOINT=1.
    """
    if os.path.exists("esault.toml"):
        from esault.cli.settings_file import FILE, read

        ctx.default_map = read(FILE, lambda name: cli.get_command(ctx, name))
    if ctx.invoked_subcommand in ("run", "check") and any(name.startswith("ESAULT_RUN_") for name in os.environ):
        from esault.cli.settings_file import check_environment

        run = cli.get_command(ctx, "run")
        assert run is not None
        check_environment("run", run)


def main(arguments: list[str] | None = None) -> Any:
    """The console script."""
    # What is imported stays. To look for rubbish among it takes a tenth of the start, and as long again at the exit. A run imports
    # 65 000 containers before its processes freeze them.
    gc.set_threshold(100_000, 20, 50)
    atexit.register(gc.freeze)
    _mend_streams()
    try:
        code = _code_of(arguments)
        sys.stdout.flush()
    except OSError as error:
        if not _is_output(error):
            raise
        code = FAILED
        _drop_unwritten()
        with contextlib.suppress(OSError):
            print(f"error: the output cannot be written: {error.strerror or error}", file=sys.stderr)
    _drop_unwritten()
    sys.exit(code)


def _code_of(arguments: list[str] | None) -> int:
    """Do it; the exit code, its cause having been printed."""
    try:
        cli.main(args=arguments, prog_name="esault", standalone_mode=False)
    except Outcome as outcome:
        return outcome.code
    except click.exceptions.Exit as done:
        return int(done.exit_code)
    except click.exceptions.Abort:
        return STOPPED
    except click.ClickException as error:
        if isinstance(error, click.BadParameter):
            from esault.cli.settings_file import with_origin  # for this error alone

            error = with_origin(error)
        error.show()
        return WRONG_USE
    except TopologyFailed as error:
        print(f"failed: {error}", file=sys.stderr)
        kept = getattr(error.report, "checkpoints", None)
        if kept is not None and (newest := max(kept.newest, kept.resumed_from)):
            goes_on = "" if "--resume" in str(error) else ": --resume goes on from there"
            print(f"checkpoint {newest} is kept in {kept.directory}{goes_on}", file=sys.stderr)
        return FAILED
    except EsaultError as error:
        print(f"error: {error}", file=sys.stderr)
        _print_cause(error)
        return WRONG_USE if error.wrong_use else FAILED
    return 0


def _drop_unwritten() -> None:
    """Drop output that has no reader left: Python would try again when it ends, and end with a code of its own."""
    for stream, number in ((sys.stdout, 1), (sys.stderr, 2)):
        try:
            stream.flush()
        except OSError:
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, number)
            os.close(nothing)


def _mend_streams() -> None:
    """A command may be started with streams closed, or on a terminal that does not know all characters."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:  # else a file or a socket of the run would get this number, and be printed into
            os.open(os.devnull, os.O_RDWR)
    for name, number in (("stdout", 1), ("stderr", 2)):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(number, "w", encoding="utf-8", closefd=False))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace" if name == "stdout" else "backslashreplace")


def _is_output(error: OSError) -> bool:
    """Return whether it came of printing: what else the system refuses is said by the errors of the engine."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = trace.tb_frame.f_globals.get("__name__", "") if trace is not None else ""
    return where.startswith(("esault.cli.", "click.", "rich."))


def _print_cause(error: BaseException) -> None:
    """The user's own traceback, where the error came out of their file; of a client of a system its words say all."""
    import traceback

    cause = error.__cause__
    if isinstance(error, (SinkError, SourceError)) or isinstance(cause, (EsaultError, OSError)):
        return
    if cause is not None:
        print("".join(traceback.format_exception(cause)).rstrip(), file=sys.stderr)
