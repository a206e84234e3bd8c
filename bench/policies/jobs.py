"""Single runs in two or more processes, each a line of JSON in a file as soon as it is over: what was stopped goes on from there."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

__all__ = ["Job", "jobs", "kept", "run_jobs"]


@dataclass(frozen=True)
class Job:
    """One run."""

    load: str
    model: str
    #: one of `POLICIES` or `FIXED`, or as on the command line
    policy: str
    seed: int
    #: of the load's time, from its beginning
    share: float = 1.0


def jobs(
    loads: Sequence[str], models: Sequence[str], policies: Sequence[str], seeds: Sequence[int], share: float = 1.0
) -> Iterator[Job]:
    """All of them; those of one load together."""
    every = itertools.product(loads, models, policies, seeds)
    return (Job(*each, share) for each in every)


def kept(file: Path) -> dict[Job, dict[str, Any]]:
    """Job -> its row, of those that are over. A line that was not written to its end is cut off."""
    if not file.is_file():
        return {}
    text = file.read_text()
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        file.write_text(whole)
    return {_key(row): row for row in map(json.loads, whole.splitlines())}


def _key(row: Mapping[str, Any]) -> Job:
    return Job(row["load"], row["model"], row["policy"], row["seed"], row["share"])


def run_jobs(
    todo: Sequence[Job],
    figures: Callable[[Job], dict[str, Any]],
    file: Path,
    done: dict[Job, dict[str, Any]],
    told: Callable[[int, int, Job], None],
) -> None:
    """Run those that `done` has no row of: each row goes to the end of `file`, and into `done`.

    `told` hears of each: how many are over, of how many, and which. Where it or a run raises, those that have not begun do not.
    """
    left = [job for job in dict.fromkeys(todo) if job not in done]
    with ProcessPoolExecutor(max(1, len(os.sched_getaffinity(0)))) as pool, file.open("a") as out:
        try:
            begun = {pool.submit(figures, job): job for job in left}
            for i, future in enumerate(as_completed(begun), 1):
                job = begun[future]
                done[job] = {**asdict(job), **future.result()}
                out.write(json.dumps(done[job]) + "\n")
                out.flush()
                told(i, len(left), job)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
