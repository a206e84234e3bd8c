"""Protocol Buffers: messages of a class that protoc made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from esault.errors import TopologyError
from esault.formats.format import Format, library
from esault.formats.registry import Registry

__all__ = ["Protobuf"]


class Protobuf(Format):
    """Messages of one class; needs `esault[schema-registry]`. Values are objects of that class.

    `message` is a class that protoc made. `registry` and `config` are as for `Avro`; the bytes then begin with the id of the schema
    and the place of the message in it, as Confluent's serializers write them.
    """

    def __init__(
        self,
        message: type[Any],
        *,
        registry: str | Mapping[str, Any] | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(registry, config)
        if not isinstance(message, type) or not hasattr(message, "FromString"):
            raise TopologyError(
                f"Protobuf: {message!r} is no class of messages; give one that protoc made: Protobuf(Order)"
            )
        self._message: Any = message

    def _plain_serializer(self) -> Callable[[Any], bytes]:
        cls = self._message

        def serialized(value: Any) -> bytes:
            if type(value) is not cls:
                raise TypeError(f"{value!r} is no {cls.__name__}")
            data: bytes = value.SerializeToString()
            return data

        return serialized

    def _plain_deserializer(self) -> Callable[[bytes], Any]:
        parsed: Callable[[bytes], Any] = self._message.FromString
        return parsed

    def _registered_serializer(self, registry: Registry) -> Callable[[Any, Any], Any]:
        made = library("Protobuf", "confluent_kafka.schema_registry.protobuf")
        config = {"use.deprecated.format": False, **self._config}
        serializer: Callable[[Any, Any], Any] = made.ProtobufSerializer(self._message, registry.client, conf=config)
        return serializer

    def _registered_deserializer(self, registry: Registry) -> Callable[[Any, Any], Any]:
        made = library("Protobuf", "confluent_kafka.schema_registry.protobuf")
        config = {"use.deprecated.format": False, **self._config}
        deserializer: Callable[[Any, Any], Any] = made.ProtobufDeserializer(
            self._message, config, schema_registry_client=registry.client
        )
        return deserializer
