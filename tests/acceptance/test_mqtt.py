"""From topics of a real mosquitto to a topic: killed, resumed and without a broker for a time, nothing is missing."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import depth
import from_mqtt
import mosquitto_server
import pytest
from test_acknowledged import kill_run

pytestmark = pytest.mark.slow
PLACE = f"{Path(from_mqtt.__file__)}:topology"
#: options of a run, and readers that share the topic; without checkpoints a source is killed in test_rabbitmq.py, too
CASES = {
    "acks, shared": ((), 2),
    "checkpoints": (("--checkpoint", "0.3"), 1),
    "checkpoints, shared": (("--checkpoint", "0.3"), 2),
}


@pytest.mark.parametrize("case", depth.chosen(CASES, ("checkpoints, shared",)))
def test_nothing_is_missing(command, tmp_path, case):
    options, readers = CASES[case]
    pytest.importorskip("paho.mqtt.client", reason="paho-mqtt is not installed: pip install 'esault[mqtt]'")
    try:
        running = mosquitto_server.running()
        broker = running.__enter__()
    except mosquitto_server.NotToBeHadError as error:
        pytest.skip(str(error))
    out, sent = tmp_path / "out.jsonl", 0

    def more(count=200):
        nonlocal sent
        broker.send("plant/1", *(b"%d" % n for n in range(sent, sent + count)))
        sent += count

    def values():
        return [json.loads(line)["value"] for line in out.read_text().splitlines()] if out.exists() else []

    def landed():
        return {value for value in values() if value >= 0}

    def subscribed():
        probe = min(-1, *values(), -1) - 1
        broker.send("plant/0", b"%d" % probe)
        with contextlib.suppress(AssertionError):
            return command.until(lambda: probe in values(), 1)

    def all_landed():
        return landed() == set(range(sent))

    try:
        there = mosquitto_server.Reader(broker, "there")
        params = {"port": broker.port, "client": command.name, "readers": readers}
        command.start(PLACE, *options, "--policy", "none", **params)
        command.running()
        command.until(subscribed)
        more()
        command.processes("messages/")[0].kill()
        command.until(all_landed)
        more()
        broker.stop()
        broker.start()
        if (
            readers > 1
        ):  # mosquitto has forgotten the shared subscription: what is sent before it is there goes to nobody
            command.until(subscribed)
        more()
        command.until(all_landed)
        more(100)
        kill_run(command)
        more()
        again = ("--resume",) if options else ()
        command.start(PLACE, *options, *again, "--policy", "none", **params)
        command.running()
        command.until(all_landed)
        code, _, err = command.stop()
        assert code == 0, err
        published = {dict(m.properties.UserProperty)["id"]: int(m.payload) for m in there.all()}
        assert {value for value in published.values() if value >= 0} == set(range(sent)), "by MqttSink"
    finally:
        command.end()
        running.__exit__(None, None, None)
