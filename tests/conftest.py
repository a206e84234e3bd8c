"""For all tests: what they share, in `shared`, and how Hypothesis looks for examples.

On a developer's machine each run looks elsewhere, and what it finds is to be mended; in CI the examples are the same
each time, so that a change is judged by what it changed. Timings never decide.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import settings

from esault.policies import register, unregister

sys.path.insert(0, str(Path(__file__).with_name("shared")))
from random_changes import Done

#: seeds that show something together
ENOUGH = 6


@pytest.fixture
def name_policy():
    """Give policies names, for one test."""
    given = []

    def name_policy(name, made):
        register(name, made)
        given.append(name)

    yield name_policy
    for name in given:
        unregister(name)


@pytest.fixture
def done():
    """Counts what happens in a test's runs, and fails where what must happen did not in any of them."""
    counted = Done()
    yield counted
    counted.check()


@pytest.fixture(scope="module")
def _by_test():
    found = defaultdict(Done)
    yield found
    for counted in found.values():
        if counted.runs >= ENOUGH:
            counted.check()


@pytest.fixture
def done_in_all(request, _by_test):
    """The same for a test that runs once for each seed, over all of them; one that runs for a few says nothing."""
    return _by_test[request.function.__name__]


settings.register_profile("developer", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "developer")
