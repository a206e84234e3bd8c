"""Values as bytes with a schema, with a registry and without, and back."""

from __future__ import annotations

import json
import pickle

import pytest

pytest.importorskip("fastavro", reason="fastavro is not installed: pip install 'esault[schema-registry]'")
pytest.importorskip(
    "confluent_kafka.schema_registry", reason="pip install 'esault[schema-registry]'", exc_type=ImportError
)
schema_registry = pytest.importorskip("schema_registry")

from order_pb2 import Order  # noqa: E402

from esault.errors import SinkError, SourceError, TopologyError  # noqa: E402
from esault.formats import Avro, JsonSchema, Protobuf  # noqa: E402

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "who", "type": "string"}],
}
OBJECT = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"], "title": "Order"}
VALUE = {"id": 7, "who": "alice"}


@pytest.fixture
def registry():
    with schema_registry.serving() as found:
        yield found


@pytest.fixture(autouse=True)
def _closed(monkeypatch):
    """Closes the connections of all clients that a test made."""
    from esault.formats.registry import Registry

    made, begin = [], Registry.__init__

    def begun(self, *of):
        begin(self, *of)
        made.append(self)

    def again(self, state):
        self.__dict__.update(state)
        made.append(self)

    monkeypatch.setattr(Registry, "__init__", begun)
    monkeypatch.setattr(Registry, "__setstate__", again, raising=False)
    yield
    for each in made:
        each.close()


def formats(registry):
    return [
        (Avro(ORDER, registry=registry), VALUE),
        (JsonSchema(OBJECT, registry=registry), VALUE),
        (Protobuf(Order, registry=registry), Order(id=7, who="alice")),
    ]


class TestThereAndBack:
    def test_without_a_registry(self):
        for made, value in formats(None):
            assert made.deserialize(made.serialize(value)) == value

    def test_with_a_registry_also_in_another_process(self, registry):
        for made, value in formats(registry.url):
            data = made.serializer("orders", "value")(value)
            assert data[0] == 0
            other = pickle.loads(pickle.dumps(made))
            assert other.deserializer("orders", "value")(data) == value
        assert len(registry.schemas) == 3

    def test_a_source_needs_no_schema(self, registry):
        for made, value in formats(registry.url)[:2]:
            data = made.serializer("orders", "key")(value)
            assert type(made)(registry=registry.url).deserializer("orders", "key")(data) == value
            assert "orders-key" in registry.subjects

    def test_a_source_reads_older_values_as_its_schema_says(self, registry):
        data = Avro(ORDER, registry=registry.url).serializer("orders")(VALUE)
        newer = {**ORDER, "fields": [*ORDER["fields"], {"name": "paid", "type": "double", "default": 0.0}]}
        assert Avro(newer, registry=registry.url).deserializer("orders")(data) == {**VALUE, "paid": 0.0}

    def test_each_schema_is_asked_for_once(self, registry):
        reads = Avro(registry=registry.url).deserializer("orders")
        data = Avro(ORDER, registry=registry.url).serializer("orders")(VALUE)
        for _ in range(5):
            reads(data)
        assert sum("/schemas/ids/" in asked for asked in registry.asked) == 1


class TestWhatGoesWrong:
    def test_a_schema_that_does_not_fit_is_refused_with_the_remedy(self, registry):
        Avro(ORDER, registry=registry.url).serializer("orders")(VALUE)
        other = {**ORDER, "fields": [{"name": "paid", "type": "double"}]}
        with pytest.raises(SinkError, match="refuses the schema.*a default for each field that is new"):
            Avro(other, registry=registry.url).serializer("orders")({"paid": 1.0})

    def test_no_registry_is_worth_a_restart(self, registry):
        gone = Avro(ORDER, registry={"url": "http://127.0.0.1:1", "max.retries": 0})
        with pytest.raises(SinkError, match=r"127.0.0.1:1 does not answer.*registry= names it") as raised:
            gone.serializer("orders")(VALUE)
        assert isinstance(raised.value.__cause__, ConnectionError)
        with pytest.raises(SourceError, match=r"KafkaSource: the schema registry"):
            gone.check("KafkaSource", SourceError)

    def test_one_that_fails_is_worth_a_restart(self, registry):
        data = Avro(ORDER, registry=registry.url).serializer("orders")(VALUE)
        registry.status = 500
        with pytest.raises(SourceError, match="fails") as raised:
            Avro(registry={"url": registry.url, "max.retries": 0}).deserializer("orders")(data)
        assert isinstance(raised.value.__cause__, ConnectionError)

    def test_a_wrong_password(self):
        with schema_registry.serving("alice:wonder") as guarded:
            right = {"url": guarded.url, "basic.auth.user.info": "alice:wonder"}
            Avro(ORDER, registry=right).check("KafkaSink", SinkError)
            with pytest.raises(SinkError, match=r"refuses the user \(401\).*basic.auth.user.info"):
                Avro(ORDER, registry={**right, "basic.auth.user.info": "alice:x"}).check("KafkaSink", SinkError)

    def test_bytes_that_are_no_value_are_not_the_registrys_fault(self, registry):
        for data in (b"{}", b"\x00\x00\x00\x00\x63abc"):
            with pytest.raises(Exception) as raised:
                Avro(registry=registry.url).deserializer("orders")(data)
            assert not isinstance(raised.value, SourceError)

    def test_a_value_that_does_not_fit(self):
        with pytest.raises(Exception, match="id"):
            JsonSchema(OBJECT).serialize({"who": "alice"})
        with pytest.raises(TypeError, match="is no Order"):
            Protobuf(Order).serialize("cat")

    @pytest.mark.parametrize(
        ("made", "said"),
        [
            (lambda: Avro(), "needs a schema"),
            (lambda: Avro("{"), "no JSON"),
            (lambda: Avro({"type": "nothing"}).serialize(1), "cannot be used"),
            (lambda: Avro(ORDER, registry="localhost:8081"), "http://host:8081"),
            (lambda: Avro(ORDER, config={"use.latest.version": True}), "say registry="),
            (lambda: Avro(ORDER, registry={"url": "http://a", "no.such": 1}).serializer(), "no.such"),
            (lambda: JsonSchema(), "needs a schema"),
            (lambda: Protobuf("Order"), "no class of messages"),
        ],
    )
    def test_what_cannot_be_is_refused_with_what_can(self, made, said):
        with pytest.raises(TopologyError, match=said):
            made()


def test_a_schema_may_be_text():
    assert Avro(json.dumps(ORDER)).serialize(VALUE) == Avro(ORDER).serialize(VALUE)
