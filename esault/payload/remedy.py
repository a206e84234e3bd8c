"""Remedies: what to write instead of a value that cannot travel. The words are for the user's terminal."""

from __future__ import annotations

import enum
import types
from collections import defaultdict
from typing import Any

__all__ = ["known_remedy", "remedy", "type_name"]

#: full name of a type, or of a base of it, -> what to write; `{}` stands for the value
_BY_TYPE = {
    "builtins.memoryview": "use bytes({0})",
    "builtins.generator": "use list({0})",
    "builtins.dict_keys": "use list({0})",
    "builtins.dict_values": "use list({0})",
    "builtins.dict_items": "use list({0})",
    "builtins.map": "use list({0})",
    "builtins.filter": "use list({0})",
    "builtins.zip": "use list({0})",
    "builtins.coroutine": "await it first",
    "builtins.async_generator": "use a list of what it gives",
    "_io._IOBase": "open it in open(context), and keep its path",
    "_socket.socket": "connect it in open(context), and keep its address",
    "_thread.lock": "make it in open(context)",
    "_thread.RLock": "make it in open(context)",
    "threading.Thread": "start it in open(context)",
    **dict.fromkeys(
        [f"operator.{name}" for name in ("attrgetter", "itemgetter", "methodcaller")] + ["builtins.method_descriptor"],
        "write a function at the top of the file, by `def`, that does the same",
    ),
    "sqlite3.Connection": "connect it in open(context), and keep its path",
    "pyspark.sql.types.Row": "use {0}.asDict()",
    "re.Match": "use {0}.groups() or {0}.groupdict()",
}
#: also what can be a value, where it cannot be a key
_BY_TYPE_OF_KEY = {
    "builtins.complex": "use ({0}.real, {0}.imag)",
    "builtins.range": "use tuple({0})",
    "collections.deque": "use tuple({0})",
    "datetime.timedelta": "use {0}.total_seconds()",
    "datetime.time": "use {0}.isoformat()",
    "fractions.Fraction": "use ({0}.numerator, {0}.denominator)",
    "uuid.UUID": "use str({0})",
    "pathlib.PurePath": "use str({0})",
    "pathlib._local.PurePath": "use str({0})",
    "ipaddress._IPAddressBase": "use str({0})",
    "array.array": "use tuple({0})",
    "numpy.ndarray": "use tuple({0}.tolist())",
    "numpy.generic": "use {0}.item()",
}


def type_name(kind: type) -> str:
    """The type as its user would write it: `numpy.int64`, `Point`, `complex`."""
    module = str(kind.__module__).split(".")[0]
    if module in ("numpy", "pandas", "datetime", "decimal", "pathlib", "uuid", "collections"):
        return f"{module}.{kind.__qualname__}"
    return kind.__qualname__


def remedy(
    value: Any,
    name: str = "value",
    otherwise: str = "make it in open(context), or use a tuple, a dict, a str or numbers made from it",
) -> str:
    """Return what to write in place of `name`, which holds `value`; a clause that follows "cannot travel; " or "cannot be a key: "."""
    if isinstance(value, (types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType, type)):
        return "code does not travel: use a name or a number that stands for it"
    if isinstance(value, enum.Enum):
        return f"use {name}.value"
    known = known_remedy(value, name) or _find(_BY_TYPE_OF_KEY, value, name)
    if known is not None:
        return known
    if hasattr(value, "_asdict"):
        return f"use {name}._asdict()"
    return otherwise


def known_remedy(value: Any, name: str = "value") -> str | None:
    """Return what to do about a kind that is known to be no data; None for any other."""
    if isinstance(value, defaultdict) and getattr(value.default_factory, "__name__", "") == "<lambda>":
        return "its default is a lambda: use defaultdict(int), defaultdict(list), or a function at the top of the file, by `def`"
    found = _find(_BY_TYPE, value, name)
    if found is None and type(value).__module__ == "builtins" and hasattr(type(value), "__next__"):
        return "keep the list that it goes over, and how far it is"
    return found


def _find(remedies: dict[str, str], value: Any, name: str) -> str | None:
    for base in type(value).__mro__:
        expression = remedies.get(f"{base.__module__}.{base.__qualname__}")
        if expression is not None:
            return expression.format(name)
    return None
