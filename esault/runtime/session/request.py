"""A run as it is asked for, and the interface of what shows it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from esault.control.report.summary import Snapshot
from esault.control.report.timeline import Page
from esault.messages.settings import Settings
from esault.value_class import value_class

__all__ = ["SLOTS", "LogView", "Quiet", "Request", "TimelineView", "View"]

#: places for sub-units on one machine, where nothing is said
SLOTS = 16


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


@runtime_checkable
class TimelineView(View, Protocol):
    """The interface of a view that shows the timeline too."""

    def page(self, page: Page) -> None:
        """A window of the timeline that has ended, once a second."""
        ...


@runtime_checkable
class LogView(View, Protocol):
    """The interface of a view that shows what is logged too, beside the handlers of `logging`."""

    def log(self, record: logging.LogRecord) -> bool:
        """A record that user code has logged, with `unit`, `sub_unit` and `run` as attributes; called in another thread.

        Returns whether the view stands for a terminal; else standard error has the record where the program has no handlers.
        """
        ...


class Quiet:
    """Prints what user code prints and what goes wrong, nothing else."""

    def line(self, mark: str, text: str) -> None:
        print(f"[{mark}] {text}", flush=True)

    def notice(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def update(self, snapshot: Snapshot) -> None:
        """Nothing to see."""


@value_class(frozen=True)
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
    #: begin with this savepoint, a name or a folder
    from_savepoint: str | None = None
    #: of the topology and of units: name in the checkpoint that is gone on from -> name now
    renames: Mapping[str, str] = field(default_factory=dict)
    #: state that no unit takes may be let go
    allow_dropped_state: bool = False
    #: the other machines to run on, a hosts.toml, and the file of their key where that does not name it
    hosts: str | Path | None = None
    key: str | Path | None = None
    #: the run shares slots of these with others by it, the highest first; None: it keeps those that it is given
    priority: int | None = None
    #: HOST:PORT where other machines may ask for the status of the run and for changes; None: nowhere
    control: str | None = None
    #: the file that says who asked the run for what; None: none
    audit: str | Path | None = None
    #: of the Spark engine: the URL of a cluster; None: all cores of this machine
    master: str | None = None
    #: its settings, such as "spark.executor.memory"
    conf: Mapping[str, str] = field(default_factory=dict)
    #: the folder where the run's own metrics land as tables; None: nowhere
    land_metrics: str | Path | None = None
    #: the folder that says how wide bolts were in the last run, to begin so; None: none
    learn: str | Path | None = None
    #: give all slots back after so many seconds without a tuple, until input comes; None: never
    scale_to_zero: float | None = None
