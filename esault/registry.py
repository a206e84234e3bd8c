"""A registry: things of one kind by name, from the engine, from a program, from installed packages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Generic, TypeVar

from esault.errors import UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["Registry"]

T = TypeVar("T", bound=Callable[..., object])

#: characters with a meaning of their own where names are written on a command line
_MARKS = frozenset(":,= \t\n")


class Registry(Generic[T]):
    """Names and what they stand for.

    Three sources, asked in this order: the engine's own table, `register`, and the entry points of installed packages.
    Nothing is imported before its name is used.
    """

    def __init__(self, kind: str, group: str, built_in: Mapping[str, str], reserved: tuple[str, ...] = ()) -> None:
        """`kind` is the word for one of them in messages, `group` the group of entry points, `built_in` name -> "module:Class"."""
        self._kind = kind
        self._group = group
        self._built_in = dict(built_in)
        self._reserved = reserved
        self._registered: dict[str, T] = {}

    def register(self, name: str, made: T) -> None:
        """Add `made` under this name; in place of what was registered under it before. Raises UsageError for a name of the engine's."""
        if not isinstance(name, str) or not name or _MARKS & set(name):
            raise UsageError(f"{name!r} is no name of a {self._kind}: write a word without blanks, ':', ',' and '='")
        if name in self._built_in or name in self._reserved:
            raise UsageError(f"{self._kind} {name!r} is one of the engine's own: choose another name")
        if not callable(made):
            raise UsageError(
                f"{self._kind} {name!r}: {made!r} cannot be called; register a class, or a function that makes one"
            )
        self._registered[name] = made

    def unregister(self, name: str) -> None:
        """Take back what was registered; a name that was not is left alone."""
        self._registered.pop(name, None)

    @property
    def own(self) -> list[str]:
        """The names of the engine's own."""
        return list(self._built_in)

    def names(self) -> list[str]:
        """All names: the engine's, those registered, those of installed packages."""
        return list(dict.fromkeys([*self._built_in, *self._registered, *(e.name for e in self._installed())]))

    def find(self, name: str) -> T:
        """Return what this name stands for. Raises UsageError, naming what there is."""
        if name in self._registered:
            return self._registered[name]
        if name in self._built_in:
            module, _, attribute = self._built_in[name].partition(":")
            found: T = getattr(import_module(module), attribute)
            return found
        return self._loaded(self._entry_point(name))

    def place(self, name: str) -> str | None:
        """Return "module:Class", where that is known without importing it; None for what a program registered."""
        if name in self._registered:
            return None
        return self._built_in.get(name) or self._entry_point(name).value

    def _installed(self) -> list[EntryPoint]:
        from importlib.metadata import entry_points  # half as long to load as the rest of a policy's module

        return sorted(entry_points(group=self._group), key=lambda each: each.name)

    def _entry_point(self, name: str) -> EntryPoint:
        found = {each.value: each for each in self._installed() if each.name == name}
        if not found:
            known = ", ".join([*self.names(), *self._reserved])
            raise UsageError(f"there is no {self._kind} {name!r}; there are: {known}")
        if len(found) > 1:
            packages = " and ".join(sorted(_package(each) for each in found.values()))
            raise UsageError(f"{self._kind} {name!r} comes from {packages}: uninstall all of them but one")
        return next(iter(found.values()))

    def _loaded(self, point: EntryPoint) -> T:
        where = f"{self._kind} {point.name!r} of {_package(point)}"
        try:
            found: T = point.load()
        except Exception as error:
            raise UsageError(f"{where} cannot be loaded: {type(error).__name__}: {error}") from error
        if not callable(found):
            raise UsageError(f"{where}: {point.value} is no class, and no function that makes one")
        return found


def _package(point: EntryPoint) -> str:
    return f"the package {point.dist.name}" if point.dist is not None else point.value
