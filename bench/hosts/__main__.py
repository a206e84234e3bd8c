"""The cost of three hosts and of encryption, and the time for which a lost host is missed.

The same word count on this machine alone and on three nodes beside a driver, each in a network namespace of its own where those can be
made (else on loopback): throughput, latency at a set rate, and every word counted. All four share this machine's cores, so this is the
cost of several hosts and none of their gain. Then a host is killed or cut off while tuples flow, with checkpoints: until the
driver knows, until tuples flow again, and every word counted once.

python -m bench.hosts --out DIR [--quick] [--runs N]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench.hosts.topology import Sentences
from bench.kit.arguments import parse
from bench.kit.cluster import Cluster
from bench.kit.machine import facts
from bench.kit.measure import ROOT, Run, in_turns, spread, summary
from bench.kit.result import Bar, write
from bench.workloads.loads import SEED
from esault.cluster.key import make_key

__all__ = ["main"]

ONE, THREE = "one host", "three hosts"
#: seconds after which a run hangs
LONGEST = 200
#: sentences a second at which latency is measured, and at which hosts are lost
RATE, LOSS_RATE = 3000.0, 2000.0
#: words of a sentence
WORDS_EACH = 10
PARTS = ("links", "throughput", "latency", "loss")
#: bytes of a frame
SIZES = (100, 4096, 65_000)


class _Command:
    """`esault run` of the topology; what it says on the way is kept with the time at which it came."""

    def __init__(self, folder: Path, n: int, cluster: Cluster | None, *options: str, rate: float = 0.0) -> None:
        self.folder, self.n = folder, n
        begins = [] if cluster is None else cluster.prefix
        hosts = [] if cluster is None else ["--hosts", str(folder / "hosts.toml")]
        self._out = folder / f"out-{time.monotonic_ns()}.jsonl"
        self._report = self._out.with_suffix(".report")
        sets = [f"--set={k}={v}" for k, v in {"n": n, "out": self._out, "rate": rate}.items()]
        self.said: list[tuple[float, str]] = []
        self._process = subprocess.Popen(
            [
                *begins,
                sys.executable,
                "-m",
                "esault",
                "run",
                "bench/hosts/topology.py",
                "--plain",
                "--policy",
                "none",
                *hosts,
                *sets,
                "--report",
                str(self._report),
                *options,
            ],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.said.append((time.monotonic(), line.strip()))

    def when(self, *words: str, seconds: float = 60.0) -> float:
        """Return when it said a line with one of these words. Raises RuntimeError where it does not."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for at, line in list(self.said):
                if any(word in line for word in words):
                    return at
            time.sleep(0.005)
        raise RuntimeError(f"it did not say {words} within {seconds:g} s: {[line for _, line in self.said]}")

    def report(self) -> dict[str, Any]:
        """Its report at the end. Raises RuntimeError unless each word was counted as often as it was offered."""
        code = self._process.wait(LONGEST)
        self._reader.join(5)
        if code:
            raise RuntimeError("\n".join(line for _, line in self.said[-20:]))
        spout = Sentences(self.n)
        want: Counter[str] = Counter()
        for i, sentence in enumerate(spout.made):
            times = self.n // 5000 + (i < self.n % 5000)
            for word in sentence.split():
                want[word] += times
        found = {row["key"]: row["value"] for row in map(json.loads, self._out.read_text().splitlines())}
        wrong = [word for word in {**want, **found} if want.get(word, 0) != found.get(word, 0)]
        if wrong:
            raise RuntimeError(
                f"{len(wrong)} words of {len(want)} were not counted as often as they came, such as {wrong[0]}"
            )
        report: dict[str, Any] = json.loads(self._report.read_text())
        return report


def _run(folder: Path, n: int, cluster: Cluster | None, rate: float = 0.0) -> Run:
    report = _Command(folder, n, cluster, rate=rate).report()
    words = report["units"]["count"]["tuples_in"]
    return {"words_per_second": words / report["seconds"], "end_to_end_ms": report["end_to_end_ms"], "words": words}


def _lose(folder: Path, n: int, slots: int, how: str) -> Run:
    """Seconds from the loss of a host until the driver knows, and until tuples flow again."""
    with Cluster(folder, slots) as cluster:
        state = folder / f"state-{time.monotonic_ns()}"
        command = _Command(folder, n, cluster, "--checkpoint", "0.5", "--state", str(state), rate=LOSS_RATE)
        command.when("split x3", seconds=60)
        time.sleep(2.0)
        began = time.monotonic()
        if how == "killed":
            cluster.nodes["b"].kill()
        else:
            cluster.cut("b")
        noticed = command.when("host b is lost") - began
        report = command.report()
    (restored,) = report["restores"]
    return {"noticed_seconds": noticed, "restored_seconds": restored["seconds"], "namespaces": cluster.namespaces}


