"""The format of a CSV file: its delimiter, the names of its fields, and the types that texts are made into."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from esault.errors import TopologyError

__all__ = ["CsvFormat"]

_TRUTHS = {"true": True, "1": True, "yes": True, "t": True, "y": True}
_TRUTHS |= {"false": False, "0": False, "no": False, "f": False, "n": False}


def _truth(text: str) -> bool:
    try:
        return _TRUTHS[text.strip().lower()]
    except KeyError:
        raise ValueError(f"{text!r} is neither true nor false") from None


def _datetime(text: str) -> datetime:
    # Python 3.10 does not know Z
    return datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith(("Z", "z")) else text)


#: a type that is no function of the text as it stands -> such a function
_READERS: dict[Any, Any] = {bool: _truth, datetime: _datetime, date: date.fromisoformat}
_KNOWN = (str, int, float, bool, Decimal, datetime, date)


class CsvFormat:
    """Way from lines to rows. Raises TopologyError for what cannot be."""

    def __init__(
        self,
        header: bool | Sequence[str],
        delimiter: Any,
        quotechar: Any,
        types: Mapping[Any, Any] | None,
        key: str | Callable[[dict[str, Any]], Any] | None,
    ) -> None:
        given: Any = header
        named = isinstance(given, Sequence) and not isinstance(given, (str, bytes))
        if given is not True and not (named and given and all(isinstance(name, str) for name in given)):
            raise TopologyError(
                f"header={header!r}: write True, where the first line of each file names the fields, or a list of their names"
            )
        if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in "\r\n":
            raise TopologyError(f'delimiter={delimiter!r}: write one character, such as "," or "\\t"')
        if quotechar is not None and (not isinstance(quotechar, str) or len(quotechar) != 1):
            raise TopologyError(f"quotechar={quotechar!r}: write one character, or None where no field is quoted")
        if key is not None and not isinstance(key, str) and not callable(key):
            raise TopologyError(f"key={key!r}: write the name of a field, or a function of the row")
        if types is not None and not isinstance(types, Mapping):
            raise TopologyError(f"types={types!r}: write a dict, such as {{'amount': float}}")
        for name, kind in (types or {}).items():
            if not isinstance(name, str) or not callable(kind):
                known = ", ".join(each.__name__ for each in _KNOWN)
                raise TopologyError(f"types={{{name!r}: {kind!r}}}: write {known}, or a function of the text")
        self.names = None if given is True else list(given)
        self.delimiter, self.quotechar = delimiter, quotechar
        self.types: dict[str, Any] = dict(types or {})
        self.key = key
        if self.names is not None:
            self.places(self.names)

    def records(self, lines: Any) -> Any:
        """Return csv's reader of these lines: each record a list of texts. It raises csv.Error for what is no CSV."""
        if self.quotechar is None:
            return csv.reader(lines, delimiter=self.delimiter, quoting=csv.QUOTE_NONE, strict=True)
        return csv.reader(lines, delimiter=self.delimiter, quotechar=self.quotechar, strict=True)

    def places(self, names: Sequence[str]) -> list[tuple[int, str, Callable[[str], Any]]]:
        """Return which fields are made into what: their places, types' names and functions. Raises TopologyError for a name that is
        not there, and for one that is there twice."""
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise TopologyError(
                f"two fields are named {twice[0]!r}; name the fields with header=[...], and leave the first line out"
            )
        wanted = [*self.types, *([self.key] if isinstance(self.key, str) else [])]
        for name in wanted:
            if name not in names:
                raise TopologyError(f"there is no field {name!r}; there are {', '.join(map(repr, names))}")
        return [
            (names.index(name), getattr(kind, "__name__", repr(kind)), _READERS.get(kind, kind))
            for name, kind in self.types.items()
            if kind is not str
        ]
