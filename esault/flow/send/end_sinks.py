"""The end of a run, told to its sinks. All rows are safe by then: what fails there is told, and changes nothing else."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from esault.flow.operators.user_error import traceback_of
from esault.topology.sink import Sink

__all__ = ["end_sinks"]


def end_sinks(sinks: Iterable[Sink], ok: bool, repeated: bool) -> None:
    """`end(ok)` of each; `repeated`: whether rows may have come more than once. Raises nothing; errors go to stderr."""
    for sink in sinks:
        try:
            sink.repeated = repeated
            sink.end(ok)
        except Exception as error:
            text = f"{type(error).__name__}: {error}\n{traceback_of(error)}"
            print(f"{type(sink).__name__}, end: {text}", file=sys.stderr)
