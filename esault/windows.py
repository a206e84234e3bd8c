"""Windows for `stream.window(...)` and `stream.join(...)`: all that `esault.topology.window` exports."""

from __future__ import annotations

from esault.topology.window import *  # noqa: F403
from esault.topology.window import __all__  # noqa: F401
