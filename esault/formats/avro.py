"""Avro: records as bytes, by fastavro."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from typing import Any

from esault.errors import TopologyError
from esault.formats.format import Format, library
from esault.formats.registry import Registry

__all__ = ["Avro"]


class Avro(Format):
    """Values (dicts, for records) in Avro's binary form; needs `esault[schema-registry]`.

    `schema` is a dict, or JSON. With `registry`, an address or the settings of confluent-kafka's `SchemaRegistryClient`, bytes begin
    with the id of their schema, as Confluent's serializers write them. A source needs no `schema` then: each message names the one
    that it was written with; where one is given values are read as it says (schema resolution). A sink registers its own as
    `<topic>-value`. `config` has settings of `AvroSerializer` and `AvroDeserializer`, such as {"auto.register.schemas": False,
    "use.latest.version": True}. Without `registry` bytes have no head, and a sink and a source need the same `schema`.
    """

    def __init__(
        self,
        schema: str | Mapping[str, Any] | list[Any] | None = None,
        *,
        registry: str | Mapping[str, Any] | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(registry, config)
        if schema is None and registry is None:
            raise TopologyError("Avro: without a schema registry it needs a schema, a dict or JSON: Avro(schema)")
        self._schema = None if schema is None else schema if isinstance(schema, str) else json.dumps(schema)
        if self._schema is not None:
            try:
                json.loads(self._schema)
            except ValueError as error:
                raise TopologyError(f"Avro: the schema is no JSON: {error}; correct it") from None

    def _parsed(self) -> tuple[Any, Any]:
        fastavro = library("Avro", "fastavro")
        try:
            return fastavro, fastavro.parse_schema(json.loads(self._schema or "null"))
        except Exception as error:
            raise TopologyError(
                f"Avro: the schema cannot be used: {type(error).__name__}: {error}; correct it"
            ) from None

    def _plain_serializer(self) -> Callable[[Any], bytes]:
        fastavro, schema = self._parsed()

        def serialized(value: Any) -> bytes:
            out = io.BytesIO()
            fastavro.schemaless_writer(out, schema, value)
            return out.getvalue()

        return serialized

    def _plain_deserializer(self) -> Callable[[bytes], Any]:
        fastavro, schema = self._parsed()
        read = fastavro.schemaless_reader
        return lambda data: read(io.BytesIO(data), schema, None)

    def _registered_serializer(self, registry: Registry) -> Callable[[Any, Any], Any]:
        made = library("Avro", "confluent_kafka.schema_registry.avro")
        serializer: Callable[[Any, Any], Any] = made.AvroSerializer(registry.client, self._schema, conf=self._config)
        return serializer

    def _registered_deserializer(self, registry: Registry) -> Callable[[Any, Any], Any]:
        made = library("Avro", "confluent_kafka.schema_registry.avro")
        deserializer: Callable[[Any, Any], Any] = made.AvroDeserializer(
            registry.client, self._schema, conf=self._config
        )
        return deserializer
