"""Options of the form NAME=VALUE that may be repeated, as dicts. All raise UsageError for what is none."""

from __future__ import annotations

from collections.abc import Iterable

from esault.errors import UsageError

__all__ = ["counts", "policies", "renames", "spark_conf"]


def policies(texts: Iterable[str]) -> dict[str, str]:
    """Return what `--policy` says: unit, or the empty name for all -> policy with its parameters."""
    found = {}
    for text in texts:
        head, colon, rest = text.partition(":")
        unit, equals, name = head.rpartition("=")
        if not name or (equals and not unit):
            raise UsageError(f"--policy {text!r}: say NAME for all units, or UNIT=NAME, such as count=probe")
        found[unit] = f"{name}{colon}{rest}"
    return found


def renames(texts: Iterable[str], option: str = "--rename") -> dict[str, str]:
    """Return what the option says: old name -> new one."""
    found = {}
    for text in texts:
        old, equals, new = text.partition("=")
        if not (old and equals and new):
            raise UsageError(f"{option} {text!r}: say OLD=NEW, such as count=totals")
        found[old] = new
    return found


def spark_conf(texts: Iterable[str]) -> dict[str, str]:
    """Return what `--conf` says: setting of Spark -> value."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.startswith("spark."):
            raise UsageError(
                f"--conf {text!r}: say KEY=VALUE with a setting of Spark, such as spark.executor.memory=2g"
            )
        found[name] = value
    return found


def counts(texts: Iterable[str], option: str) -> dict[str, int]:
    """Return what `--parallelism` or `--fixed` says: unit -> sub-units."""
    found = {}
    for text in texts:
        name, equals, number = text.partition("=")
        if not (name and equals and number.isdecimal()):  # "²" is a digit, and no number
            raise UsageError(f"{option} {text!r}: say UNIT=N, such as count=4")
        found[name] = int(number)
    return found
