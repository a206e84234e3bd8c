"""A Confluent schema registry: its client, and the meaning of its errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from esault.errors import EsaultError, TopologyError

__all__ = ["Registry"]

#: seconds after which a request that has no answer is given up, and tries after the first
_SET = {"timeout": 10, "max.retries": 3, "retries.wait.ms": 200, "retries.max.wait.ms": 2000}


class Registry:
    """One registry, by its address or the settings of confluent-kafka's client. It connects when it is first asked."""

    def __init__(self, who: str, registry: str | Mapping[str, Any]) -> None:
        given: Any = {"url": registry} if isinstance(registry, str) else registry
        if not isinstance(given, Mapping) or not str(given.get("url", "")).startswith(("http://", "https://")):
            raise TopologyError(
                f'{who}: registry={registry!r}: write "http://host:8081", or a dict of its client\'s settings with "url"'
            )
        self._who, self._settings = who, dict(given)
        self._client: Any = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is open: another process has its own."""
        return {**self.__dict__, "_client": None}

    @property
    def client(self) -> Any:
        """The client. Raises TopologyError where a library is missing, or a setting is wrong."""
        if self._client is None:
            try:
                from confluent_kafka.schema_registry import SchemaRegistryClient
            except ImportError as error:
                raise TopologyError(
                    f"{self._who}: a schema registry needs {error.name}: pip install 'esault[schema-registry]'"
                ) from None
            try:
                self._client = SchemaRegistryClient({**_SET, **self._settings})
            except (TypeError, ValueError) as error:
                raise TopologyError(f"{self._who}: registry: {error}; correct it") from None
        return self._client

    def close(self) -> None:
        """Let go of the connections; the next call makes others."""
        client, self._client = self._client, None
        if hasattr(client, "close"):
            client.close()

    def place(self, topic: str, field: str) -> Any:
        """Return how confluent-kafka's serializers name the keys or values of a topic."""
        from confluent_kafka.serialization import SerializationContext

        return SerializationContext(topic, field)

    def check(self, who: str, kind: type[EsaultError]) -> None:
        """Raise `kind` where it does not answer, or refuses the user."""
        self.call(kind, lambda _, __: self.client.get_schema_types(), None, None, who)

    def call(
        self, kind: type[EsaultError], made: Callable[[Any, Any], Any], place: Any, value: Any, who: str = ""
    ) -> Any:
        """Return `made(value, place)`. Raises `kind` where the registry is at fault and not the value, and else what it raises."""
        try:
            return made(value, place)
        except Exception as error:
            said = self._at_fault(kind, error, f"{who}: " if who else "")
            if said is None:
                raise
            raise said from said.__cause__

    def _at_fault(self, kind: type[EsaultError], error: Exception, who: str) -> EsaultError | None:
        from confluent_kafka.schema_registry.error import SchemaRegistryError

        at = f"{who}the schema registry {self._settings['url']}"
        cause = next((each for each in (error, error.__cause__, error.__context__) if _is_of_transport(each)), None)
        if cause is not None:
            said = kind(f"{at} does not answer ({cause}); see that it runs, and that registry= names it")
            said.__cause__ = ConnectionError(str(cause))
            return said
        found = next((each for each in (error, error.__cause__) if isinstance(each, SchemaRegistryError)), None)
        if found is None:
            return None
        code = int(found.http_status_code)
        if code in (401, 403):
            return kind(f'{at} refuses the user ({code}); correct "basic.auth.user.info" in registry={{...}}')
        if code == 409:
            return kind(
                f"{at} refuses the schema: {found.error_message}; make it fit those before it (a default for each field that is new), "
                "or lower the compatibility of its subject"
            )
        if code >= 500 or code == 429:
            said = kind(f"{at} fails: {found}")
            said.__cause__ = ConnectionError(str(found))
            return said
        return None  # such as an id that it does not know: the bytes are wrong


def _is_of_transport(error: BaseException | None) -> bool:
    """Return whether a request got no answer; the client's library of HTTP has another name in each of its versions."""
    return any(cls.__name__ == "TransportError" for cls in type(error).__mro__) or isinstance(error, ConnectionError)
