"""Policies of your own: what one reads, what it can want, and how it gets a name.

A policy is a class with `decide(view)` that returns actions. `register("busy", Busy)` in the topology's file makes
`--policy busy` known to that program. An installed package names its policies in the group `esault.policies` of its
entry points, and every program knows them. docs/how-to/choose-a-policy.md has an example.
"""

from __future__ import annotations

from collections.abc import Callable

from esault.elasticity.action import Action, Advise, Merge, Migrate, NoChange, Rescale, Split, Throttle
from esault.elasticity.policy import POLICIES, Policy, TopologyPolicy, UnitPolicy, make, parameters
from esault.elasticity.view import ProbeSample, RunView, Sample, UnitView, UnitWindow, View

__all__ = [
    "Action",
    "Advise",
    "Merge",
    "Migrate",
    "NoChange",
    "Policy",
    "ProbeSample",
    "Rescale",
    "RunView",
    "Sample",
    "Split",
    "Throttle",
    "TopologyPolicy",
    "UnitPolicy",
    "UnitView",
    "UnitWindow",
    "View",
    "make",
    "names",
    "parameters",
    "register",
    "unregister",
]


def register(name: str, policy: Callable[..., Policy]) -> None:
    """Give a policy a name, for `--policy NAME`, `run(policy=...)` and `simulate`.

    `policy` is a class or a function that makes one. Of a dataclass the fields with defaults are parameters:
    `--policy busy:target=0.6`. Write the call into the topology's file, outside of any function, since every process of
    a run imports that file. A second call with the same name takes the place of the first. Raises UsageError for a
    name of the engine's own policies.
    """
    POLICIES.register(name, policy)


def unregister(name: str) -> None:
    """Take a registered name back; one that is not registered is left alone."""
    POLICIES.unregister(name)


def names() -> list[str]:
    """Return the names of all policies: the engine's, the registered ones, those of installed packages."""
    return POLICIES.names()
