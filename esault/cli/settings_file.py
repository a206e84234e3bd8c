"""Options of commands from a file, `esault.toml`: a table for each command, with its options by name.

```toml
[run]
checkpoint = 1
policy = ["auto", "count=probe"]
```

What the command line says counts first, then the environment (`ESAULT_RUN_CHECKPOINT=1`), then the file.
"""

from __future__ import annotations

import difflib
import importlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from esault.errors import UsageError

__all__ = ["FILE", "check_environment", "origins", "read", "with_origin"]

#: in the folder in which the command is started
FILE = "esault.toml"


def read(path: str, command_of: Callable[[str], click.Command | None]) -> dict[str, dict[str, Any]]:
    """Return the options that a file says, by command, as click names them. Raises UsageError for what no command knows."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None
    try:
        said = _toml().loads(content.decode())  # TOML is UTF-8, whatever the system's encoding
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from None
    found: dict[str, dict[str, Any]] = {}
    for name, options in said.items():
        command = command_of(name)
        if command is None or not isinstance(options, dict):
            raise UsageError(f"{path}: [{name}] is no command; write [run], [node] and the like, as in `esault run`")
        known = {option: each for each in command.params if isinstance(each, click.Option) for option in each.opts}
        found[name] = dict(_named(path, name, options, known))
    return found


def _named(
    path: str, command: str, options: dict[str, Any], known: dict[str, click.Option]
) -> Iterator[tuple[str, Any]]:
    for name, value in options.items():
        option = known.get(f"--{name.replace('_', '-')}")
        if option is None or option.name is None:
            near = difflib.get_close_matches(name, [each.removeprefix("--") for each in known], 1)
            hint = f"; did you mean {near[0]}?" if near else f": `esault {command} --help` lists them"
            raise UsageError(f"{path}: [{command}] has no option {name!r}{hint}")
        several = isinstance(value, list) and (option.multiple or option.nargs != 1)
        takes = _not_taken(option, value if several else [value])
        if takes:
            raise UsageError(f"{path}: [{command}] {name}: {_shown(value)} will not do; it takes {takes}")
        yield option.name, [value] if option.multiple and not several else value


def _not_taken(option: click.Option, values: list[Any]) -> str:
    """Return what the option takes where one of the values is no such thing; empty where all are. A text is looked at by click."""
    kinds: tuple[type, ...] = (str, int, float)
    takes = "text"
    if option.is_flag:
        kinds, takes = (str, bool), "true or false"
    elif isinstance(option.type, click.types.IntParamType):
        kinds, takes = (str, int), "a whole number"
    elif isinstance(option.type, click.types.FloatParamType):
        kinds, takes = (str, int, float), "a number"
    fit = all(type(value) in kinds for value in values)  # to Python true is a 1
    return "" if fit else f"{takes}, or a list of {takes}s" if option.multiple else takes


def _shown(value: Any) -> str:
    """Return a value as TOML has it, as far as that is short."""
    return str(value).lower() if isinstance(value, bool) else repr(value)


def check_environment(name: str, command: click.Command) -> None:
    """Check that all variables which are for a command name options of it: ESAULT_RUN_CHECKPOINT=1. Raises UsageError."""
    prefix = f"ESAULT_{name.upper()}_"
    options = [each for each in command.params if isinstance(each, click.Option)]
    known = [str(each.envvar).removeprefix(prefix) for each in options if each.envvar is not None]
    known += [(each.name or "").upper() for each in options]
    for variable in os.environ:
        said = variable.removeprefix(prefix)
        if said != variable and said not in known:
            near = difflib.get_close_matches(said, known, 1)
            hint = f"; did you mean {prefix}{near[0]}?" if near else f": `esault {name} --help` lists them"
            raise UsageError(f"{variable} is in the environment, and `esault {name}` has no such option{hint}")


def origins(ctx: click.Context) -> Iterator[tuple[str, Any, str]]:
    """Yield (option, value, origin) of each option of a command that is not at its default."""
    words = {"ENVIRONMENT": "environment", "DEFAULT_MAP": FILE, "COMMANDLINE": "command line"}
    for each in ctx.command.params:
        source = ctx.get_parameter_source(each.name or "")
        if isinstance(each, click.Option) and source is not None and source.name in words:
            origin = words[source.name] if source.name != "ENVIRONMENT" else _variable(ctx, each)
            value = ctx.params.get(each.name or "")
            yield each.opts[0], " ".join(map(str, value)) if isinstance(value, (tuple, list)) else value, origin


def with_origin(error: click.BadParameter) -> click.BadParameter:
    """Return the error of an option's value with the place where the value stands, unless that is the command line."""
    if error.ctx is None or not isinstance(error.param, click.Option):
        return error
    source = error.ctx.get_parameter_source(error.param.name or "")
    if source is None or source.name not in ("ENVIRONMENT", "DEFAULT_MAP"):
        return error
    file = f"[{error.ctx.info_name}] of {FILE}"
    origin = file if source.name == "DEFAULT_MAP" else f"{_variable(error.ctx, error.param)} in the environment"
    return click.BadParameter(f"{error.message.rstrip('.')} ({origin})", error.ctx, error.param, error.param_hint)


def _variable(ctx: click.Context, option: click.Option) -> str:
    return str(option.envvar or f"{ctx.auto_envvar_prefix}_{(option.name or '').upper()}")


def _toml() -> Any:
    for name in ("tomllib", "tomli"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise UsageError(f"{FILE} needs tomli on Python 3.10: pip install tomli")
