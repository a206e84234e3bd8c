"""For all tests: how Hypothesis looks for examples.

On a developer's machine each run looks elsewhere, and what it finds is to be mended; in CI the examples are the same
each time, so that a change is judged by what it changed. Timings never decide.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("developer", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "developer")
