"""The base of all formats: a function for the keys or values of each topic, made when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

from esault.errors import EsaultError, SinkError, SourceError, TopologyError
from esault.formats.registry import Registry

__all__ = ["Format", "library"]


class Format:
    """A form of values as bytes. Subclasses write the four `_plain_...` and `_registered_...`; constructors open nothing."""

    def __init__(self, registry: str | Mapping[str, Any] | None, config: Mapping[str, Any] | None) -> None:
        self._who = type(self).__name__
        if config is not None and registry is None:
            raise TopologyError(
                f"{self._who}: config={config!r} is for the serializers of a schema registry: say registry="
            )
        self._registry = None if registry is None else Registry(self._who, registry)
        self._config = dict(config or {})
        self._made: dict[str, Callable[[Any], Any]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is open: another process has its own."""
        return {**self.__dict__, "_made": {}}

    def check(self, who: str, kind: type[EsaultError]) -> None:
        """Raise `kind` where a library is missing, or the schema registry does not answer."""
        if self._registry is not None:
            self._registry.check(who, kind)
        else:
            self._plain_deserializer()

    def close(self) -> None:
        """Let go of the connections to the registry. Functions made before need new ones."""
        self._made = {}
        if self._registry is not None:
            self._registry.close()

    def serializer(self, topic: str = "", field: str = "value") -> Callable[[Any], bytes]:
        """Return the function that makes the keys or values (`field`) of a topic bytes. It raises SinkError."""
        if self._registry is None:
            return self._plain_serializer()
        made = self._registered_serializer(self._registry)
        return partial(self._registry.call, SinkError, made, self._registry.place(topic, field))

    def deserializer(self, topic: str = "", field: str = "value") -> Callable[[bytes], Any]:
        """Return the function that makes values of the bytes of a topic. It raises what is wrong with them; SourceError: nothing is."""
        if self._registry is None:
            return self._plain_deserializer()
        made = self._registered_deserializer(self._registry)
        return partial(self._registry.call, SourceError, made, self._registry.place(topic, field))

    def serialize(self, value: Any) -> bytes:
        """Return a value as bytes."""
        made = self._made.get("to") or self._made.setdefault("to", self.serializer())
        data: bytes = made(value)
        return data

    def deserialize(self, data: bytes) -> Any:
        """Return the value of bytes."""
        made = self._made.get("from") or self._made.setdefault("from", self.deserializer())
        return made(data)

    def _plain_serializer(self) -> Callable[[Any], bytes]:
        raise NotImplementedError

    def _plain_deserializer(self) -> Callable[[bytes], Any]:
        raise NotImplementedError

    def _registered_serializer(self, registry: Registry) -> Callable[[Any, Any], Any]:
        raise NotImplementedError

    def _registered_deserializer(self, registry: Registry) -> Callable[[Any, Any], Any]:
        raise NotImplementedError


def library(who: str, name: str) -> Any:
    """Return a module. Raises TopologyError where it is not installed."""
    try:
        return import_module(name)
    except ImportError as error:
        raise TopologyError(f"{who} needs {error.name}: pip install 'esault[schema-registry]'") from None
