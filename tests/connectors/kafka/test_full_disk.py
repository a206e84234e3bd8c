"""A broker whose disk fills up in the midst of a run: it ends itself, and is one that is away until somebody has made room."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import kafka_broker
import pytest
from depth import chosen
from waiting import until

from esault import Topology, run
from esault.sinks import KafkaSink
from esault.sources import Items

#: messages, and bytes of each: 20 MB in all
MESSAGES, LENGTH = 4_000, 5_000


# kafka-python leaves sockets of refused connections to the collector
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.skipif(os.geteuid() != 0, reason="a small disk can be made by root alone")
@pytest.mark.parametrize("guarantee", chosen(["at-least-once", "exactly-once"], ()))
def test_a_broker_that_a_full_disk_ended_is_waited_for_and_has_each_message(guarantee, tmp_path, caplog):
    pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed: pip install 'esault[kafka]'")
    with tempfile.TemporaryDirectory(prefix="kafka-", ignore_cleanup_errors=True) as folder:
        small = Path(folder, "data")
        small.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(small)], check=False).returncode:
            pytest.skip("no small disk can be mounted here")
        try:
            try:
                broker = kafka_broker.Broker(Path(folder), log_index_size_max_bytes="65536")
            except kafka_broker.NotToBeHadError as error:
                pytest.skip(str(error))
            try:
                broker.start()
                _fill(broker, small, guarantee, tmp_path / "state")
            finally:
                broker.stop()
        finally:
            subprocess.run(["umount", str(small)], check=True)
    said = [record.getMessage() for record in caplog.records]
    assert any("waiting until one does" in line for line in said)
    assert any("answers again" in line for line in said)


def _fill(broker, small, guarantee, state):
    topic = broker.topic(2, compression_type="producer")

    def topology():
        t = Topology("fills")
        drawn = random.Random(1)  # what could be compressed would fill nothing
        rows = Items([(f"k{n % 50}", f"{n} {drawn.randbytes(LENGTH).hex()}") for n in range(MESSAGES)])
        t.spout("rows", rows).sink("out", KafkaSink(topic, broker.servers, guarantee=guarantee))
        return t

    ended = []

    def make_room():
        until(lambda: broker._process.poll() is not None, 120)
        ended.append(broker._process.returncode)
        broker.stop()
        time.sleep(
            4
        )  # whoever makes room takes longer than the client, which says it when it has looked for another broker
        subprocess.run(["mount", "-o", "remount,size=200m", str(small)], check=True)
        broker.start()

    mender = threading.Thread(target=make_room)
    mender.start()
    try:
        run(topology, engine="local", checkpoint=0.1, state=str(state))
    finally:
        mender.join()
    assert ended and ended[0] not in (0, -signal.SIGKILL)  # by itself
    numbers = [int(json.loads(message.value()).split()[0]) for message in broker.messages(topic)]
    assert sorted(set(numbers)) == list(range(MESSAGES))
    if guarantee == "exactly-once":
        assert len(numbers) == MESSAGES
        assert broker.open_transactions() == []
