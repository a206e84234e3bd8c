"""`esault connectors`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple

import click

from esault import connectors
from esault.connectors.lookup import Lookup
from esault.errors import UsageError
from esault.topology.sink import Sink
from esault.topology.spout import Spout

__all__ = ["command"]

#: columns of a terminal from which there is room to say what each is
WIDE = 110
#: in the order of the list; "" is what cannot be loaded
KINDS = ("source", "sink", "lookup", "")


class Listed(NamedTuple):
    """A line of the list; `kind` is "source", "sink" or "lookup", `install` what brings its library, "" where it needs none."""

    name: str
    kind: str
    says: str
    guarantee: str
    install: str


@click.command("connectors")
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """List the sources, sinks and lookup tables, what each promises and what it needs; with a NAME, explain that one and its options.

    A topology takes them as objects: t.spout("lines", TextFiles("in/*.txt")), stream.sink("out", JsonLines("out.jsonl")),
    stream.enrich("with_user", PostgresLookup(...), of=...).
    """
    from rich.console import Console
    from rich.table import Table

    if name is not None:
        print("\n".join(_explained(name)))
        return
    console = Console(markup=False, highlight=False)
    wide = console.width >= WIDE
    table = Table(box=None, pad_edge=False, show_header=True, header_style="bold")
    for title in ("NAME", "", *(("WHAT IT IS",) if wide else ()), "AFTER A CRASH", "NEEDS"):
        table.add_column(title, overflow="fold", no_wrap=title in ("NAME", "", "NEEDS"))
    for each in sorted(map(_listed, connectors.names()), key=lambda each: (KINDS.index(each.kind), each.name)):
        table.add_row(each.name, each.kind, *((each.says,) if wide else ()), each.guarantee, each.install)
    console.print(table)
    console.print("\n`esault connectors NAME` explains one and its options.")


def _listed(name: str) -> Listed:
    try:
        found: Any = connectors.find(name)
    except UsageError as error:  # of an installed package: the others are listed all the same
        return Listed(name, "", f"({error})", "", "")
    kind = next(kind for kind, base in zip(KINDS, (Spout, Sink, Lookup)) if issubclass(found, base))
    first = (inspect.getdoc(found) or "").partition("\n\n")[0]
    says = re.split(r"[.;](?:\s|$)", " ".join(first.split()))[0]
    return Listed(name, kind, says, getattr(found, "delivery_guarantee", ""), _install(found))


def _install(found: Any) -> str:
    extra = getattr(found, "extra", "")
    return f"esault[{extra}]" if extra else ""


def _explained(name: str) -> Iterator[str]:
    found: Any = connectors.find(name)
    listed = _listed(name)
    yield f"{name}: a {listed.kind}"
    if name in import_module(shelf := f"esault.{listed.kind}s").__all__:
        yield f"  from {shelf} import {name}"
    if listed.install:
        yield f"  pip install '{listed.install}'"
    if listed.guarantee:
        yield f"After a crash: {listed.guarantee}"
    yield from ("", inspect.getdoc(found) or "(nothing is written about it)", "", "Options and defaults:")
    for parameter in inspect.signature(found).parameters.values():
        said = "" if parameter.annotation is parameter.empty else f": {parameter.annotation}"
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        yield f"  {parameter.name}{said}{default}"
