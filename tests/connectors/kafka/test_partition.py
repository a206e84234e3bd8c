"""A partition that has just been made has no leader for a moment: that ends no run."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from esault.connectors.kafka import partition
from esault.connectors.kafka.partition import Begin, Partition, Reading
from esault.errors import SourceError

pytest.importorskip("confluent_kafka")


class Told(Exception):
    """As a KafkaException with its KafkaError."""


def refusal(name):
    return Told(SimpleNamespace(name=lambda: name, str=lambda: name.lower(), retriable=lambda: False))


def opened(monkeypatch, answers):
    """The partition of a broker that gives these answers, one after the other, and the seconds that were waited."""
    waited, left = [], list(answers)

    class Consumer:
        def __init__(self, config):
            pass

        def get_watermark_offsets(self, place, timeout):
            answer = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(answer, Exception):
                raise answer
            return answer

        def assign(self, places):
            self.places = places

        def close(self):
            pass

    kafka = SimpleNamespace(Consumer=Consumer, KafkaException=Told, TopicPartition=lambda *place: place)
    monkeypatch.setattr(partition, "libraries", lambda who, error: kafka)
    clock = SimpleNamespace(monotonic=lambda: sum(waited), sleep=waited.append)
    monkeypatch.setattr(partition, "time", clock)
    made = Partition(
        config={"group.id": "g"},
        place=("orders", 4),
        position=None,
        begin=Begin("earliest", "error", False),
        reads=Reading(False, False, False, "error"),
        to_key=bytes,
        to_value=bytes,
        dead_letters=None,
        watch=None,
        say=print,
    )
    return made, waited


@pytest.mark.parametrize("name", ["NOT_LEADER_FOR_PARTITION", "LEADER_NOT_AVAILABLE", "UNKNOWN_TOPIC_OR_PART"])
def test_a_new_partition_is_asked_again_until_it_has_a_leader(monkeypatch, name):
    made, waited = opened(monkeypatch, [refusal(name), refusal(name), (7, 20)])
    assert made._consumer.places == [("orders", 4, 7)]
    assert len(waited) == 2


def test_one_that_gets_no_leader_says_so_in_the_end_and_may_pass(monkeypatch):
    with pytest.raises(SourceError, match=r"orders\[4\]: not_leader_for_partition") as raised:
        opened(monkeypatch, [refusal("NOT_LEADER_FOR_PARTITION")])
    assert isinstance(raised.value.__cause__, ConnectionError)


def test_what_no_waiting_mends_is_said_at_once(monkeypatch):
    with pytest.raises(SourceError, match="allow it"):
        opened(monkeypatch, [refusal("TOPIC_AUTHORIZATION_FAILED"), (0, 0)])