def _link(folder: Path, kind: str, size: int, frames: int) -> dict[str, float]:
    line = [sys.executable, "-m", "bench.hosts.links", kind, str(size), str(frames), str(folder)]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=LONGEST, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _measure_links(folder: Path, runs: int, frames: int) -> dict[str, Any]:
    make_key(folder / "key")
    links: dict[str, dict[str, list[dict[str, float]]]] = {"unix": {}, "tls": {}}
    for _ in range(runs):
        for size in SIZES:
            for kind, by_size in links.items():
                count = max(1000, frames // 5 if size > 10_000 else frames)
                by_size.setdefault(str(size), []).append(_link(folder, kind, size, count))
    return {
        kind: {
            size: {figure: summary([run[figure] for run in each]) for figure in each[0]}
            for size, each in by_size.items()
        }
        for kind, by_size in links.items()
    }


def _in_turns(folder: Path, runs: int, n: int, rate: float, say: Callable[[Run], str]) -> tuple[dict[str, Any], bool]:
    """Runs on one host and on three; whether those had namespaces."""
    with Cluster(folder, 4) as cluster:
        calls = {ONE: lambda: _run(folder, n, None, rate), THREE: lambda: _run(folder, n, cluster, rate)}
        return in_turns(runs, calls, say), cluster.namespaces


def main() -> None:
    """See the module."""
    arguments = parse(
        __doc__,
        lambda p: p.add_argument("--only", action="append", choices=PARTS, help="of the four parts; may be repeated"),
    )
    parts = arguments.only or PARTS
    runs = arguments.runs or (1 if arguments.quick else 3)
    scale = arguments.scale * (0.1 if arguments.quick else 1.0)
    full, paced = (max(1000, int(n * scale)) for n in (200_000, 30_000))
    lost = max(14_000, int(24_000 * scale))  # a host is lost after two seconds, and must be missed by then
    result: dict[str, Any] = {"bench": "hosts", "machine": facts(), "seed": SEED, "runs": runs}
    with tempfile.TemporaryDirectory() as name:

        def folder(part: str) -> Path:
            made = Path(name) / part
            made.mkdir()
            return made

        if "links" in parts:
            result["links"] = _measure_links(folder("links"), runs, int(100_000 * scale))
        if "throughput" in parts:
            found, result["namespaces"] = _in_turns(
                folder("throughput"), runs, full, 0.0, lambda run: f"{run['words_per_second']:,.0f} words/s"
            )
            result["throughput"] = {
                each: {"words_per_second": summary([run["words_per_second"] for run in of]), "runs": of}
                for each, of in found.items()
            }
        if "latency" in parts:
            found, result["namespaces"] = _in_turns(
                folder("latency"), runs, paced, RATE, lambda run: f"p50 {run['end_to_end_ms']['p50']:.2f} ms"
            )
            result["latency"] = {
                each: {
                    "words_per_second": RATE * WORDS_EACH,
                    **{f"{q}_ms": summary([run["end_to_end_ms"][q] for run in of]) for q in ("p50", "p99")},
                    "runs": of,
                }
                for each, of in found.items()
            }
        if "loss" in parts:
            losses: dict[str, list[Run]] = {"killed": [], "cut off": []}
            for turn in range(runs):
                for how, each in losses.items():
                    each.append(_lose(folder(f"{how}-{turn}"), lost, 6, how))
                    print(f"  {how}: noticed after {each[-1]['noticed_seconds']:.2f} s", flush=True)
            result["namespaces"] = losses["killed"][0]["namespaces"]
            result["loss"] = {
                how: {f: summary([run[f] for run in each]) for f in ("noticed_seconds", "restored_seconds")}
                for how, each in losses.items()
            }
    lines, panels = _told(result)
    write(arguments.out, result, lines, panels, "see title")


def _told(result: dict[str, Any]) -> tuple[list[str], dict[str, list[Bar]]]:
    def of(figure: dict[str, float], digits: int) -> str:
        return spread(figure, f",.{digits}f")

    bar = partial(Bar.of, kind="esault")

    where = "network namespaces" if result.get("namespaces") else "loopback: no namespaces were made"
    lines = [f"three hosts are {where}; all share {result['machine']['cores']} cores; median (least to most)", ""]
    for name, each in result.get("throughput", {}).items():
        lines.append(f"throughput, {name}: {of(each['words_per_second'], 0)} words/s")
    for name, each in result.get("latency", {}).items():
        lines.append(
            f"latency at {each['words_per_second']:,.0f} words/s, {name}: p50 {of(each['p50_ms'], 2)} ms, p99 {of(each['p99_ms'], 2)} ms"
        )
    for size in map(str, SIZES):
        for kind, by_size in result.get("links", {}).items():
            found = by_size[size]
            lines.append(
                f"frames of {size} bytes, {kind}: sender {of(found['sender_us'], 1)} us, receiver {of(found['receiver_us'], 1)} us of "
                f"processor each, {of(found['frames_per_second'], 0)} a second"
            )
    for how, each in result.get("loss", {}).items():
        lines.append(
            f"a host {how}: noticed after {of(each['noticed_seconds'], 2)} s, all back after {of(each['restored_seconds'], 2)} s more"
        )
    panels = {
        "words a second": [bar(n, each["words_per_second"]) for n, each in result.get("throughput", {}).items()],
        "p99 in ms": [bar(n, each["p99_ms"]) for n, each in result.get("latency", {}).items()],
        "seconds to notice and go back": [
            bar(f"{how}, {f.partition('_')[0]}", each[f]) for how, each in result.get("loss", {}).items() for f in each
        ],
    }
    return lines, {title: bars for title, bars in panels.items() if bars} or {"nothing": []}


if __name__ == "__main__":
    main()
