"""The command line that all benches share, and how they end before their time."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Collection
from types import FrameType

__all__ = ["end_on_signals", "names_among", "parse"]


def parse(
    description: str | None, more: Callable[[argparse.ArgumentParser], object] | None = None
) -> argparse.Namespace:
    """`--out DIR [--quick] [--runs N] [--scale X]`, and what `more` adds; exits with 2 for what makes no sense."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, metavar="DIR", help="for result.json, result.txt and result.png")
    parser.add_argument("--quick", action="store_true", help="small sizes: to see that it works, not to compare")
    parser.add_argument("--runs", type=int, help="of each engine, in turns")
    parser.add_argument("--scale", type=float, default=1.0, help="of all sizes; below 1 for tests")
    if more is not None:
        more(parser)
    arguments = parser.parse_args()
    if arguments.runs is not None and arguments.runs < 1:
        parser.error(f"--runs {arguments.runs}: write at least 1")
    if arguments.scale <= 0:
        parser.error(f"--scale {arguments.scale}: write a number above 0")
    end_on_signals()
    return arguments


def names_among(known: Collection[str]) -> Callable[[str], list[str]]:
    """The type of an option that takes some of these names, with commas between them."""

    def chosen(text: str) -> list[str]:
        found = [name.strip() for name in text.split(",") if name]
        if unknown := [name for name in found if name not in known]:
            raise argparse.ArgumentTypeError(f"there is no {unknown[0]!r}; write some of: {', '.join(known)}")
        return found

    return chosen


def end_on_signals() -> None:
    """The first Ctrl-C, SIGTERM or SIGHUP ends what runs, then the bench; those that follow change nothing."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def caught(number: int, frame: FrameType | None) -> None:
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)
        print("stopped: what was not written yet is lost", file=sys.stderr, flush=True)
        raise SystemExit(128 + number)

    for each in numbers:
        signal.signal(each, caught)
