"""Texts in packets of MQTT, read as the standard says and not as paho does.

paho takes a text with U+FEFF, the byte order mark, for broken, hangs up, and is given the same message again, for ever: who
publishes a user property with one would stop all who read it. The standard allows it (MQTT-1.5.4-3).
"""

from __future__ import annotations

from typing import Any

__all__ = ["read_as_the_standard_says"]


def read_as_the_standard_says() -> None:
    """Have paho do so, in this process."""
    from paho.mqtt import properties

    properties.readUTF = _read_text


def _read_text(buffer: Any, most: int) -> tuple[str, int]:
    """Return the text at the beginning of these bytes, of which `most` may be its own, and how many are. Raises MalformedPacket."""
    from paho.mqtt.exception import MalformedPacket

    end = 2 + int.from_bytes(buffer[:2], "big")
    if most < 2 or end > most:
        raise MalformedPacket("a text is longer than its packet")
    try:
        text = bytes(buffer[2:end]).decode()
    except UnicodeDecodeError as error:
        raise MalformedPacket(str(error)) from None
    if "\0" in text:
        raise MalformedPacket("[MQTT-1.5.4-2] a text holds U+0000")
    return text, end
