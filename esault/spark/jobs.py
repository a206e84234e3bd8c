"""The jobs of a pipeline, what a topology file says of them, what they are told to, and what comes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from esault.errors import SinkError
from esault.sinks.landing.lock import HeldError
from esault.spark.catalog import Registered
from esault.spark.clean import Cleaned
from esault.spark.report import ReportTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Busy", "Job", "NotLanded", "Outcome", "Rules", "Say", "Step", "Watcher"]

Say = Callable[[str], None]
Reports = Callable[[dict[str, "DataFrame"]], Mapping[str, "DataFrame"]]


@dataclass(frozen=True)
class Job:
    """One job of the graph."""

    name: str
    #: names of the jobs that come before it
    needs: tuple[str, ...]
    reads: str
    #: in the pipeline's folder
    writes: str


class Busy(HeldError):
    """Another analysis writes into the pipeline's folder just now."""


class NotLanded(SinkError):
    """No table has rows yet."""


class Step(Protocol):
    """A job of another kind, which makes one table, behind those that make clean tables; see `tables.step`."""

    name: str
    table_name: str
    path: str
    #: folders of the tables that it writes besides
    beside: Sequence[str]
    #: the tables that it reads, by name
    reads_tables: Sequence[str]
    reads: str
    writes: str
    comment: str
    #: whether it puts rows aside, into a table of its own
    quarantines: bool

    def run(self, spark: Callable[[], SparkSession], say: Say, full: bool = False) -> Any | None:
        """Do what is to be done; None when that was nothing."""
        ...

    def todo(self) -> str:
        """Say in words what it would do now."""
        ...


class Watcher:
    """One who is told what jobs do; does nothing with it."""

    def began(self, job: str) -> None:
        """`job` begins."""

    def ended(self, job: str, outcome: Any | None, seconds: float, error: BaseException | None) -> None:
        """`job` is over; without an outcome there was nothing to do, or an error."""


@dataclass(frozen=True)
class Rules:
    """The rules of a topology file for its tables."""

    #: makes DataFrames by name of the clean tables by name; None: what can be said of any table
    reports: Reports | None = None
    #: table -> what a row must fulfil, in SQL, by what one that does not is said to lack
    expectations: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    #: table -> columns, or "date", whose values are folders
    partition_by: Mapping[str, Sequence[str]] = field(default_factory=dict)
    #: changes when the code of the reports does
    code: str = ""


@dataclass
class Outcome:
    """The outcome of a run of the pipeline."""

    #: by job, in the order in which they ran; None: there was nothing to do
    cleaned: dict[str, Cleaned | None] = field(default_factory=dict)
    #: by table, of the jobs of `steps`
    updated: dict[str, Any | None] = field(default_factory=dict)
    reports: dict[str, ReportTable] = field(default_factory=dict)
    #: table -> rows by reason, of all that stands in its quarantine
    quarantined: dict[str, dict[str, int]] = field(default_factory=dict)
    #: whether the reports were made anew
    reported: bool = False
    #: what the catalog shows now
    registered: list[Registered] = field(default_factory=list)
