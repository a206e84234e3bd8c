"""The end of a run, told to its sinks. All rows are safe by then: what fails there is told, and changes nothing else."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from esault.flow.operators.user_error import described
from esault.flow.send.sink_call import Background, waited
from esault.topology.plan import SinkPlan

__all__ = ["end_sinks"]


def end_sinks(sinks: Iterable[SinkPlan], ok: bool, repeated: bool, background: Background | None = None) -> None:
    """`end(ok)` of each; `repeated`: whether rows may have come more than once. Raises nothing; errors go to stderr."""
    for name, sink in [(plan.name, plan.sink) for plan in sinks]:
        try:
            sink.repeated = repeated
            waited(sink.end(ok), background)
        except (Exception, SystemExit) as error:
            print(f"sink {name!r}, end: {described(error)}", file=sys.stderr)
