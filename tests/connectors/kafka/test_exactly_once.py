"""Transactions that are committed with checkpoints: by whom ever, once, and never what does not belong to one."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from esault.connectors.kafka.transactions import Coordinator
from esault.errors import SinkError
from esault.flow.send.sink_call import waited
from esault.sinks import KafkaSink
from esault.testing.contract import check_sink
from esault.topology.context import Context
from esault.topology.sink import Row, RunInfo

_OPEN: list[KafkaSink] = []


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    """Clients of kafka-python go on connecting in a thread of theirs until they are closed."""
    yield
    while _OPEN:
        _OPEN.pop().end(True)


def sink_of(broker, topic, lineage="folder-1", **options):
    sink = KafkaSink(topic, broker.servers, guarantee="exactly-once", **options)
    sink.open(Context("out", run="run-1", lineage=lineage))
    _OPEN.append(sink)
    return sink


def write(sink, *numbers):
    waited(sink.write([Row(f"k{number % 3}", number, 0.0) for number in numbers]), None)


def prepared(sink, epoch):
    return waited(sink.prepare(epoch), None)


def committed(sink, epoch, handle):
    waited(sink.commit(epoch, handle), None)


def seen(broker, topic):
    return sorted(int(message.value()) for message in broker.messages(topic))


class TestContract:
    def test_a_sink_with_transactions_keeps_the_contract_of_sinks(self, broker):
        def topic(place):
            return f"{place.parent.name}-{place.name}"

        def make(place):
            return KafkaSink(topic(place), broker.servers, partitions=2, guarantee="exactly-once")

        def read(place):
            return [(m.key().decode(), json.loads(m.value())) for m in broker.messages(topic(place))]

        assert check_sink(make, read) >= 7
        assert broker.open_transactions() == []


class TestTransactions:
    def test_one_that_the_broker_gave_up_fails_loudly_when_it_is_committed(self, broker):
        topic = broker.topic(2)
        sink = sink_of(broker, topic, transaction_timeout=5)  # long enough for a busy machine
        write(sink, 1, 2, 3)
        handle = prepared(sink, 1)
        while broker.open_transactions():
            time.sleep(0.05)
        with pytest.raises(SinkError, match=r"rows are lost.*transaction_timeout"):
            committed(sink, 1, handle)
        assert seen(broker, topic) == []

    def test_one_that_the_broker_gave_up_before_its_checkpoint_says_how_to_go_on(self, broker):
        topic = broker.topic(2)
        sink = sink_of(broker, topic, transaction_timeout=1)
        write(sink, 1, 2, 3)
        sink._outbox._outbox.flush()
        while broker.open_transactions():
            time.sleep(0.05)
        with pytest.raises(SinkError, match=r"--resume goes on.*transaction_timeout"):
            prepared(sink, 1)
        assert seen(broker, topic) == []

    def test_one_that_the_broker_has_forgotten_is_judged_by_its_first_message(self, broker):
        topic = broker.topic(2)
        sink = sink_of(broker, topic)
        write(sink, 1, 2, 3)
        (first,) = prepared(sink, 1)
        committed(sink, 1, (first,))
        forgotten = ("esault-unknown", *first[1:])
        committed(sink, 1, (forgotten,))
        write(sink, 4)
        (aborted,) = prepared(sink, 2)
        other = KafkaSink(topic, broker.servers, guarantee="exactly-once")
        other.begin(RunInfo("run-2", "t", "out", False, "folder-1"))
        other.forget_staged(())
        with pytest.raises(SinkError, match="forgotten"):
            committed(sink, 2, (("esault-unknown", *aborted[1:]),))
        assert seen(broker, topic) == [1, 2, 3]

    def test_only_those_of_the_same_folder_and_sink_are_aborted(self, broker):
        topic = broker.topic()
        mine, other = sink_of(broker, topic), sink_of(broker, topic, lineage="folder-2")
        write(mine, 1)
        write(other, 2)
        prepared(mine, 1)
        handle = prepared(other, 1)
        driver = KafkaSink(topic, broker.servers, guarantee="exactly-once")
        _OPEN.append(driver)
        driver.begin(RunInfo("run-2", "t", "out", False, "folder-1"))
        driver.forget_staged(())
        committed(other, 1, handle)
        assert seen(broker, topic) == [2]

    def test_what_was_not_prepared_is_aborted_when_a_sink_closes(self, broker):
        topic = broker.topic()
        stopped, other = sink_of(broker, topic), sink_of(broker, topic, lineage="folder-2")
        write(stopped, 1, 2)
        stopped.close()
        write(other, 3)
        committed(other, 1, prepared(other, 1))
        assert seen(broker, topic) == [3]  # readers would wait for the first transaction until its time is over

    def test_a_broker_that_is_away_does_not_keep_a_sink_from_closing(self):
        (sink,) = [KafkaSink("numbers", "127.0.0.1:1", guarantee="exactly-once")]
        sink.open(Context("out", run="run-1", lineage="folder-1"))
        given = sink.write([Row("k", 1, 0.0)])
        began = time.monotonic()
        sink.close()
        assert time.monotonic() - began < 30 and not given.done()

    def test_a_producer_that_is_shut_out_is_a_failure_that_passes(self, broker):
        topic = broker.topic(2)
        sink = sink_of(broker, topic)
        write(sink, 1, 2, 3)
        sink._outbox.flush()
        other = KafkaSink(topic, broker.servers, guarantee="exactly-once")
        _OPEN.append(other)
        other.begin(RunInfo("run-2", "t", "out", False, "folder-1"))
        other.forget_staged(())
        with pytest.raises(SinkError, match="sends these rows again") as raised:
            write(sink, 4, 5, 6)
            prepared(sink, 1)
        assert isinstance(raised.value.__cause__, ConnectionError)  # a restart follows, with new transactions
        sink.open(sink.context)
        write(sink, 1, 2, 3, 4, 5, 6)
        committed(sink, 1, prepared(sink, 1))
        assert seen(broker, topic) == [1, 2, 3, 4, 5, 6]

    def test_of_a_transaction_with_a_message_that_is_too_large_that_is_said(self, broker):
        topic = broker.topic(4, max_message_bytes="2000")
        sink = sink_of(broker, topic, value_serializer="text", config={"compression.type": "none", "linger.ms": 100})
        with pytest.raises(SinkError, match="too large.*max.message.bytes") as raised:
            write(sink, *range(100))
            waited(sink.write([Row("large", "x" * 5_000, 0.0)]), None)
            write(sink, *range(100))
            prepared(sink, 1)
        assert raised.value.__cause__ is None

    def test_exactly_once_without_checkpoints_is_refused(self, broker):
        sink = KafkaSink("t", broker.servers, guarantee="exactly-once")
        with pytest.raises(SinkError, match="--checkpoint"):
            sink.begin(RunInfo("run-1", "t", "out", lineage="run-1"))

    # sockets of refused connections, which kafka-python leaves to the collector
    @pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
    def test_a_coordinator_that_is_away_is_waited_for(self, broker):
        topic = broker.topic()
        sink = sink_of(broker, topic)
        write(sink, 1)
        handle = prepared(sink, 1)
        broker.stop()
        broker.start()
        committed(sink, 1, handle)
        assert seen(broker, topic) == [1]

    def test_a_transaction_longer_than_the_broker_allows_is_refused_with_the_remedy(self, broker):
        sink = sink_of(broker, broker.topic(), transaction_timeout=10_000)
        with pytest.raises(SinkError, match=r"transaction.max.timeout.ms"):
            write(sink, 1)


def test_a_coordinator_takes_the_password_too(broker):
    config = {
        "bootstrap.servers": broker.guarded,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": "wonder",
    }
    coordinator = Coordinator("KafkaSink", config, SinkError)
    coordinator.abort_all("nothing-begins-so", ())
    coordinator.close()
