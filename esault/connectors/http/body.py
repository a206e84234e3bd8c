"""Rows from the body of a request."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from esault.errors import TopologyError
from esault.sources.record_key import UnusableError, as_key

__all__ = ["BodyError", "BodyFormat"]

_JSON_LINES = ("ndjson", "jsonl", "json-lines", "jsonlines")


class BodyError(Exception):
    """The body has no rows of the form that was said; the text is for who sent it."""


class BodyFormat:
    """The form of a body: "json" (an object, a list, or JSON lines by content type), "lines", or a function from bytes to values."""

    def __init__(self, who: str, form: Any, key: Any) -> None:
        if not callable(form) and form not in ("json", "lines"):
            raise TopologyError(f'{who}: format={form!r}: write "json", "lines", or a function from bytes to values')
        if key is not None and not callable(key) and not isinstance(key, str):
            raise TopologyError(f"{who}: key={key!r}: write a field's name, a function of the value, or None")
        self._form, self._key = form, key

    def rows(self, body: bytes, content_type: str) -> list[tuple[Any, Any]]:
        """Return (key, value) pairs. Raises BodyError, which names the row: then none is taken."""
        try:
            values = list(self._values(body, content_type))
        except BodyError:
            raise
        except Exception as error:
            raise BodyError(f"the body cannot be read: {type(error).__name__}: {error}") from None
        if self._key is None:
            return [(None, value) for value in values]
        return [(self._key_of(value, index), value) for index, value in enumerate(values)]

    def _values(self, body: bytes, content_type: str) -> Iterable[Any]:
        if callable(self._form):
            made: Callable[[bytes], Iterable[Any]] = self._form
            return made(body)
        if self._form == "lines":
            return [line.decode() for line in body.splitlines()]  # a text also ends lines at form feeds and the like
        if any(word in content_type for word in _JSON_LINES):
            return [_parsed(line, f"line {number}") for number, line in enumerate(body.splitlines(), 1) if line.strip()]
        value = _parsed(body, "the body")
        return value if isinstance(value, list) else [value]

    def _key_of(self, value: Any, index: int) -> Any:
        try:
            key = self._key(value) if callable(self._key) else value[self._key]
        except Exception as error:
            raise BodyError(f"row {index} has no key {self._key!r}: {type(error).__name__}: {error}") from None
        # What no tuple can have as its key would end the run: any client could do that.
        try:
            return as_key(key)
        except UnusableError as error:
            raise BodyError(f"row {index}: {error}") from None


def _parsed(text: bytes, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise BodyError(f"{where} is no JSON: {error}") from None
