"""The command line that all benches share."""

from __future__ import annotations

import argparse

__all__ = ["parse"]


def parse(description: str | None) -> argparse.Namespace:
    """`--out DIR [--quick] [--runs N] [--scale X]`; exits with 2 for what makes no sense."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, metavar="DIR", help="for result.json, result.txt and result.png")
    parser.add_argument("--quick", action="store_true", help="small sizes: to see that it works, not to compare")
    parser.add_argument("--runs", type=int, help="of each engine, in turns")
    parser.add_argument("--scale", type=float, default=1.0, help="of all sizes; below 1 for tests")
    arguments = parser.parse_args()
    if arguments.runs is not None and arguments.runs < 1:
        parser.error(f"--runs {arguments.runs}: write at least 1")
    if arguments.scale <= 0:
        parser.error(f"--scale {arguments.scale}: write a number above 0")
    return arguments
