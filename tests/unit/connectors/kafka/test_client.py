"""What errors of Kafka's clients mean, without a broker."""

from __future__ import annotations

import pytest

from esault.connectors.kafka.client import Watch, check_topics, failure, settings
from esault.connectors.kafka.outbox import Outbox
from esault.errors import SinkError, TopologyError

kafka = pytest.importorskip("confluent_kafka")


class TestSettings:
    def test_those_of_the_user_come_through(self):
        assert settings("KafkaSink", "a:1", {"linger.ms": 7}) == {
            "log_level": 2,
            "linger.ms": 7,
            "bootstrap.servers": "a:1",
        }

    @pytest.mark.parametrize(("servers", "config"), [("", None), (9092, None), ("a:1", ["x"]), ("a:1", {1: 2})])
    def test_what_cannot_be_settings_is_refused(self, servers, config):
        with pytest.raises(TopologyError, match="write"):
            settings("KafkaSink", servers, config)


class TestErrors:
    def test_one_that_may_pass_has_a_connection_error_as_its_cause(self):
        error = failure(SinkError, "KafkaSink", kafka.KafkaError(kafka.KafkaError._ALL_BROKERS_DOWN))
        assert "see that the broker runs" in str(error)
        assert isinstance(error.__cause__, ConnectionError)

    def test_one_that_does_not_pass_has_none(self):
        error = failure(SinkError, "KafkaSink", kafka.KafkaError(kafka.KafkaError.MSG_SIZE_TOO_LARGE))
        assert "max.message.bytes" in str(error)
        assert error.__cause__ is None

    def test_its_cause_stays_when_it_is_raised(self):
        from esault.connectors.kafka.outbox import Outbox
        from esault.flow.operators.user_error import is_transient

        outbox = Outbox("KafkaSink", settings("KafkaSink", "127.0.0.1:1", None), SinkError, print)

        def fenced(seconds):
            raise kafka.KafkaException(kafka.KafkaError(kafka.KafkaError._FENCED, "fenced", True))

        with pytest.raises(SinkError, match="sends these rows again") as raised:
            outbox._served(fenced, 0.0)
        assert is_transient(raised.value)

    def test_an_end_whose_reason_the_client_has_lost_passes_too(self):
        from esault.connectors.kafka.outbox import Outbox
        from esault.flow.operators.user_error import is_transient

        outbox = Outbox("KafkaSink", settings("KafkaSink", "127.0.0.1:1", None), SinkError, print)

        def lost(seconds):
            raise SystemError("<built-in method flush> returned NULL without setting an exception")

        with pytest.raises(SinkError, match="sends these rows again") as raised:
            outbox._served(lost, 0.0)
        assert is_transient(raised.value)

    def test_of_messages_that_fail_together_the_reason_is_said(self):
        from esault.connectors.kafka.outbox import Outbox

        outbox = Outbox("KafkaSink", settings("KafkaSink", "127.0.0.1:1", None), SinkError, print)
        message = type("Message", (), {"topic": lambda self: "t"})()
        for number in (
            kafka.KafkaError._PURGE_QUEUE,
            kafka.KafkaError.MSG_SIZE_TOO_LARGE,
            kafka.KafkaError._PURGE_QUEUE,
        ):
            outbox._delivered(kafka.KafkaError(number), message)
        with pytest.raises(SinkError, match=r"max\.message\.bytes"):
            outbox._check()

    def test_a_setting_that_there_is_not_is_named(self):
        with pytest.raises(SinkError, match="no.such"):
            check_topics("KafkaSink", SinkError, settings("KafkaSink", "a:1", {"no.such": 1}), ["t"])


class TestWatch:
    def test_a_broker_that_is_away_is_said_once_and_so_is_its_return(self):
        said = []
        watch = Watch("a:1", said.append)
        for _ in range(3):
            watch(kafka.KafkaError(kafka.KafkaError._ALL_BROKERS_DOWN, "none"))
        watch.answered()
        watch.answered()
        assert said == ["no broker of a:1 answers (none): waiting until one does", "a broker of a:1 answers again"]

    def test_a_refusal_is_kept(self):
        watch = Watch("a:1")
        watch(kafka.KafkaError(kafka.KafkaError._AUTHENTICATION))
        assert watch.refused.name() == "_AUTHENTICATION"

    def test_what_another_client_says_late_is_not_said_again_but_a_new_outage_is(self):
        said, now = [], [0.0]
        watch = Watch("a:1", said.append, lambda: now[0])
        down = kafka.KafkaError(kafka.KafkaError._ALL_BROKERS_DOWN, "none")
        watch(down)
        watch.answered()
        now[0] = 0.1
        watch(down)
        assert len(said) == 2
        now[0] = 9.0
        watch(down)
        assert len(said) == 3


class TestOutbox:
    @pytest.mark.parametrize(
        "extras",
        [
            {},
            {"timestamp": 1_500},
            {"timestamp": None},
            {"partition": 0},
            {"partition": None},
            {"headers": {"k": "a"}},
            {"headers": None, "timestamp": None, "partition": None},
        ],
    )
    def test_it_takes_messages_with_whatever_functions_give(self, extras):
        outbox = Outbox("KafkaSink", settings("KafkaSink", "127.0.0.1:1", None), SinkError, print)
        outbox.put("t", [{"key": b"a", "value": b"1", **extras}, {"key": None, "value": None, **extras}])
        assert len(outbox.producer) == 2
