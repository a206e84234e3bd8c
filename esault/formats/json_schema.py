"""JSON that is checked against a schema."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from esault.errors import TopologyError
from esault.formats.format import Format, library
from esault.formats.registry import Registry

__all__ = ["JsonSchema"]


class JsonSchema(Format):
    """Values in JSON, each checked against a JSON schema; needs `esault[schema-registry]`.

    `schema`, a dict or JSON, `registry` and `config` are as for `Avro`. With a registry a source needs no `schema`.
    """

    def __init__(
        self,
        schema: str | Mapping[str, Any] | None = None,
        *,
        registry: str | Mapping[str, Any] | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(registry, config)
        if schema is None and registry is None:
            raise TopologyError("JsonSchema: without a schema registry it needs a schema, a dict or JSON")
        self._schema = None if schema is None else schema if isinstance(schema, str) else json.dumps(schema)

    def _checker(self) -> Callable[[Any], None]:
        jsonschema = library("JsonSchema", "jsonschema")
        try:
            schema = json.loads(self._schema or "null")
            cls = jsonschema.validators.validator_for(schema)
            cls.check_schema(schema)
        except Exception as error:
            raise TopologyError(f"JsonSchema: the schema cannot be used: {error}; correct it") from None
        check: Callable[[Any], None] = cls(schema).validate
        return check

    def _plain_serializer(self) -> Callable[[Any], bytes]:
        check = self._checker()

        def serialized(value: Any) -> bytes:
            check(value)
            return json.dumps(value, separators=(",", ":")).encode()

        return serialized

    def _plain_deserializer(self) -> Callable[[bytes], Any]:
        check, decode = self._checker(), json.JSONDecoder().decode

        def deserialized(data: bytes) -> Any:
            value = decode(data.decode())
            check(value)
            return value

        return deserialized

    def _registered_serializer(self, registry: Registry) -> Callable[[Any, Any], Any]:
        made = library("JsonSchema", "confluent_kafka.schema_registry.json_schema")
        serializer: Callable[[Any, Any], Any] = made.JSONSerializer(self._schema, registry.client, conf=self._config)
        return serializer

    def _registered_deserializer(self, registry: Registry) -> Callable[[Any, Any], Any]:
        made = library("JsonSchema", "confluent_kafka.schema_registry.json_schema")
        deserializer: Callable[[Any, Any], Any] = made.JSONDeserializer(
            self._schema, schema_registry_client=registry.client, conf=self._config
        )
        return deserializer
