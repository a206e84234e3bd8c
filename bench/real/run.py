"""One run of a kind of work on an engine: the command that a user would write, and what it cost."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.kit.measure import Run, missing
from bench.real.workloads import Pairs, Workload, difference

__all__ = ["ESAULT", "PLAIN", "DifferenceError", "Work", "is_ours", "made"]

ROOT = Path(__file__).parents[2]
ESAULT, PLAIN = "esault", "plain loop"
#: seconds after which a run hangs
LONGEST = 900.0


def is_ours(engine: str) -> bool:
    """Return whether it is eSault, in whatever setting."""
    return engine.startswith(ESAULT)


def _setting(engine: str) -> list[str]:
    """Return the options of `esault run` behind the comma of `esault, none count=2`: a policy, and widths of units."""
    words = engine.partition(", ")[2].split()
    return [part for word in words for part in ("--parallelism" if "=" in word else "--policy", word)]


class DifferenceError(RuntimeError):
    """An engine that puts out other rows than the plain loop."""


@contextlib.contextmanager
def made(workload: Workload, share: float) -> Iterator[Work]:
    """Yield the work with its data, which are there for as long; none are made where it cannot run."""
    with tempfile.TemporaryDirectory(prefix="esault-real-") as folder:
        data = Path(folder, "input")
        data.mkdir()
        count = 0 if workload.missing() else workload.make(data, share)
        print(f"{workload.name}: {workload.title}, {count:,} {workload.unit}", flush=True)
        yield Work(workload, data, count, share)


@dataclass(frozen=True)
class Work:
    """A workload with its data in a folder, `count` rows of it, a `share` of the full size."""

    workload: Workload
    data: Path
    count: int
    share: float

    @property
    def engines(self) -> dict[str, str | None]:
        """The engines by name, and why one cannot run."""
        if why := self.workload.missing():
            return dict.fromkeys((ESAULT, PLAIN), why)
        without = missing("bytewax")
        ours = [ESAULT, *([f"{ESAULT}, {self.workload.wider}"] if self.workload.wider else [])]
        return {**dict.fromkeys(ours), **dict.fromkeys(dict(self.workload.bytewax), without), PLAIN: None}

    def command(self, engine: str, out: Path, check: bool) -> list[str]:
        """As it is started."""
        if is_ours(engine):
            given = self.workload.esault(self.data, out, check, self.count)
            return [sys.executable, "-m", "esault", "run", *given, *_setting(engine), "--plain"]
        module = "bench.real.plain" if engine == PLAIN else "bench.real.bytewax_flows"
        more = dict(self.workload.bytewax).get(engine, ())
        command = [sys.executable, "-m", module, self.workload.name, "--data", str(self.data), "--out", str(out), *more]
        return [*command, "--check"] if check else command

    def measured(self, engine: str) -> Run:
        """Times and the processors' time of a run; its rows are counted. Raises RuntimeError when it fails."""
        with self._ran(engine, False, False) as (cost, out):
            return self._figures(cost, out)

    def checked(self, engine: str) -> tuple[Run, list[Pairs]]:
        """Memory of a run, and all rows that came out of it. No run to take times from."""
        with self._ran(engine, True, True) as (cost, out):
            return self._figures(cost, out), self.workload.rows(out)

    def compare(self, engine: str, right: list[Pairs], found: list[Pairs]) -> None:
        """Raises DifferenceError where an engine's rows are not those of the plain loop."""
        for wanted, got in zip(right, found):
            if wrong := difference(self.workload.equal, wanted, got):
                raise DifferenceError(f"{self.workload.name}: {engine} differs from the {PLAIN}: {wrong}")

    @contextlib.contextmanager
    def _ran(self, engine: str, weigh: bool, check: bool) -> Iterator[tuple[Run, Path]]:
        """Yield what the run cost, and the folder with what it wrote, for as long as that is there."""
        folder = Path(tempfile.mkdtemp(prefix="real-", dir=self.data.parent))
        try:
            command = self.command(engine, folder / "out", check)
            launcher = [sys.executable, "-m", "bench.real.launcher", *(["--weigh"] if weigh else []), *command]
            yield _launched(launcher, f"{self.workload.name} on {engine}"), folder / "out"
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _figures(self, cost: Run, out: Path) -> Run:
        came = self.workload.times(out)
        took = cost["waited_seconds"]
        if cost["seen_seconds"] is not None and took < 0.9 * cost["seen_seconds"]:
            raise RuntimeError(
                f"{self.workload.name}: {took:.2f} s of processors' time were waited for, and {cost['seen_seconds']:.2f} "
                "s were seen: a process that did not wait for its children has lost theirs"
            )
        # What came with the first row, or had to come before it, was done by then.
        timed = self.count * (1 - self.workload.before_first) * (1 - came["first_rows"] / came["rows"])
        return {
            "rows": came["rows"],
            "rows_per_second": timed / max(1e-3, came["last"] - came["first"]),
            "whole_seconds": cost["ended"] - cost["begun"],
            "processor_seconds_per_million": took / self.count * 1e6,
            "first_row_seconds": came["first"] - cost["begun"],
            "prompt_seconds": cost["ended"] - came["last"],
            "processor_seconds": took,
            "processes": cost["processes"],
            "pss_mib": cost["pss_mib"],
        }


def _launched(command: list[str], name: str) -> Run:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), environment.get("PYTHONPATH")]))
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        out, _ = process.communicate(timeout=LONGEST)
    except BaseException as error:
        # The launcher tells its command, waits for it and ends what is left; a second signal ends a command at once.
        for _ in range(3):
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=10)
                break
        if isinstance(error, subprocess.TimeoutExpired):
            raise RuntimeError(f"{name} did not end within {LONGEST:g} s") from None
        raise
    if process.returncode:
        raise RuntimeError(f"{name}: the launcher failed")
    cost: Run = json.loads(out.splitlines()[-1])
    if cost["code"]:
        raise RuntimeError(f"{name} failed, with {cost['code']}:\n{cost['said'].strip()[-4000:]}")
    if cost["left"]:
        raise RuntimeError(f"{name}: processes {cost['left']} went on after the command had ended")
    return cost
