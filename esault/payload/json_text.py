"""Values and keys as text for people and for JSON: nothing is read back from it."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["json_text", "key_text"]


def json_text(value: Any) -> str:
    """Return a value as JSON. What JSON has no form for stands as Python writes it; keys of dicts that are no texts, too."""
    return json.dumps(_plain(value, 0), ensure_ascii=False)


def key_text(key: Any) -> str:
    """Return a key as it is typed: a text as it is, another key as JSON."""
    return key if isinstance(key, str) else json_text(key)


#: levels that are looked into
_DEPTH = 20


def _plain(value: Any, depth: int) -> Any:
    if value is None or type(value) in (str, bool, int):
        return value
    if type(value) is float:
        return value if value - value == 0 else repr(value)  # JSON has neither inf nor nan
    if depth < _DEPTH:
        if isinstance(value, dict):
            return {key if type(key) is str else json_text(key): _plain(each, depth + 1) for key, each in value.items()}
        if isinstance(value, (list, tuple)):
            return [_plain(each, depth + 1) for each in value]
        if isinstance(value, (set, frozenset)):
            return sorted((_plain(each, depth + 1) for each in value), key=repr)
        fields = getattr(value, "__dataclass_fields__", None)
        if fields is not None:
            return {name: _plain(getattr(value, name, None), depth + 1) for name in fields}
    return repr(value)
