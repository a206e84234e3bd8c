"""The expectations of a table: which rows fulfil them, how many do not, and what becomes of those."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from esault.counters import counted as counted_rows
from esault.errors import EsaultError, UsageError
from esault.sinks.landing.schema import Column
from esault.spark.failure import said
from esault.spark.tables.declared import ACTIONS

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

__all__ = ["REASON", "Checked", "ExpectationFailed", "Expectations"]

#: the quarantine's column that says which expectations a row does not fulfil
REASON = Column("_reason", "string", True)
#: with the number of an expectation: the column that says whether it does not hold for a row
_FAILED = "__esault_failed"


@dataclass(frozen=True)
class Checked:
    """The rows that came, and how many of them each expectation did not hold for."""

    rows: int
    failed: Mapping[str, int] = field(default_factory=dict)


class ExpectationFailed(EsaultError):
    """An error: rows came that must not (`expect_all_or_fail`); to try again does not help.

    `checked`: what was found; `expectations`: expectation -> (action, rows that it did not hold for).
    """

    def __init__(
        self, text: str, checked: Checked | None = None, expectations: Mapping[str, tuple[str, int]] | None = None
    ) -> None:
        super().__init__(text)
        self.checked = checked or Checked(0)
        self.expectations = dict(expectations or {})


class Expectations:
    """Those of table `table`: expectation -> (action, condition in SQL)."""

    def __init__(self, table: str, declared: Mapping[str, tuple[str, str]]) -> None:
        self._table = table
        self._said = dict(declared)

    @property
    def quarantines(self) -> bool:
        """Return whether rows are put aside."""
        return any(action == "quarantine" for action, _ in self._said.values())

    def _unmet(self, frame: DataFrame, *actions: str) -> dict[str, SparkColumn]:
        """Tell whether a row fails, by expectation. UsageError for what is no condition on a row."""
        from pyspark.errors import AnalysisException
        from pyspark.sql import functions as f

        made = {}
        for i, (name, (action, condition)) in enumerate(self._said.items()):
            if action not in actions:
                continue
            if f"{_FAILED}{i}" in frame.columns:
                made[name] = f.col(f"{_FAILED}{i}")
                continue
            try:
                failed = ~f.coalesce(f.expr(condition).cast("boolean"), f.lit(False))
                frame.where(failed)
            except AnalysisException as error:
                raise UsageError(
                    f"table {self._table}: expectation {name!r} is no condition on a row ({condition}): {said(error)}"
                ) from None
            made[name] = failed
        return made

    def decided(self, frame: DataFrame) -> DataFrame:
        """The rows with what each expectation says of them. UsageError.

        Kept, they go into the table or the quarantine, one of them, also where a condition asks the clock.
        """
        if REASON.name in frame.columns:
            raise UsageError(
                f"table {self._table}: its quarantine has a column {REASON.name} of its own; rename that of its rows"
            )
        failed = self._unmet(frame, *ACTIONS)
        return frame.withColumns({f"{_FAILED}{i}": one for i, one in enumerate(failed.values())})

    def _plain(self, frame: DataFrame) -> DataFrame:
        return frame.drop(*(f"{_FAILED}{i}" for i in range(len(self._said))))

    def counts(self, frame: DataFrame) -> list[SparkColumn]:
        """Aggregates: the rows, and those that each expectation does not hold for."""
        from pyspark.sql import functions as f

        failed = self._unmet(frame, *ACTIONS)
        return [
            f.count(f.lit(1)).alias("rows"),
            *(f.count_if(one).alias(f"failed{i}") for i, one in enumerate(failed.values())),
        ]

    def checked(self, counted: Mapping[str, Any]) -> Checked:
        """The values of `counts`. ExpectationFailed where a row came that must not."""
        failed = {name: int(counted[f"failed{i}"]) for i, name in enumerate(self._said)}
        checked = Checked(int(counted["rows"]), failed)
        over = [name for name, (action, _) in self._said.items() if action == "fail" and failed[name]]
        if over:
            found = "; ".join(f"{name} ({self._said[name][1]}): {counted_rows(failed[name], 'row')}" for name in over)
            raise ExpectationFailed(
                f"table {self._table}: rows came that must not (expect_all_or_fail): {found}. Nothing was changed. As long as "
                "they are there each run fails: leave them out in the table's function, or expect them otherwise",
                checked,
                self.actions(failed),
            )
        return checked

    def actions(self, failed: Mapping[str, int]) -> dict[str, tuple[str, int]]:
        """Return by expectation what becomes of rows that it does not hold for, and how many these were."""
        return {name: (self._said[name][0], n) for name, n in failed.items()}

    def kept(self, frame: DataFrame) -> DataFrame:
        """The rows that stay in the table."""
        for failed in self._unmet(frame, "drop", "quarantine").values():
            frame = frame.where(~failed)
        return self._plain(frame)

    def aside(self, frame: DataFrame) -> DataFrame:
        """The rows that are put aside, with the reason. Those that are dropped anyway are not among them."""
        from pyspark.sql import functions as f

        failed = self._unmet(frame, "quarantine")
        for dropped in self._unmet(frame, "drop").values():
            frame = frame.where(~dropped)
        reason = f.concat_ws("; ", *(f.when(one, f.lit(name)) for name, one in failed.items()))
        return self._plain(frame.withColumn(REASON.name, reason).where(f.col(REASON.name) != ""))

    def put_aside(self, checked: Checked) -> bool:
        """Return whether any row is."""
        return any(checked.failed[name] for name, (action, _) in self._said.items() if action == "quarantine")
