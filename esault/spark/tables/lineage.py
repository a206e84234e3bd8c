"""Lineage as events of OpenLineage, a line of JSON each, in `lineage.jsonl` beside the tables.

Source: openlineage.io/spec/2-0-2. A `START` and a `COMPLETE` or `FAIL` for each job that did something; datasets are the
tables' folders, with columns, rows, and what expectations said. Any collector takes them: POST each line to its
`/api/v1/lineage`.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from esault.errors import SinkError
from esault.object_store.stored_object import is_url
from esault.sinks.landing import table_log
from esault.spark.jobs import Watcher
from esault.spark.tables.history import append_line
from esault.spark.tables.step import Updated
from esault.version import VERSION

__all__ = ["Lineage"]

_SPEC = "https://openlineage.io/spec"
_PRODUCER = f"https://pypi.org/project/esault/{VERSION}"


class Lineage(Watcher):
    """Writes events of the pipeline `name` in folder `into`. `jobs`: job -> folders that it reads, folders that it writes."""

    def __init__(
        self,
        name: str,
        into: str,
        jobs: Mapping[str, tuple[Sequence[str], Sequence[str]]],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._name, self._now = name, now
        self._jobs: dict[str, tuple[Sequence[str], Callable[[], Sequence[str]]]] = {}
        for job, (reads, writes) in jobs.items():
            self.add(job, reads, lambda writes=writes: writes)  # type: ignore[misc]
        self._path = os.path.join(into, "lineage.jsonl")

    def add(self, job: str, reads: Sequence[str], writes: Callable[[], Sequence[str]]) -> None:
        """Write events of a job, too, of which it is known when it is over which folders it writes."""
        self._jobs[job] = reads, writes

    def ended(self, job: str, outcome: Any | None, seconds: float, error: BaseException | None) -> None:
        """`job` is over."""
        if job not in self._jobs or (outcome is None and error is None):
            return
        reads, writes = self._jobs[job]
        over = self._now()
        event = {
            "run": {"runId": str(uuid.uuid4()), "facets": {} if error is None else {"errorMessage": _error(error)}},
            "job": {"namespace": "esault", "name": f"{self._name}.{job}"},
            "inputs": [_dataset(folder) for folder in reads],
            "outputs": [_dataset(folder, outcome if i == 0 else None) for i, folder in enumerate(writes())],
            "producer": _PRODUCER,
            "schemaURL": f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent",
        }
        for kind, moment in (("START", over - seconds), ("FAIL" if error else "COMPLETE", over)):
            at = datetime.fromtimestamp(moment, timezone.utc).isoformat(timespec="milliseconds")
            append_line(self._path, {"eventType": kind, "eventTime": at, **event})


def _facet(name: str, version: str, **members: Any) -> dict[str, Any]:
    return {
        "_producer": _PRODUCER,
        "_schemaURL": f"{_SPEC}/facets/{version}/{name}.json#/$defs/{name}",
        **members,
    }


def _error(error: BaseException) -> dict[str, Any]:
    said = f"{type(error).__name__}: {error}"
    return _facet("ErrorMessageRunFacet", "1-0-1", message=said, programmingLanguage="PYTHON")


def _dataset(folder: str, outcome: Any | None = None) -> dict[str, Any]:
    namespace, name = "file", os.path.abspath(folder)
    if is_url(folder):
        bucket, _, name = folder.rpartition("://")[2].partition("/")
        namespace = f"{folder.partition('://')[0]}://{bucket}"
    made: dict[str, Any] = {"namespace": namespace, "name": name, "facets": {}}
    try:
        state = table_log(folder).state
    except SinkError:
        return made  # not made yet
    fields = [{"name": column.name, "type": column.type} for column in state.schema]
    made["facets"]["schema"] = _facet("SchemaDatasetFacet", "1-1-1", fields=fields)
    made["facets"]["version"] = _facet("DatasetVersionDatasetFacet", "1-0-1", datasetVersion=str(state.version))
    if isinstance(outcome, Updated):
        rows = _facet("OutputStatisticsOutputDatasetFacet", "1-0-2", rowCount=outcome.written)
        made["outputFacets"] = {"outputStatistics": rows}
        if outcome.expectations:
            asserted = [{"assertion": n, "success": not bad} for n, (_, bad) in outcome.expectations.items()]
            made["facets"]["dataQualityAssertions"] = _facet(
                "DataQualityAssertionsDatasetFacet", "1-0-1", assertions=asserted
            )
    return made
