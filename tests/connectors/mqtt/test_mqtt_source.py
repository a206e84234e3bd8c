"""Messages of topics by a real mosquitto: what is in them, what comes again, what is refused and what is waited for."""

from __future__ import annotations

import re
import time
import uuid

import pytest

from esault.errors import SourceError, TopologyError
from esault.sources import MqttSource
from esault.topology.context import Context

_OPEN = []


@pytest.fixture(autouse=True)
def _closed():
    yield
    while _OPEN:
        _OPEN.pop().close()


@pytest.fixture
def topic():
    return f"t-{uuid.uuid4().hex[:8]}"


def until(condition):
    end = time.monotonic() + 60
    while not (found := condition()) and time.monotonic() < end:
        time.sleep(0.01)
    return found


def source(broker, topic, part=0, parts=1, **options):
    made = MqttSource(f"{topic}/#", "127.0.0.1", broker.port, **{"client_id": topic, **options})
    made.open(Context("messages", part=part, parts=parts))
    _OPEN.append(made)
    assert until(lambda: made._inbox._session.client.is_connected())
    time.sleep(0.1)  # until it has subscribed
    return made


def read_until(spout, count, limit=100):
    rows = []
    until(lambda: rows.extend(spout.read(limit)) or len(rows) >= count)
    return rows


def test_what_is_not_acknowledged_comes_again_and_what_came_meanwhile(broker, topic):
    first = source(broker, topic, metadata=True)
    broker.send(f"{topic}/a", *(b"%d" % n for n in range(10)))
    assert [v["value"] for _, v in read_until(first, 4, 1)][:4] == [0, 1, 2, 3]
    first.commit(first.position())
    read_until(first, 6)
    first.close()
    broker.send(f"{topic}/b", b"10")
    rest = read_until(second := source(broker, topic, metadata=True), 7)
    assert [(key, v["value"]) for key, v in rest] == [(f"{topic}/a", n) for n in range(4, 10)] + [(f"{topic}/b", 10)]
    second.commit(second.position())
    second.close()
    assert read_until(third := source(broker, topic), 0) == []
    time.sleep(0.3)
    assert list(third.read(10)) == []


def test_retained_messages_are_marked_and_bad_ones_left_out(broker, topic, caplog):
    broker.send(f"{topic}/kept", b"1", retain=True)
    spout = source(broker, topic, metadata=True, on_bad_message="skip")
    broker.send(f"{topic}/new", b"{", b"2")
    rows = read_until(spout, 2)
    assert [(v["value"], v["retain"]) for _, v in rows] == [(1, True), (2, False)]
    assert spout.counters() == {"bad_messages_skipped": 1}
    assert f"{topic}/new': JSONDecodeError: " in caplog.text
    assert "(the message is left out; further ones are only counted)" in caplog.text


def publish(broker, topic, text):
    import paho.mqtt.client as paho
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties

    client = paho.Client(paho.CallbackAPIVersion.VERSION2, f"{topic}-writer", protocol=paho.MQTTv5)
    client.connect("127.0.0.1", broker.port)
    client.loop_start()
    assert until(client.is_connected)
    properties = Properties(PacketTypes.PUBLISH)
    properties.UserProperty = ("of", text)
    client.publish(topic, b"1", 1, properties=properties).wait_for_publish(20)
    client.disconnect()
    client.loop_stop()


def test_a_byte_order_mark_in_a_user_property_is_read(broker, topic):
    reads = source(broker, topic, metadata=True)
    publish(broker, f"{topic}/a", "\ufeffmark")
    publish(broker, f"{topic}/a", "")
    found = read_until(reads, 2)
    assert [value["user_properties"] for _, value in found] == [[("of", "\ufeffmark")], [("of", "")]]


