"""For tests of topologies: a whole run in one process, with a manual clock and a seeded order of events.

`LocalRuntime` runs the very cores that the actors run, over queues in memory. Public; knows neither actors nor sockets.
"""

from __future__ import annotations

from esault.testing.local_runtime import LocalRuntime
from esault.testing.manual_clock import ManualClock
from esault.testing.sent import Sent

__all__ = ["LocalRuntime", "ManualClock", "Sent"]
