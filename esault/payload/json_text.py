"""Values and keys as text for people and for JSON: nothing is read back from it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

__all__ = ["json_text", "key_text", "not_finite", "strict_json"]

_SURROGATES = re.compile("[\ud800-\udfff]")


def json_text(value: Any) -> str:
    """Return a value as JSON. What JSON has no form for stands as Python writes it; keys of dicts that are no texts, too."""
    plain = _plain(value, 0)
    text = json.dumps(plain, ensure_ascii=False)
    # Half of a surrogate pair has no UTF-8, and could be written nowhere.
    return text if text.isascii() or not _SURROGATES.search(text) else json.dumps(plain)


def strict_json(value: Any, default: Callable[[Any], Any] | None = None) -> str:
    """Return what `json.dumps` does, but for numbers that JSON has no word for: browsers and `jq` take no NaN.

    `default` as that of `json.dumps`; keys of dicts that JSON has no form for are left out. Raises TypeError, ValueError.
    """
    try:
        return json.dumps(value, allow_nan=False, default=default, skipkeys=True)
    except ValueError:
        return json.dumps(_finite(value, default), default=default, skipkeys=True)


def not_finite(number: float) -> str:
    """Return the text that stands in JSON for a number that is not finite."""
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def _finite(value: Any, default: Callable[[Any], Any] | None) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else not_finite(value)
    if isinstance(value, dict):
        return {key: _finite(each, default) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each, default) for each in value]
    if default is None or value is None or isinstance(value, (str, int)):
        return value
    return _finite(default(value), default)


def key_text(key: Any) -> str:
    """Return a key as it is typed: a text as it is, another key as JSON."""
    return key if isinstance(key, str) else json_text(key)


#: levels that are looked into
_DEPTH = 20


def _plain(value: Any, depth: int) -> Any:
    if value is None or type(value) in (str, bool, int):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else not_finite(value)
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
