"""`esault bench`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

from esault.cli.main import Outcome
from esault.errors import UsageError

__all__ = ["command"]


@click.command("bench")
@click.argument("name")
@click.option("--quick", is_flag=True, help="Small sizes: to see that it works, not to compare.")
@click.option("--out", type=click.Path(), required=True, help="Folder for result.json, a table and plots.")
def command(name: str, quick: bool, out: str) -> None:
    """Run the bench NAME of this checkout (bench/NAME.py)."""
    folder = Path("bench")
    known = sorted(p.stem for p in folder.glob("*.py") if "def main(" in p.read_text()) if folder.is_dir() else []
    if not known:
        raise UsageError("there is no bench folder here: benches run in a checkout of eSault, from its top")
    if name not in known:
        raise UsageError(f"there is no bench {name!r}; there are: {', '.join(known)}")
    done = subprocess.run(
        [sys.executable, "-m", f"bench.{name}", "--out", out, *(["--quick"] if quick else [])], check=False
    )
    if done.returncode:
        raise Outcome(done.returncode)
