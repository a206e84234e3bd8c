"""Kafka: messages a second in and out, beside Kafka's own client in Python; and faults to a run in transactions.

python -m bench.kafka --out DIR [--quick] [--runs N] [--scale X] [--only rates|faults] [--faults N]

It starts a broker of its own (Java; its jars come by mvn), on the same cores. Rates are of one sub-unit, and of two, with messages of
a hundred bytes, from the first row to the last; processor seconds are those of all processes of eSault for a million messages.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.kafka.faults import faults
from bench.kit.arguments import parse
from bench.kit.machine import facts
from bench.kit.result import Bar, write
from bench.workloads.loads import SEED

__all__ = ["main"]

ROOT = Path(__file__).parents[2]
TOPOLOGY = Path(__file__).with_name("topology.py")
MESSAGES, QUICK_MESSAGES = 1_000_000, 20_000
FAULTS, QUICK_FAULTS = 300, 6
#: counts that must be 0
WRONG = ("lost", "doubled", "counted_wrongly", "out_of_order")


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", choices=["rates", "faults"], help="one of the two parts")
    parser.add_argument("--faults", type=int, help=f"how many; {FAULTS} unless with --quick")


def _esault(function: str, *more: str, **params: object) -> float:
    """Seconds of processor of the whole command, and of all processes that it began."""
    given = [part for name, value in params.items() for part in ("--set", f"{name}={value}")]
    asked = [
        sys.executable,
        "-m",
        "esault",
        "run",
        f"{TOPOLOGY}:{function}",
        "--plain",
        "--policy",
        "none",
        *given,
        *more,
    ]
    launcher = [sys.executable, "-m", "bench.real.launcher"]  # it waits for orphans, too: their time counts
    done = subprocess.run([*launcher, *asked], check=False, cwd=ROOT, capture_output=True, text=True, timeout=600)
    said: dict[str, Any] = (
        json.loads(done.stdout) if not done.returncode else {"code": done.returncode, "said": done.stderr}
    )
    if said["code"]:
        raise SystemExit(f"{' '.join(asked)}: {said['said'][-2000:]}")
    return float(said["waited_seconds"])


class Rates:
    """Messages a second, each way in turns."""

    def __init__(self, broker: Any, messages: int) -> None:
        self.broker, self.messages = broker, messages
        self.full = broker.topic(4)
        self._client_writes(self.full)
        self.ways: dict[str, Callable[[], dict[str, float]]] = {
            "in: the client alone": self._client_reads,
            "in: client and json.loads": lambda: self._client_reads(json.loads),
            "in: bytes": lambda: self._reads("bytes", 1),
            "in: JSON": lambda: self._reads("json", 1),
            "in: JSON, two sub-units": lambda: self._reads("json", 2),
            "out: the client alone": lambda: self._client_writes(self.broker.topic(4)),
            "out: at least once": lambda: self._writes("at-least-once"),
            "out: in transactions": lambda: self._writes("exactly-once"),
        }

    def _client_reads(self, loads: Callable[[bytes], object] | None = None) -> dict[str, float]:
        from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

        settings = {"group.id": "bench", "enable.auto.commit": False, "fetch.queue.backoff.ms": 1}
        consumer = Consumer({"bootstrap.servers": self.broker.servers, **settings})
        consumer.assign([TopicPartition(self.full, number, OFFSET_BEGINNING) for number in range(4)])
        seen, first, cpu = 0, 0.0, 0.0
        while seen < self.messages:
            batch = consumer.consume(1000, 1.0)
            if batch and not first:
                first, cpu = time.monotonic(), time.process_time()
            for message in batch:
                if loads is not None:
                    loads(message.value())
            seen += len(batch)
        took, cpu = time.monotonic() - first, time.process_time() - cpu
        consumer.close()
        return self._figures(took, cpu)

    def _client_writes(self, topic: str) -> dict[str, float]:
        from confluent_kafka import Producer

        settings = {"linger.ms": 5, "queue.buffering.max.messages": 1_000_000, "enable.idempotence": True}
        producer = Producer({"bootstrap.servers": self.broker.servers, **settings})
        begun, cpu = time.monotonic(), time.process_time()
        for number in range(self.messages):
            value = json.dumps({"n": number, "text": "x" * 80}) if topic == self.full else f"{number:0100d}"
            producer.produce(topic, value.encode(), key=b"k%d" % (number % 10_000))
            if number % 1000 == 0:
                producer.poll(0)
        producer.flush(120)
        return self._figures(time.monotonic() - begun, time.process_time() - cpu)

    def _reads(self, values: str, parallelism: int) -> dict[str, float]:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder, "rows.txt")
            cpu = _esault(
                "read", servers=self.broker.servers, here=self.full, out=out, values=values, parallelism=parallelism
            )
            seen = [[float(part) for part in path.read_text().split()] for path in Path(folder).iterdir()]
        if (rows := sum(each[0] for each in seen)) != self.messages:
            raise SystemExit(f"{rows:,.0f} rows were read of {self.messages:,}")
        return self._figures(max(each[2] for each in seen) - min(each[1] for each in seen), cpu)

    def _writes(self, guarantee: str) -> dict[str, float]:
        there = self.broker.topic(4)
        with tempfile.TemporaryDirectory() as folder:
            more = ["--report", f"{folder}/report.json"]
            if guarantee == "exactly-once":
                more += ["--checkpoint", "1", "--state", f"{folder}/state"]
            cpu = _esault(
                "write", *more, servers=self.broker.servers, there=there, count=self.messages, guarantee=guarantee
            )
            seconds = json.loads(Path(folder, "report.json").read_text())["seconds"]
        return self._figures(seconds, cpu)

    def _figures(self, seconds: float, cpu: float) -> dict[str, float]:
        return {"per_second": self.messages / seconds, "processor_seconds": cpu / self.messages * 1e6}

    def run(self, runs: int) -> dict[str, dict[str, dict[str, float]]]:
        """Run each way so many times, in turns."""
        found: dict[str, list[dict[str, float]]] = {name: [] for name in self.ways}
        for number in range(runs):
            for name, way in self.ways.items():
                found[name].append(way())
                print(f"  {number + 1} of {runs}: {name}: {found[name][-1]['per_second'] / 1e3:,.0f} k/s", flush=True)
        return {name: {part: _spread([each[part] for each in its]) for part in its[0]} for name, its in found.items()}


def _spread(values: list[float]) -> dict[str, float]:
    return {"median": statistics.median(values), "least": min(values), "most": max(values)}


def _lines(result: dict[str, Any]) -> list[str]:
    lines = []
    for name, its in result.get("rates", {}).items():
        rate, cpu = its["per_second"], its["processor_seconds"]
        spread = f"({rate['least'] / 1e3:,.0f} to {rate['most'] / 1e3:,.0f})"
        lines.append(f"{name:28}{rate['median'] / 1e3:8,.0f} k/s {spread:18}{cpu['median']:6.2f} processor s a million")
    if done := result.get("faults"):
        lines.append(f"{done['faults']:,} faults in {done['seconds'] / 60:.0f} minutes, {done['messages']:,} messages")
        lines += [f"  {count.replace('_', ' ')}: {done[count]:,}" for count in (*WRONG, "transactions_left_open")]
        for kind, seconds in done["by_kind"].items():
            back = f"back, with two checkpoints more, in {statistics.median(seconds):.1f} s (most {max(seconds):.1f})"
            lines.append(f"  {len(seconds):5,}  {kind:34}  {back}")
    return lines


def main() -> None:
    """The bench."""
    arguments = parse(__doc__, _options)
    sys.path.insert(0, str(ROOT / "tests" / "shared"))
    kafka_broker = importlib.import_module("kafka_broker")

    result: dict[str, Any] = {"bench": "kafka", "machine": facts(), "seed": SEED, "broker": kafka_broker.VERSION}
    messages = max(1000, int((QUICK_MESSAGES if arguments.quick else MESSAGES) * arguments.scale))
    try:
        with kafka_broker.running() as broker:
            if arguments.only != "faults":
                result["messages"] = messages
                result["rates"] = Rates(broker, messages).run(arguments.runs or (1 if arguments.quick else 3))
            if arguments.only != "rates":
                result["faults"] = faults(broker, arguments.faults or (QUICK_FAULTS if arguments.quick else FAULTS))
    except kafka_broker.NotToBeHadError as error:
        raise SystemExit(f"there is no broker: {error}") from None
    panels = {
        "messages a second": [
            Bar.of(name, its["per_second"], 1e3, "peer" if "client" in name else "esault")
            for name, its in result.get("rates", {}).items()
        ],
        "seconds until all is well": [
            Bar(kind, statistics.median(seconds), min(seconds), max(seconds), "esault")
            for kind, seconds in result.get("faults", {}).get("by_kind", {}).items()
        ],
    }
    write(
        arguments.out,
        result,
        _lines(result),
        {name: bars for name, bars in panels.items() if bars},
        "thousands; seconds",
    )
    if any(result.get("faults", {}).get(count) for count in WRONG):
        raise SystemExit("something was lost or doubled: see above")


if __name__ == "__main__":
    main()
