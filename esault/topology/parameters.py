"""The parameters of a topology function: what it takes, and `name=value` texts converted by annotations and defaults."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from esault.errors import LocateError
from esault.value_class import value_class

__all__ = ["Parameter", "check_params", "convert", "parameters"]

_TRUE = ("true", "yes", "on", "1")
_FALSE = ("false", "no", "off", "0")
_KINDS = "str, int, float, bool, Path, list[str], or Optional of these"

# What annotations are called in tables and messages.
_NAMES: Mapping[Any, str] = {
    str: "str",
    int: "int",
    float: "float",
    bool: "bool",
    Path: "Path",
    list[str]: "list[str]",
}
_EXPECTED: Mapping[str, str] = {
    "int": "a whole number",
    "float": "a number",
    "bool": f"one of {', '.join((*_TRUE, *_FALSE))}",
}


@value_class(frozen=True)
class Parameter:
    """One parameter of a topology function."""

    name: str
    #: "str", "int", "float", "bool", "Path" or "list[str]"; the annotation's own text if it is none of these
    kind: str
    #: what says its kind: "annotation", "default", or "" where nothing does
    said_by: str
    #: True when the annotation or the default allows None
    optional: bool
    #: True when the function gives no default
    required: bool
    default: Any = None

    @property
    def annotation(self) -> str:
        """The annotation, for people: "int", "int or none"."""
        return f"{self.kind} or none" if self.optional else self.kind

    @property
    def default_text(self) -> str:
        """The default as one would write it after `name=`; "" when there is none to write."""
        return "" if self.required else self.render(self.default)

    @property
    def _why(self) -> str:
        return f"its default is {self.default!r}" if self.said_by == "default" else f"it is annotated {self.annotation}"

    def __str__(self) -> str:
        return f"{self.name}: {self.annotation}" + ("" if self.required else f" = {self.default_text}")

    def render(self, value: Any) -> str:
        """`value` as a text that `parse` takes back; but for commas inside the texts of a list."""
        if value is None:
            return ""
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, (list, tuple)):
            return ",".join(map(str, value))
        return str(value)

    def parse(self, text: str) -> Any:
        """`text` as a value of the annotation; raises LocateError."""
        if self.optional and _means_none(self.kind, text):
            return None
        if self.kind not in _NAMES.values():
            raise LocateError(
                f"parameter {self.name!r}: its annotation {self.kind} cannot be set by a text; "
                f"what can: {_KINDS}. Its default remains"
            )
        try:
            return _PARSERS[self.kind](text)
        except ValueError:
            raise LocateError(
                f"parameter {self.name!r}: {text!r} is not {_EXPECTED[self.kind]} ({self._why})"
            ) from None


def parameters(function: Callable[..., Any]) -> list[Parameter]:
    """Return the parameters of `function`, in its order; raises LocateError for what cannot be passed by name.

    One without an annotation is of the type of its default. Annotations may be texts, as `from __future__ import annotations` makes them.
    """
    found = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise LocateError(
                f"parameter {parameter.name!r}: parameters are passed by name; leave out the `/` behind it"
            )
        kind, optional = _kind(parameter.annotation, function)
        required = parameter.default is parameter.empty
        said_by = "" if parameter.annotation is parameter.empty else "annotation"
        if not said_by and (of_default := _kind_of(parameter.default)) is not None:
            kind, said_by = of_default, "default"
        optional = optional or parameter.default is None
        found.append(
            Parameter(parameter.name, kind, said_by, optional, required, None if required else parameter.default)
        )
    return found


def convert(known: Sequence[Parameter], texts: Iterable[str]) -> dict[str, Any]:
    """`name=value` texts as arguments; what has a default and no text is left out. Raises LocateError."""
    by_name = {parameter.name: parameter for parameter in known}
    values: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals:
            raise LocateError(f"parameter {text!r}: write NAME=VALUE. {_known(known)}")
        if name not in by_name:
            raise _unknown(name, known)
        if name in values:
            raise LocateError(f"parameter {name!r} is given twice; give it once")
        values[name] = by_name[name].parse(value)
    check_params(known, values)
    return values


def check_params(known: Sequence[Parameter], params: Mapping[str, Any]) -> None:
    """Raise LocateError unless `params` has what is required and nothing that is unknown."""
    names = [parameter.name for parameter in known]
    for name in params:
        if name not in names:
            raise _unknown(name, known)
    missing = [parameter for parameter in known if parameter.required and parameter.name not in params]
    if missing:
        listed = ", ".join(f"{parameter.name}={parameter.kind.upper()}" for parameter in missing)
        raise LocateError(f"these parameters have no default and must be given: {listed}. {_known(known)}")


def _unknown(name: str, known: Sequence[Parameter]) -> LocateError:
    import difflib  # for this error alone

    close = difflib.get_close_matches(str(name), [parameter.name for parameter in known], n=1)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    return LocateError(f"there is no parameter {name!r}{hint} {_known(known)}")


def _known(known: Sequence[Parameter]) -> str:
    if not known:
        return "The topology function takes no parameters."
    return f"Parameters: {', '.join(map(str, known))}"


def _means_none(kind: str, text: str) -> bool:
    # "none" is a word, and may be the name of a file: there only the empty text means None.
    return text == "" or (kind in ("int", "float", "bool") and text.strip().lower() == "none")


def _parse_bool(text: str) -> bool:
    word = text.strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError(text)


def _parse_list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")] if text else []


_PARSERS: Mapping[str, Callable[[str], Any]] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": _parse_bool,
    "Path": Path,
    "list[str]": _parse_list,
}


def _kind_of(default: Any) -> str | None:
    """The kind of a default, for a parameter without an annotation; None: a text is given as it is."""
    if isinstance(default, Path):
        return "Path"
    if type(default) is list and default and all(type(item) is str for item in default):
        return "list[str]"
    return _NAMES.get(type(default))


def _kind(annotation: Any, function: Callable[..., Any]) -> tuple[str, bool]:
    """The annotation's name, and whether it allows None."""
    if annotation is inspect.Parameter.empty:
        return "str", False
    if isinstance(annotation, str):
        # One at a time: another annotation that cannot be resolved does no harm.
        alone = types.SimpleNamespace(__annotations__={"parameter": annotation})
        try:
            annotation = typing.get_type_hints(alone, getattr(inspect.unwrap(function), "__globals__", {}))["parameter"]
        except Exception:
            return annotation, False
    if annotation is Any:
        return "str", False
    optional = False
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        members = [a for a in typing.get_args(annotation) if a is not type(None)]
        optional = len(members) < len(typing.get_args(annotation))
        if len(members) == 1:
            annotation = members[0]
    if typing.get_origin(annotation) is list and typing.get_args(annotation) == (str,):
        annotation = list[str]  # typing.List[str] is not equal to it
    try:
        return _NAMES[annotation], optional
    except (KeyError, TypeError):
        # In Python 3.10 dict[str, int] passes for a type.
        plain = isinstance(annotation, type) and typing.get_origin(annotation) is None
        name = annotation.__name__ if plain else str(annotation)
        return name, optional
