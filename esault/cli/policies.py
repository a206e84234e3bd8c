"""`esault policies`."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import click

from esault.cli.completion import complete_policies
from esault.elasticity.policy import DEFAULT, NONE, POLICIES, parameters
from esault.errors import UsageError

__all__ = ["command", "comments", "docstring"]

#: characters in a line of parameters
WIDTH = 100
NOTHING = "nothing is changed but by hand (`esault scale`)"


@click.command("policies")
@click.argument("name", required=False, shell_complete=complete_policies)
def command(name: str | None) -> None:
    """List the policies that can scale a run; with a NAME, explain that one and its parameters.

    A policy is chosen with `esault run TOPOLOGY --policy NAME`, or UNIT=NAME for one unit; parameters follow a
    colon, as in --policy count=probe:target=0.5,patience=10.
    """
    print("\n".join(_listed() if name is None else _explained(name)))


def docstring(name: str) -> str:
    """The text about a policy: its module's text where the module is that policy's alone, else its class's."""
    made: Any = POLICIES.find(name)
    places = {each: POLICIES.place(each) for each in POLICIES.names()}
    module = (places[name] or "").partition(":")[0]
    alone = bool(module) and sum((each or "").partition(":")[0] == module for each in places.values()) == 1
    return (inspect.getdoc(sys.modules[made.__module__]) if alone else None) or _own_docstring(made)


def _own_docstring(made: Any) -> str:
    text = inspect.getdoc(made) or ""
    # A dataclass without one is given its signature.
    return "" if text.startswith(f"{made.__name__}(") else text


def comments(made: type) -> dict[str, str]:
    """Field -> the `#:` comment above it, also of a base class; nothing where there is no source to read."""
    found: dict[str, str] = {}
    for each in reversed(made.__mro__):
        try:
            lines = textwrap.dedent(inspect.getsource(each)).splitlines()
            tree = ast.parse("\n".join(lines))
        except (OSError, TypeError, SyntaxError):
            continue
        for node in tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else ():
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                above = list(_above(lines, node.lineno - 1))
                if above:
                    found[node.target.id] = " ".join(reversed(above))
    return found


def _above(lines: list[str], at: int) -> Iterator[str]:
    while at > 0 and lines[at - 1].strip().startswith("#:"):
        at -= 1
        yield lines[at].strip()[2:].strip()


def _listed() -> list[str]:
    rows = [(name, _first_line(name)) for name in POLICIES.names()]
    rows.append((NONE, NOTHING))
    names = [f"{name} (default)" if name == DEFAULT else name for name, _ in rows]
    width = max(map(len, names))
    return [
        *(f"{name.ljust(width)}  {line}" for name, (_, line) in zip(names, rows)),
        "",
        "`esault policies NAME` explains one; `esault run TOPOLOGY --policy NAME` uses it.",
    ]


def _first_line(name: str) -> str:
    try:
        text = docstring(name)
    except UsageError as error:  # of an installed package: the others are listed all the same
        return f"({error})"
    line = (text or "(nothing is written about it)").splitlines()[0]
    return re.sub(rf"^The policy `{re.escape(name)}`[^:]*: ", "", line)


def _explained(name: str) -> list[str]:
    if name == NONE:
        return [f"none: {NOTHING}.", "", "Example: esault run words.py --policy none"]
    known = parameters(name)
    made: Any = POLICIES.find(name)
    title = f"{name}, the default" if name == DEFAULT else name
    scope = "judges all units of a topology together" if hasattr(made, "period") else "judges one unit"
    text, own = docstring(name) or "(nothing is written about it)", _own_docstring(made)
    more = [own, ""] if own and own != text else []
    return [f"{title}: {scope}.", "", text, "", *more, *_parameters(name, made, known)]


def _parameters(name: str, made: Any, known: dict[str, Any]) -> Iterator[str]:
    said = comments(made)
    choices = {f.name: f.metadata.get("choices", ()) for f in fields(made)} if is_dataclass(made) else {}
    example = next((p for p, default in known.items() if isinstance(default, (int, float))), None)
    if not known:
        yield "It has no parameters."
    else:
        yield "Parameters and defaults:"
        width = max(len(f"{p}={_text(d)}") for p, d in known.items())
        for parameter, default in known.items():
            text = said.get(parameter, "")
            if choices.get(parameter):
                text = f"{text}; one of: {', '.join(choices[parameter])}".removeprefix("; ")
            first, *rest = textwrap.wrap(text, max(40, WIDTH - width - 4)) or [""]
            yield f"  {f'{parameter}={_text(default)}'.ljust(width)}  {first}".rstrip()
            yield from (" " * (width + 4) + line for line in rest)
    yield ""
    value = f":{example}={_text(known[example])}" if example is not None else ""
    yield f"Example: esault run words.py --policy {name}{value}"


def _text(default: object) -> str:
    """As it is written on the command line."""
    return (
        str(default).lower()
        if isinstance(default, bool)
        else f"{default:g}"
        if isinstance(default, float)
        else str(default)
    )
