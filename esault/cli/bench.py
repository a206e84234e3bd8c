"""`esault bench`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from esault.errors import UsageError

__all__ = ["command"]


@click.command("bench", context_settings={"ignore_unknown_options": True})
@click.argument("name", required=False)
@click.option("--quick", is_flag=True, help="Small sizes: to see that it works, not to compare.")
@click.option("--out", type=click.Path(), help="Folder for result.json, a table and plots.")
@click.argument("more", nargs=-1, type=click.UNPROCESSED)
def command(name: str | None, quick: bool, out: str | None, more: tuple[str, ...]) -> None:
    """Run the bench NAME of this checkout (bench/NAME/__main__.py); without a NAME, say which there are.

    MORE goes to the bench as it is, as in --peers all; `python -m bench.NAME --help` says what it takes. Ctrl-C ends it
    and all that it started.
    """
    folder = Path("bench")
    known = sorted(p.parent.name for p in folder.glob("*/__main__.py") if "def main(" in p.read_text())
    if not known:
        raise UsageError("there is no bench folder here: benches run in a checkout of eSault, from its top")
    if name is None:
        raise UsageError(f"say which bench: {', '.join(known)}")
    if name not in known:
        raise UsageError(f"there is no bench {name!r}; there are: {', '.join(known)}")
    if out is None:
        raise UsageError(f"say where its results go: esault bench {name} --out DIR")
    sys.stdout.flush()
    sys.stderr.flush()
    # In this very process: a signal to it means the bench.
    os.execv(  # noqa: S606 - no shell
        sys.executable, [sys.executable, "-m", f"bench.{name}", "--out", out, *(["--quick"] if quick else []), *more]
    )
