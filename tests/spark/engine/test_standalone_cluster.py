"""A standalone cluster that is shared: hosts with a /tmp of their own, of which one has another Python, without eSault."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

import esault
from bench.kit.spark_cluster import SparkCluster
from bench.pipelines.clustered import trial_on
from bench.pipelines.trial import KINDS
from bench.spark_faults.__main__ import WRONG
from bench.spark_faults.trial import Trial

sys.path.insert(0, str(Path(__file__).parents[2] / "shared"))
import depth

ROOT = Path(__file__).parents[3]
pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'esault[spark]'")
pytestmark = [
    pytest.mark.timeout(1800),  # for a machine that has much else to do
    pytest.mark.skipif(depth.PROFILE != "deep", reason="six JVMs, and minutes of waiting: make test-deep"),
]

BOLTS = """
from beside.numbers import ONE
from esault import Bolt


class Split(Bolt):
    def open(self, context):
        self.cache = {}  # filled below: kept in a level of its own, as on the other engines

    def process(self, key, value):
        for word in value.split():
            self.cache[word] = self.cache.get(word, 0) + 1
            if word == "dog":
                raise ValueError("no dogs")
            self.emit(word, ONE)


class Count(Bolt):
    def __init__(self):
        self.total = 0

    def process(self, key, value):
        self.total += value

    def finish(self):
        self.emit(self.key, self.total)
"""
TOPOLOGY = """
import bolts
from esault import Topology, by_key, dead_letter, shuffle
from esault.sinks import Collect, JsonLines
from esault.sources import Items


def lines():
    for i in range(50):
        yield i, "the cat sat on the mat"
    yield 50, "dog"


def topology(out: str) -> Topology:
    t = Topology("clustered")
    words = t.spout("lines", Items(lines)).bolt(
        "split", bolts.Split, grouping=shuffle(), parallelism=2, on_error=dead_letter("dead.jsonl")
    )
    counted = words.bolt("count", bolts.Count, grouping=by_key())
    counted.sink("counts", JsonLines(out))
    counted.sink("rows", Collect())
    return t
"""
#: two runs in one session, the second of other code under the same names
SCRIPT = """
import json, sys
from pathlib import Path
from esault import run
from esault.errors import UsageError
from esault.spark import session

master, here = sys.argv[1], Path(sys.argv[2])
sys.path.insert(0, str(here))
from clustered import topology

