"""A run as it is asked for, and the interface of what shows it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from esault.control.report.summary import Snapshot
from esault.messages.settings import Settings

__all__ = ["Quiet", "Request", "View"]


class View(Protocol):
    """The interface of a view that shows a run to the user."""

    def line(self, mark: str, text: str) -> None:
        """A line that a process printed; may be called in another thread."""
        ...

    def notice(self, text: str) -> None:
        """Something the user should know."""
        ...

    def update(self, snapshot: Snapshot) -> None:
        """The run as it is; a few times a second."""
        ...


class Quiet:
    """Prints what user code prints and what goes wrong, nothing else."""

    def line(self, mark: str, text: str) -> None:
        print(f"[{mark}] {text}", flush=True)

    def notice(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def update(self, snapshot: Snapshot) -> None:
        """Nothing to see."""


@dataclass(frozen=True)
class Request:
    """All that can be said about a run."""

    #: where the topology function is (Located); or, for the local engine alone, the function itself
    topology: Any
    params: Mapping[str, Any] = field(default_factory=dict)
    engine: str = "actors"
    settings: Settings = field(default_factory=Settings)
    parallelism: Mapping[str, int] = field(default_factory=dict)
    #: places for sub-units; None: 16 on one machine, all that are free on several
    slots: int | None = None
    #: end in order after so long; None: when the spouts have ended
    seconds: float | None = None
    #: where report.json goes; None: nowhere
    report: str | Path | None = None
    view: View | None = None
    #: what scales units by themselves, by name; the empty name stands for all that are not named
    policies: Mapping[str, str] = field(default_factory=dict)
    #: where checkpoints are kept; None: .esault/NAME
    state: str | Path | None = None
    #: go on from what is kept there, or begin anew; neither: refuse where a run did not finish
    resume: bool = False
    restart: bool = False
    #: the other machines to run on, a hosts.toml, and the file of their key where that does not name it
    hosts: str | Path | None = None
    key: str | Path | None = None
    #: of the Spark engine: the URL of a cluster; None: all cores of this machine
    master: str | None = None
    #: the folder where the run's own metrics land as tables; None: nowhere
    land_metrics: str | Path | None = None
