"""From what a user names, `path.py:function` or a function object, to where it is."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from esault.errors import LocateError
from esault.topology.builder import Topology
from esault.topology.located import Located, loading

__all__ = ["Located", "loading", "locate", "locate_function"]

_PROMPT = (
    'A prompt has no file for other processes to import: there run(topology, engine="local"), or save the function in '
    "a file and run that"
)
_SHAPES = "a topology is named path.py, path.py:function or package.module:function"


def locate(spec: str) -> Located:
    """Read `path.py`, `path.py:function` or `package.module:function`; the function's default name is `topology`.

    The file must exist; it is not imported yet. Raises LocateError.
    """
    spec = os.fspath(spec)
    place, colon, function = spec.rpartition(":")
    if not colon:
        place, function = spec, "topology"
    elif not function.isidentifier():
        if place.endswith(".py"):
            raise LocateError(f"{spec!r}: {function!r} behind the colon is no function's name; {_SHAPES}")
        place, function = spec, "topology"  # the colon belongs to the path
    cwd = _here()
    if not place:
        raise LocateError(f"{spec!r} names no file; {_SHAPES}")
    if place.endswith(".py"):
        path = os.path.abspath(place)
        if os.path.isdir(path):
            raise LocateError(f"{place} is a folder; {_SHAPES}")
        if not os.path.exists(path):
            raise LocateError(f"there is no file {place} (looked in {os.path.dirname(path)}){_close(path)}")
        return Located(function, os.path.dirname(path), cwd, path=path)
    if all(part.isidentifier() for part in place.split(".")) and not os.path.isfile(place):
        if place == "__main__":
            raise LocateError(f"{spec!r}: name the file itself; {_SHAPES}")
        return Located(function, cwd, cwd, module=place)
    if os.path.isfile(place + ".py"):
        raise LocateError(f"{place} is no topology file; did you mean {place}.py?")
    raise LocateError(f"{place} is no Python file: its name does not end in .py; {_SHAPES}")


def _here() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise LocateError(
            "the folder in which this was started is not there any more; go to one that is, and start it again"
        ) from None


def _close(path: str) -> str:
    """A hint at a file of nearly that name."""
    folder, name = os.path.split(path)
    try:
        files = [file for file in os.listdir(folder) if file.endswith(".py") and file != name]  # a link to nothing
    except OSError:
        return "; the folder is not there either"
    import difflib  # for this error alone

    close = difflib.get_close_matches(name, files, n=1)
    return f"; did you mean {close[0]}?" if close else ""


def locate_function(function: Callable[..., Any]) -> Located:
    """Return the place that a function object comes from, so that other processes can import it; raises LocateError.

    It must stand at the top level of a file, be it a module or the script that was started.
    """
    if isinstance(function, Topology):
        raise LocateError(
            "pass the function that returns the topology, without calling it: run(topology), "
            "or with its arguments run(topology, {name: value})"
        )
    name, qualname = getattr(function, "__name__", None), getattr(function, "__qualname__", None)
    if not callable(function) or isinstance(function, type) or name is None or qualname is None:
        raise LocateError(f"{function!r} is no function; pass the function itself, and its arguments as params={{...}}")
    if name == "<lambda>":
        raise LocateError("a lambda has no name by which other processes could find it; write a def")
    if "." in qualname:
        raise LocateError(
            f"{qualname} stands inside a function or a class, where other processes do not find it; move it to the "
            "top level of its file, and pass what it needs as params={...} (a decorator needs functools.wraps)"
        )
    if loading() is not None:
        raise LocateError(
            f"{name} is run while {loading()} is being imported, which every process does; "
            'put the run(...) under `if __name__ == "__main__":`'
        )
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is not None and not os.path.isfile(code.co_filename):
        from esault.topology.notebook import cells, write_module  # few functions are of a notebook

        known = cells()
        if known is None or known[1].get(name) is not function:
            raise LocateError(f"{name} was not read from a file. {_PROMPT}")
        return Located(name, _here(), _here(), path=str(write_module(name, *known)))
    module = sys.modules.get(function.__module__)
    file = getattr(module, "__file__", None)
    if module is None or file is None:
        raise LocateError(f"{name} is in {function.__module__!r}, which has no file. {_PROMPT}")
    path = os.path.abspath(file)
    if not path.endswith(".py"):
        raise LocateError(f"{name} comes from {path}, which is no .py file")
    if vars(module).get(name) is not function:
        raise LocateError(
            f"{path} has another {name!r} at its top level than the one that was passed; "
            "give the function a name of its own there"
        )
    spec = module.__spec__
    dotted = spec.name if function.__module__ == "__main__" and spec is not None else function.__module__
    cwd = _here()
    root = _root(dotted, path)
    if root is not None and dotted != "__main__":
        return Located(name, root, cwd, module=dotted)
    return Located(name, os.path.dirname(path), cwd, path=path)


def _root(module: str, path: str) -> str | None:
    """The folder from which `module` is imported as the file `path`; None when there is none.

    It is on `sys.path`, or holds the package: one that is installed by `pip install -e` may be found by a hook of Python's instead.
    """
    parts = module.split(".")
    file = Path(path)
    folders = list(file.parents)
    if file.stem == "__init__":
        parts.append("__init__")
    if len(folders) < len(parts) or list(file.with_suffix("").parts[-len(parts) :]) != parts:
        return None
    root = str(folders[len(parts) - 1])
    if len(parts) > 1:
        package = getattr(sys.modules.get(parts[0]), "__file__", None)
        if package is not None and os.path.abspath(package) == os.path.join(root, parts[0], "__init__.py"):
            return root
    return root if root in {os.path.abspath(entry) for entry in sys.path} else None
