"""From a bucket of S3: scaled live, killed, the store away for seconds, the run killed and resumed; each line counts once."""

from __future__ import annotations

import gzip
import io
import json
from collections import Counter
from pathlib import Path

import from_s3
import held
import pyarrow.parquet as pq
import pytest
import s3_server
from tcp_proxy import Proxy
from test_acknowledged import kill_run

from esault.sinks.landing import parts

pytestmark = pytest.mark.slow
PLACE = f"{Path(from_s3.__file__)}:topology"
OPTIONS = ("--checkpoint", "0.2", "--policy", "none")
LINES = 500


@pytest.fixture
def server(monkeypatch):
    found = held.server(s3_server)
    found.forget()
    for name, value in s3_server.KEYS.items():
        monkeypatch.setenv(name, value)
    found.client.create_bucket(Bucket="bucket")
    return found


@pytest.fixture
def door(server):
    found = Proxy(server.port)
    found.open()
    yield found
    found.shut()


def test_each_line_of_a_bucket_counts_once(command, server, door):
    wanted: list[str] = []
    read: dict[str, list[str]] = {}

    def more(objects=4):
        for _ in range(objects):
            number = len(wanted) // LINES
            rows = [f"f{number}-{line}" for line in range(LINES)]
            data = "".join(f"{row}\n" for row in rows).encode()
            if number % 2:
                server.put("bucket", f"in/{number}.gz", gzip.compress(data))
            else:
                server.put("bucket", f"in/{number}.txt", data)
            wanted.extend(rows)

    def landed() -> list[str]:
        for key in server.keys("bucket", "out/2"):
            if key not in read:
                read[key] = [json.loads(line)["value"] for line in server.body("bucket", key).splitlines()]
        return [value for values in read.values() for value in values]

    def all_landed():
        return len(landed()) >= len(wanted)

    endpoint = f"http://127.0.0.1:{door.port}"
    more()
    command.start(PLACE, *OPTIONS, endpoint=endpoint)
    command.running()
    command.until(lambda: command.scaled("lines", 3))
    more()
    command.until(all_landed)
    more()
    command.processes("lines/")[0].kill()
    command.until(lambda: command.status().get("restores") == 1 and command.status().get("phase") == "running")
    command.until(all_landed)
    more()
    command.processes("ordered/")[0].kill()
    command.until(lambda: command.status().get("restores") == 2 and command.status().get("phase") == "running")
    door.shut()
    more()
    command.until(lambda: command.scaled("lines", 1))
    door.open()
    more()
    command.until(all_landed)
    more()
    kill_run(command)
    more()
    command.start(PLACE, *OPTIONS, "--resume", "--parallelism", "lines=2", endpoint=endpoint)
    command.running()
    command.until(all_landed)
    code, _, err = command.stop()
    assert code == 0, err
    assert Counter(landed()) == Counter(wanted)
    visible = parts("s3://bucket/table", storage_options={"endpoint_url": server.url})
    files = [server.body("bucket", part.removeprefix("s3://bucket/")) for part in visible]
    table = [line for file in files for line in pq.read_table(io.BytesIO(file))["line"].to_pylist()]
    assert Counter(table) == Counter(wanted)
    # A stopped run may go on: what says that its commits are done stays until then. No rows stay behind.
    beside = set(server.keys("bucket", "out/")) - set(read)
    assert all(key.startswith("out/.staged/") and key.endswith(".done") for key in beside), beside
    assert all(not server.body("bucket", key) for key in beside)