said = []
with session(master, conf={"spark.cores.max": "2"}) as spark:
    for number in (1, 2):
        report = run(topology, {"out": str(here / f"counts-{number}.jsonl")}, engine="spark")
        said.append({"rows": dict(report.collected["rows"]), "count": report.units["count"].parallelism[0][1]})
        numbers = Path("beside/numbers.py")
        numbers.write_text("ONE = 2  # another version\\n")
    try:
        run(topology, {"out": "/tmp/counts.jsonl"}, engine="spark")
    except UsageError as error:
        said.append(str(error))
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    # not below /tmp, of which each host has its own
    path = Path(tempfile.mkdtemp(prefix="esault-cluster-", dir="/var/tmp"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


def foreign(folder: Path) -> Path:
    """A Python with what Spark needs and nothing of eSault's; of another patch version where the machine has one."""
    system = Path(f"/usr/bin/python{sys.version_info[0]}.{sys.version_info[1]}")
    python = str(system) if system.exists() else sys.executable
    subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    here = Path(next(path for path in sys.path if path.endswith("site-packages")))
    for name in (
        "pyarrow",
        "pyarrow.libs",
        "pandas",
        "pandas.libs",
        "numpy",
        "numpy.libs",
        "dateutil",
        "pytz",
        "six.py",
    ):
        if (here / name).exists():
            (packages / name).symlink_to(here / name)
    return folder / "bin"


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[SparkCluster]:
    pythons = {0: Path(sys.executable).parent, 1: foreign(folder / "foreign")}
    with SparkCluster(folder / "cluster", pythons=pythons) as started:
        yield started
    assert not left(folder), "the cluster, or a command that had it, has left processes"


def left(folder: Path, patience: float = 60.0) -> list[str]:
    """Command lines of processes that work in a folder, or name it. Javas of commands that were killed have a while to see that."""
    end = time.monotonic() + patience
    while (
        found := [line for line in map(named, psutil.process_iter()) if str(folder) in line]
    ) and time.monotonic() < end:
        time.sleep(0.5)
    return found


def named(process: psutil.Process) -> str:
    """Return the command line, the folder and the TMPDIR of a process."""
    try:
        return " ".join([*process.cmdline(), process.cwd(), process.environ().get("TMPDIR", "")])
    except psutil.Error:
        return ""


def on_driver(cluster: SparkCluster, here: Path, *command: str, **environ: str) -> Any:
    (here / "tmp").mkdir(exist_ok=True)
    return subprocess.run(
        [*cluster.prefix, sys.executable, *command],
        cwd=here,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(here / "tmp"), **environ},
        capture_output=True,
        text=True,
        check=False,
    )


def test_runs_in_one_session_on_hosts_with_other_pythons_and_folders(cluster: SparkCluster, folder: Path) -> None:
    here = folder / "my-work"
    (here / "beside").mkdir(parents=True)
    (here / "beside" / "__init__.py").write_text("")
    (here / "beside" / "numbers.py").write_text("ONE = 1\n")
    (here / "bolts.py").write_text(BOLTS)
    (here / "clustered.py").write_text(TOPOLOGY)
    done = on_driver(cluster, here, "-c", SCRIPT, cluster.master, str(here), PYSPARK_PYTHON="python3")
    assert done.returncode == 0, done.stderr
    first, second, refused = json.loads(done.stdout.splitlines()[-1])
    want = {"the": 100, "cat": 50, "sat": 50, "on": 50, "mat": 50}
    assert first == {"rows": want, "count": 2}
    assert second == {"rows": {word: 2 * n for word, n in want.items()}, "count": 2}
    for number, wanted in enumerate((first, second), 1):
        rows = [json.loads(line) for line in (here / f"counts-{number}.jsonl").read_text().splitlines()]
        assert {row["key"]: row["value"] for row in rows} == wanted["rows"]
    # both runs had it once, each under its name
    letters = [json.loads(line) for line in (here / "dead.0.jsonl").read_text().splitlines()]
    assert [(letter["key"], letter["error"]) for letter in letters] == [(50, "ValueError: no dogs")] * 2
    assert "workers lack msgpack, protobuf, sortedcontainers: sent along" in done.stderr
    if cluster.namespaces:
        assert "sink 'counts' writes /tmp/counts.jsonl" in refused and "on storage that all hosts" in refused


LANDED = """
from pathlib import Path
from esault import Topology
from esault.sinks import SparkTable
from esault.sources import Items

expectations = {"sold": {"some pieces": "pieces > 0"}}


def topology() -> Topology:
    t = Topology("shop")
    rows = Items([(what, n) for n in range(-5, 500) for what in ("bread", "milk")])
    t.spout("tills", rows).sink("sold", SparkTable("out/sold", {"what": str, "pieces": int}, "append"))
    return t


def pipeline(tables):
    @tables.table(keys=["what"], merge={"pieces": "sum"})
    def totals(sold):
        return sold.groupBy("what").agg({"pieces": "sum"}).toDF("what", "pieces")


def reports(tables):
    return {"sold": tables["sold"].groupBy("what").count().orderBy("what")}
"""


def test_analyze_has_the_cluster_make_tables_and_reports(cluster: SparkCluster, folder: Path) -> None:
    here = folder / "shop"
    here.mkdir()
    (here / "shop.py").write_text(LANDED)
    done = on_driver(cluster, here, "-m", "esault", "run", "shop.py", "--engine", "local", "--plain")
    assert done.returncode == 0, done.stderr
    options = ("--master", cluster.master, "--conf", "spark.cores.max=2")
    done = on_driver(cluster, here, "-m", "esault", "analyze", "shop.py", *options, PYSPARK_PYTHON="python3")
    assert done.returncode == 0, done.stderr
    assert "quarantine of sold: 12 rows" in done.stdout and "bread    499" in done.stdout
    totals = {row["what"]: row["pieces"] for row in esault.read(here / "out/analytics/shop/tables/totals").to_pylist()}
    assert totals == dict.fromkeys(("bread", "milk"), sum(range(500)))


@pytest.mark.timeout(3600)
def test_analyze_makes_the_tables_of_a_plain_loop_under_ten_kills(cluster: SparkCluster, folder: Path) -> None:
    here = folder / "kills"
    here.mkdir()
    trial = trial_on(cluster, here, 55, 600)  # a seed whose kills come within few commands, and of all kinds
    try:
        found = trial.run(10)
    finally:
        trial.stop()
    assert found["over"] and found["kills"] >= 10
    assert set(found["wrong"].values()) == {0} and len(found["wrong"]) == 11
    # of commands, and of what they work with; rows have landed in between
    assert set(found["by_kind"]) & set(KINDS) and {"an executor", "a worker"} & set(found["by_kind"])
    assert found["landings"] >= 3 and found["commands"] > found["ended"] >= 2


WORDS = """
from esault import Bolt, Topology, by_key
from esault.sinks import JsonLines
from esault.sources import Paced, TextFiles


class Count(Bolt):
    def __init__(self):
        self.total = 0

    def process(self, key, value):
        self.total += 1

    def finish(self):
        self.emit(self.key, self.total)


def topology() -> Topology:
    t = Topology("words")
    lines = t.spout("lines", Paced(TextFiles("words.txt"), 200)).key_by(lambda line: line)
    lines.bolt("count", Count, grouping=by_key()).sink("out", JsonLines("counts.jsonl"))
    return t
"""


def test_the_commands_of_the_page_run_there(cluster: SparkCluster, folder: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "spark-clusters.md").read_text()
    commands = [line.split() for line in page.partition("## YARN")[0].splitlines() if line.startswith("esault run ")]
    assert len(commands) == 2
    here = folder / "words"
    here.mkdir()
    (here / "words.py").write_text(WORDS)
    (here / "words.txt").write_text("".join(f"w{i % 7}\n" for i in range(4000)))
    for _, *command in commands:
        own = [cluster.master if w == "spark://host:7077" else w.replace("/shared", str(here)) for w in command]
        done = on_driver(cluster, here, "-m", "esault", *own, "--plain", PYSPARK_PYTHON="python3")
        assert done.returncode == 0, done.stderr
        assert "Spark's web page: http://" in done.stderr
    rows = [json.loads(line) for line in (here / "counts.jsonl").read_text().splitlines()]
    assert {row["key"]: row["value"] for row in rows} == {f"w{i}": len(range(i, 4000, 7)) for i in range(7)}


def test_workers_and_the_driver_are_killed_and_counts_are_exact(cluster: SparkCluster, folder: Path) -> None:
    (folder / "faults").mkdir()
    trial = Trial(cluster, folder / "faults", 100.0, 7)
    try:
        found = trial.run(3, ["an executor", "a worker", "the driver, then other tasks"])
    finally:
        trial.kill()
    assert {name: found[name] for name in WRONG} == dict.fromkeys(WRONG, 0)
    assert found["numbers"] > 1000 and found["commands"] >= 2
