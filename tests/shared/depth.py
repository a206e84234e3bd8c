"""How many examples and seeds a run of the tests takes of those that tests ask for, by the profile of Hypothesis.

`HYPOTHESIS_PROFILE=deep` (`make test-deep`) takes all of them. `developer` looks elsewhere in each run, `ci` (chosen by
`CI=1`) at the same place; both take a tenth of the examples, those that a test names among them, and a quarter of the
seeds. `quick` is that of `make quick`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

T = TypeVar("T")
#: of so many examples that a test asks for, one is taken
DIVISORS = {"deep": 1, "developer": 10, "ci": 10, "quick": 10}
#: the same for seeds, each a whole run, of which a test that counts what happens needs six
OF_SEEDS = {"deep": 1, "developer": 4, "ci": 4, "quick": 10}
PROFILE = os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "developer")


def of(asked: int) -> int:
    """So many examples are taken of those that are asked for; one at least, and three unless in `quick`."""
    return min(asked, max(1 if PROFILE == "quick" else 3, asked // DIVISORS[PROFILE]))


def chosen(names: Iterable[T], few: Iterable[T]) -> list[T]:
    """All names in the deep run, and else only these few."""
    kept = set(few)
    return [name for name in names if PROFILE == "deep" or name in kept]


def deep(why: str) -> pytest.MarkDecorator:
    """A mark for a test that the deep run alone takes. `why`: where else it is shown what it shows."""
    return pytest.mark.skipif(PROFILE != "deep", reason=f"{why}: make test-deep")


def seeds(asked: int) -> range:
    """Those that a test tries one after another; one at least."""
    return range(max(1, asked // OF_SEEDS[PROFILE]))


def load(divided: bool = False) -> None:
    """Load the chosen profile; `divided`: with as many examples as it takes where a test asks for no number."""
    examples = 100
    for name in DIVISORS:
        derandomize = name in ("ci", "quick")
        settings.register_profile(
            name, deadline=None, derandomize=derandomize, max_examples=of(examples) if divided else examples
        )
    settings.load_profile(PROFILE)


def without_constants() -> None:
    """Draw no constants of the engine's source, unless all examples are taken: to look for them in its 600 modules takes
    each worker seconds, and which of them are imported by then depends on the tests before, so that no two runs are alike."""
    if PROFILE != "deep" and hasattr(providers, "_get_local_constants"):  # no public switch as of Hypothesis 6.150
        providers._get_local_constants = lambda: providers._local_constants


def fewer(asked: settings, named: int = 0) -> settings:
    """The same with fewer examples: `named` are named by the test, and run in any case; one is drawn at least."""
    drawn = of(asked.max_examples)
    return settings(asked, max_examples=drawn if PROFILE == "deep" else max(1, drawn - named))


def divide(items: list[Any]) -> None:
    """Have all collected tests take fewer examples, also those that say how many they want: functions and machines of rules."""
    for function in {getattr(item.obj, "__func__", item.obj) for item in items if hasattr(item, "obj")}:
        asked = getattr(function, "_hypothesis_internal_use_settings", None)
        if asked is not None:
            named = len(getattr(function, "hypothesis_explicit_examples", ()))
            function._hypothesis_internal_use_settings = fewer(asked, named)
    for case in {item.cls for item in items if isinstance(getattr(item, "cls", None), type)}:
        if isinstance(case.__dict__.get("settings"), settings):
            case.settings = fewer(case.settings)
    load(divided=True)
