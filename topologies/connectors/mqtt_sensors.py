"""Temperatures by MQTT: where a sensor becomes too hot, or cool again, a message goes out.

Shows `MqttSource` and `MqttSink`. Out come messages of topics such as `alarms/plant/hall-2/temperature`, `{"hot": true, "celsius": 91}`,
when that changes. They are retained: who subscribes later gets the last state of each sensor.

    mosquitto                              # in another terminal; apt-get install mosquitto mosquitto-clients
    esault run topologies/connectors/mqtt_sensors.py
    mosquitto_sub -t 'alarms/#' -v         # in another terminal
    mosquitto_pub -q 1 -t plant/hall-2/temperature -m '{"celsius": 91}'
"""

from esault import Bolt, Topology, by_key
from esault.sinks import MqttSink
from esault.sources import MqttSource

__all__ = ["topology"]


class Alarm(Bolt):
    """One sensor; too hot above `hot` degrees, cool again below `cool`."""

    def __init__(self, hot: float = 80.0, cool: float = 75.0):
        self.limits = hot, cool
        self.hot = False

    def process(self, key, value):
        celsius = value["celsius"]
        if celsius > self.limits[0] if not self.hot else celsius < self.limits[1]:
            self.hot = not self.hot
            self.emit(key, {"hot": self.hot, "celsius": celsius})


def topology(
    host: str = "localhost", port: int = 1883, client_id: str = "esault-sensors", name: str = "mqtt_sensors"
) -> Topology:
    """Return it; it has no end."""
    t = Topology(name)
    readings = t.spout("readings", MqttSource("plant/+/temperature", host, port, client_id=client_id))
    alarms = readings.bolt("alarm", Alarm, grouping=by_key())
    alarms.sink("alarms", MqttSink(lambda sensor, alarm: f"alarms/{sensor}", host, port, retain=True))
    return t
