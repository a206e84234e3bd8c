"""The state of a run on Spark in S3, by hadoop-aws and a real server; tables in S3 that it lands and reports on."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import depth
import hadoop_aws
import held
import psutil
import pytest
import s3_numbers
import s3_server
import s3_words

pytestmark = pytest.mark.timeout(900)  # for a machine that has much else to do


@pytest.fixture(scope="module")
def s3() -> Any:
    server = held.server(s3_server, "pyspark", "pyarrow")
    for bucket in ("state", "landed"):
        server.client.create_bucket(Bucket=bucket)
    return server


@depth.deep("0.7 GB of jars; state in another file system is shown by test_spark_path.py, and what S3 says by units")
def test_a_run_dies_and_goes_on_with_other_tasks_and_all_that_it_keeps_in_s3(s3: Any, tmp_path: Path) -> None:
    jars = hadoop_aws.jars()
    if not jars:
        pytest.skip("no hadoop-aws, which is 0.7 GB with Amazon's client: python tests/shared/hadoop_aws.py fetches it")
    done = subprocess.run(
        [sys.executable, s3_words.__file__, str(tmp_path), *map(str, jars)],
        env={**os.environ, **s3.environment},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=880,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["absent"] == [True, False, "first"]
    assert "gone behind the commit" in found["died"]
    assert found["ended"] == ["drained", 2, [[0.0, 3]]]
    good = [line for key, line in enumerate(s3_words.LINES) if key % 100 != 50]
    words = Counter(word for line in good for word in line.split())
    assert sorted(found["reports"]["counts"]) == sorted(map(list, words.items()))
    written = [count for _, count in found["reports"]["words"]]  # by each of the two runs
    assert len(written) == 2 and sum(written) == words.total()
    dead = [json.loads(line) for line in (tmp_path / "dead.0.jsonl").read_text().splitlines()]
    assert sorted(letter["key"] for letter in dead) == [50, 150, 250]
    assert {"spark/layout.json", "spark/ended"} <= {key.removeprefix("words/") for key in s3.keys("state", "words/")}


@depth.deep(
    "0.7 GB of jars, and four JVMs; deaths of a run that keeps its state in a folder are in engine/test_engine.py"
)
@pytest.mark.timeout(1800)
def test_a_command_that_is_killed_goes_on_from_what_is_in_s3(s3: Any, tmp_path: Path, young: dict[str, str]) -> None:
    jars = hadoop_aws.jars()
    if not jars:
        pytest.skip("no hadoop-aws, which is 0.7 GB with Amazon's client: python tests/shared/hadoop_aws.py fetches it")
    command = [sys.executable, "-m", "esault", "run", f"{s3_numbers.__file__}:topology", "--set", f"folder={tmp_path}"]
    command += ["--engine", "spark", "--plain", "--checkpoint", "0.1", "--state", "s3a://state/numbers"]
    command += ["--conf", f"spark.jars={','.join(map(str, jars))}"]

    def start(*more: str) -> subprocess.Popen[bytes]:
        with (tmp_path / "log.txt").open("ab") as log:
            return subprocess.Popen(
                [*command, *more], env={**young, **s3.environment}, stdout=log, stderr=log, cwd=tmp_path
            )

    def killed(key: str, *more: str) -> None:
        """A command that is killed, with all that it has started, as soon as S3 has a key like this that it did not have."""
        before = set(s3.keys("state", "numbers/"))
        run = start(*more)
        below: list[psutil.Process] = []
        try:
            while not any(fnmatch(new, f"numbers/spark/{key}") for new in {*s3.keys("state", "numbers/")} - before):
                assert run.poll() is None, (tmp_path / "log.txt").read_text()[-5000:]
                time.sleep(0.05)
            below = psutil.Process(run.pid).children(recursive=True)
        finally:
            run.kill()
            run.wait()
            for process in below:
                with contextlib.suppress(psutil.Error):
                    process.kill()

    killed("checkpoint/offsets/0", "--parallelism", "sum=2")  # within the first batch
    killed("epochs/*.epoch", "--resume")  # while it is committed
    killed("checkpoint-1/offsets/0", "--resume", "--parallelism", "sum=3")
    (tmp_path / "go").touch()
    with start("--resume") as last:
        assert last.wait() == 0, (tmp_path / "log.txt").read_text()[-5000:]
    wanted: Counter[tuple[int, int]] = Counter()
    sums: Counter[int] = Counter()
    for i in range(s3_numbers.N):
        sums[i % s3_numbers.KEYS] += 1 + i
        wanted[i % s3_numbers.KEYS, sums[i % s3_numbers.KEYS]] += 1
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert Counter((row["key"], row["value"]) for row in rows) == wanted