def test_what_can_never_be_read_ends_the_run(broker, topic, monkeypatch):
    from paho.mqtt import properties
    from paho.mqtt.exception import MalformedPacket

    def unreadable(buffer, most):
        raise MalformedPacket("odd")

    monkeypatch.setattr("esault.connectors.mqtt.client._MOST_UNREADABLE", 2)
    reads = source(broker, topic)
    monkeypatch.setattr(properties, "readUTF", unreadable)
    publish(broker, f"{topic}/a", "x")
    told = []

    def refused():
        try:
            assert reads.read(1) == []
        except SourceError as error:
            told.append(str(error))
        return told

    assert until(refused)
    assert re.search(f"gives what cannot be read, 2 times in a row: .*mosquitto_sub -c -i {topic}", told[0])


def test_sub_units_share_a_subscription(broker, topic):
    both = [source(broker, topic, part, 2) for part in range(2)]
    broker.send(f"{topic}/a", *(b"%d" % n for n in range(100)))
    rows = []
    until(lambda: [rows.extend(each.read(10)) for each in both] and len(rows) >= 100)
    assert sorted(value for _, value in rows) == list(range(100))


def test_no_more_than_receive_maximum_is_held(broker, topic, caplog):
    spout = source(broker, topic, receive_maximum=3)
    broker.send(f"{topic}/a", *(b"%d" % n for n in range(6)))
    assert len(read_until(spout, 3)) == 3
    assert list(spout.read(10)) == []
    assert "raise it" in caplog.text
    assert spout.held_back()
    spout.commit(spout.position())
    assert not spout.held_back()
    assert [value for _, value in read_until(spout, 3)] == [3, 4, 5]


def test_as_many_as_a_broker_may_give_before_the_first_is_acknowledged_hold_it_back(broker, topic):
    spout = source(broker, topic)
    broker.send(f"{topic}/a", *(b"%d" % n for n in range(19)))
    read_until(spout, 19)
    assert not spout.held_back()
    broker.send(f"{topic}/a", b"19")
    read_until(spout, 1)
    assert spout.held_back()  # mosquitto gives 20, unless it is told otherwise
    spout.commit(spout.position())
    assert not spout.held_back()


def test_a_broker_that_restarts_is_waited_for_and_said_once(broker, topic, caplog):
    spout = source(broker, topic)
    broker.send(f"{topic}/a", b"1", b"2")
    read_until(spout, 2)
    broker.stop()
    assert until(lambda: "waiting until it does" in caplog.text)
    broker.start()
    assert [value for _, value in read_until(spout, 2)] == [1, 2], "what was not acknowledged"
    assert caplog.text.count("waiting until it does") == caplog.text.count("answers again") == 1


def test_a_client_id_of_several_levels_has_a_shared_subscription(broker, topic):
    spouts = [source(broker, topic, part=part, parts=2, client_id=f"plant/{topic}/+") for part in range(2)]
    broker.send(f"{topic}/a", *(str(number).encode() for number in range(20)))
    assert until(lambda: sum(len(spout._inbox._waiting) for spout in spouts) == 20)
    for spout in spouts:
        spout.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # paho leaves a socket open there
def test_what_is_missing_or_refused_is_said_before_anything_starts(broker):
    with pytest.raises(SourceError, match="does not answer"):
        MqttSource("t", "127.0.0.1", 1, client_id="c").check()
    with pytest.raises(SourceError, match="does not answer.*does it speak TLS there"):
        MqttSource("t", "127.0.0.1", broker.port, client_id="c", tls=True).check()
    with pytest.raises(SourceError, match="refuses user 'alice'"):
        MqttSource("t", "127.0.0.1", broker.guarded, client_id="c", user="alice", password="guess").check()
    MqttSource("t", "127.0.0.1", broker.guarded, client_id="c", user="alice", password="wonder").check()
    options = [("topics", []), ("topics", "a/#/b"), ("topics", "a/b#"), ("topics", ["a", "a+/b"]), ("client_id", "")]
    options += [("host", "mqtt://localhost"), ("host", "localhost:1883"), ("port", 0)]
    options += [("receive_maximum", 0), ("on_bad_message", "x")]
    for name, wrong in options:
        with pytest.raises(TopologyError, match=name):
            MqttSource(**{"topics": "t", "client_id": "c", name: wrong})
