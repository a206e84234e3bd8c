"""Forms of keys and values as bytes that have a schema, with a schema registry or without: for brokers, and all that takes bytes.

    Avro(schema)                    records as Avro says, by fastavro
    Protobuf(Order)                 messages of a class that protoc made
    JsonSchema(schema)              JSON that is checked against a schema
      registry="http://host:8081"   schemas are those of a Confluent schema registry, in its wire format

`KafkaSource(value_deserializer=Avro(registry=...))`, `KafkaSink(value_serializer=Avro(schema, registry=...))`. Each has
`serialize` and `deserialize`, too, functions for connectors that take one. Needs `esault[schema-registry]`.
"""

from __future__ import annotations

from esault.formats.avro import Avro
from esault.formats.json_schema import JsonSchema
from esault.formats.protobuf import Protobuf

__all__ = ["Avro", "JsonSchema", "Protobuf"]
