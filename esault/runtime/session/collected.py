"""Rows of `Collect` sinks, for the program that runs the topology."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from esault.payload.class_names import as_script
from esault.sinks.collect import read_collected

__all__ = ["collected_so_far"]


def collected_so_far(run_dir: str, sinks: Iterable[str], file: str | None) -> list[tuple[Any, Any]]:
    """Return what these sinks have committed by now. `file` is the topology's, whose classes are the script's where it is the same."""
    with as_script(file):
        return [row for name in sinks for row in read_collected(run_dir, name)]
