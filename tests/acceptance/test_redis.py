"""From streams of Redis to a stream: scaled live, killed, the server killed, the run killed and resumed; each entry counts once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import redis_server
import through_redis
from test_acknowledged import kill_run

pytestmark = pytest.mark.slow
PLACE = f"{Path(through_redis.__file__)}:topology"
OPTIONS = ("--checkpoint", "0.2", "--policy", "none")
#: a word stays in its stream, so that its order can be checked
STREAMS, WORDS = 4, 5


@pytest.fixture
def server():
    pytest.importorskip("redis", reason="redis-py is not installed: pip install 'esault[redis]'")
    try:
        with redis_server.running() as found:
            yield found
    except redis_server.NotToBeHadError as error:
        pytest.skip(str(error))


def test_each_entry_counts_once(command, server):
    sent: Counter[str] = Counter()
    number = 0

    def more(streams=range(STREAMS)):
        nonlocal number
        with server.client.pipeline() as pipeline:
            for _ in range(1000):
                stream = streams[number % len(streams)]
                word = f"w{stream}.{number % WORDS}"
                pipeline.xadd(f"in:{stream}", {"word": word, "number": number})
                sent[word] += 1
                number += 1
            pipeline.execute()

    def landed():
        return server.client.xlen("out")

    def all_landed():
        return landed() >= number

    more()
    command.start(PLACE, *OPTIONS, url=server.url)
    command.running()
    command.until(lambda: command.scaled("entries", 3))
    command.until(lambda: command.scaled("count", 3))
    more()
    command.processes("entries/")[0].kill()
    command.until(lambda: command.status().get("restores") == 1 and command.status().get("phase") == "running")
    more()
    command.processes("count/")[0].kill()
    command.until(lambda: command.status().get("restores") == 2 and command.status().get("phase") == "running")
    more()
    command.until(all_landed)
    more()
    server.stop()
    server.start()
    command.until(lambda: command.scaled("entries", 1))
    more()
    command.until(all_landed)
    more()
    kill_run(command)
    more()
    command.start(PLACE, *OPTIONS, "--resume", "--parallelism", "entries=2", url=server.url)
    command.running()
    more(range(STREAMS, STREAMS + 1))
    command.until(all_landed)
    code, _, err = command.stop()
    assert code == 0, err
    found = server.entries("out")
    assert Counter(int(fields["number"]) for fields in found) == Counter(range(number))
    assert all(fields["in_order"] == "1" for fields in found)
    counted = Counter[str]()
    for fields in found:
        counted[fields["word"]] = max(counted[fields["word"]], int(fields["count"]))
    assert counted == sent
    keys = {name for name in server.client.keys("esault:*") if server.client.type(name) == "list"}
    assert {name.rpartition(":")[2] for name in keys} == {"moved"}, "nothing that was staged stays behind"
