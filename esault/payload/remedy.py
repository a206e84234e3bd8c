"""Remedies: what to write instead of a value that cannot travel. The words are for the user's terminal."""

from __future__ import annotations

import dataclasses
import enum
import types
from typing import Any

__all__ = ["remedy", "type_name"]

#: full name of a type, or of a base of it, -> what to write; `{}` stands for the value
_BY_TYPE = {
    "builtins.complex": "({0}.real, {0}.imag)",
    "builtins.range": "tuple({0})",
    "builtins.generator": "tuple({0})",
    "builtins.dict_keys": "tuple({0})",
    "builtins.dict_values": "tuple({0})",
    "builtins.dict_items": "tuple({0})",
    "builtins.map": "tuple({0})",
    "builtins.filter": "tuple({0})",
    "builtins.zip": "tuple({0})",
    "collections.deque": "tuple({0})",
    "collections.UserDict": "{0}.data",
    "collections.UserList": "{0}.data",
    "collections.UserString": "str({0})",
    "datetime.timedelta": "{0}.total_seconds()",
    "datetime.time": "{0}.isoformat()",
    "fractions.Fraction": "({0}.numerator, {0}.denominator)",
    "uuid.UUID": "str({0})",
    "pathlib.PurePath": "str({0})",
    "pathlib._local.PurePath": "str({0})",
    "ipaddress._IPAddressBase": "str({0})",
    "array.array": "{0}.tolist()",
    "numpy.ndarray": "{0}.tolist()",
    "numpy.generic": "{0}.item()",
    "pandas.core.frame.DataFrame": '{0}.to_dict("records")',
    "pandas.core.series.Series": "{0}.tolist()",
    "pyspark.sql.types.Row": "{0}.asDict()",
}


def type_name(kind: type) -> str:
    """The type as its user would write it: `numpy.int64`, `Point`, `complex`."""
    module = kind.__module__.split(".")[0]
    if module in ("numpy", "pandas", "datetime", "decimal", "pathlib", "uuid", "collections"):
        return f"{module}.{kind.__qualname__}"
    return kind.__qualname__


def remedy(value: Any, name: str = "value") -> str:
    """What to write in place of `name`, which holds `value`; a clause that follows "cannot travel; "."""
    if isinstance(value, (types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType, type)):
        return "code does not travel: use a name or a number that stands for it"
    if isinstance(value, enum.Enum):
        return f"use {name}.value"
    if dataclasses.is_dataclass(value):
        return f"use dataclasses.asdict({name}) or a tuple of its fields"
    for base in type(value).__mro__:
        expression = _BY_TYPE.get(f"{base.__module__}.{base.__qualname__}")
        if expression is not None:
            return f"use {expression.format(name)}"
    if hasattr(value, "_asdict"):
        return f"use {name}._asdict()"
    return "use a tuple, a dict, a str or numbers made from it"
