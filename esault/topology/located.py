"""The place of a topology function, as plain values; and the way from there to a topology, the same in every process.

Code is imported, never pickled: each process imports the file under a name of its own and calls the function.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.machinery
import importlib.util
import inspect
import os
import pkgutil
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import Any

from esault.errors import EsaultError, LocateError
from esault.payload.class_names import TOPOLOGY_MODULES, topology_module, vouch
from esault.topology.builder import Topology
from esault.topology.parameters import Parameter, check_params, parameters
from esault.value_class import value_class

__all__ = ["Located", "loading"]


class _Loading(threading.local):
    """The files that this thread is importing right now, the innermost last."""

    def __init__(self) -> None:
        self.sources: list[str] = []


_loading = _Loading()

# One thread at a time: another one would find a module in `sys.modules` whose body has not run to its end.
_importing = threading.RLock()


def _renew_lock() -> None:
    global _importing
    _importing = threading.RLock()


# A thread that held it is not in a forked process, and would never give it back.
os.register_at_fork(after_in_child=_renew_lock)


def loading() -> str | None:
    """Return the topology file that this thread is importing right now; None when there is none.

    Code that runs topologies asks: a `run` that comes from an import lacks its `if __name__ == "__main__":`. What other
    threads import does not count: two runs may begin at once.
    """
    return _loading.sources[-1] if _loading.sources else None


@value_class(frozen=True)
class Located:
    """The place of a topology function: plain values, which any process with the same files can use."""

    #: name of the function
    function: str
    #: the folder that must be on `sys.path`
    folder: str
    #: the folder in which the command was started; relative paths in the topology mean this one
    cwd: str
    #: the file, absolute; None when it is imported by `module`
    path: str | None = None
    #: the module's name; None when it is imported by `path`
    module: str | None = None

    def __str__(self) -> str:
        return f"{self.source}:{self.function}"

    @property
    def source(self) -> str:
        """The file or the module, as a user would write it."""
        if self.path is None:
            return str(self.module)
        return os.path.relpath(self.path, self.cwd) if self.path.startswith(self.cwd + os.sep) else self.path

    def load_module(self) -> ModuleType:
        """Import the file under a name of its own, never `__main__`, or take it if it is imported and unchanged.

        Puts `folder` on `sys.path`. Raises LocateError, with the user's exception as its cause.
        """
        if self.folder not in sys.path:
            sys.path.insert(0, self.folder)
        with _importing:
            _loading.sources.append(self.source)
            try:
                return self._import_path(self.path) if self.path is not None else self._import_module(str(self.module))
            except EsaultError:
                raise
            except (Exception, SystemExit) as error:
                raise LocateError(
                    f"{self.source} cannot be imported: {self._say(error)}{self._as_module(error)}"
                ) from error
            finally:
                _loading.sources.pop()

    def load_function(self) -> Callable[..., Any]:
        """The topology function itself; raises LocateError."""
        module = self.load_module()
        found = vars(module).get(self.function)
        if isinstance(found, Topology):
            raise LocateError(
                f"{self}: {self.function!r} is a Topology; it must be a function that returns one, since each "
                f"process builds its own: def {self.function}(): ... return t"
            )
        if found is not None and (isinstance(found, type) or not callable(found)):
            raise LocateError(f"{self}: {self.function!r} is {found!r}, not a function that returns a Topology")
        if found is None:
            if self._stands_in_script():
                raise LocateError(
                    f"{self.source}: {self.function!r} is there only where the file is the script that runs: other processes, which import "
                    'the file, do not find what stands under `if __name__ == "__main__":`; move it above that'
                )
            raise LocateError(f"{self.source} has no function {self.function!r}{self._functions(module)}")
        function: Callable[..., Any] = found
        return function

    def parameters(self) -> list[Parameter]:
        """Return the parameters of the function."""
        return parameters(self.load_function())

    def build(self, params: Mapping[str, Any] | None = None) -> Topology:
        """Call the function with `params`; raises LocateError, or the TopologyError that the function ran into."""
        function, params = self.load_function(), params or {}
        try:
            check_params(parameters(function), params)
        except LocateError as error:
            raise LocateError(f"{self}: {error}") from None
        try:
            topology = function(**params)
        except EsaultError:
            raise
        except (Exception, SystemExit) as error:
            raise LocateError(f"{self} failed: {self._say(error)}") from error
        if not isinstance(topology, Topology):
            if inspect.iscoroutine(topology):
                topology.close()
            hint = "; is `return t` missing?" if topology is None else ""
            raise LocateError(
                f"{self} returned {topology!r} ({type(topology).__name__}), and must return a Topology{hint}"
            )
        return topology

    def _import_path(self, path: str) -> ModuleType:
        try:
            stat = os.stat(path)
        except OSError as error:
            raise LocateError(f"{self.source} cannot be read: {error.strerror}: {path}") from error
        digest = hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:8]
        name = f"{TOPOLOGY_MODULES}{Path(path).stem}_{digest}".replace(".", "_")
        stamp = (stat.st_mtime_ns, stat.st_size)
        module = sys.modules.get(name)
        if module is not None and vars(module).get("__esault_stamp__") == stamp:
            topology_module(module)
            return module
        loader = _SourceLoader(name, path)
        spec = importlib.machinery.ModuleSpec(name, loader, origin=path)
        spec.has_location = True
        module = importlib.util.module_from_spec(spec)
        vars(module)["__esault_stamp__"] = stamp
        with _registered(name, module):
            loader.exec_module(module)
        topology_module(module)
        return module

    def _import_module(self, name: str) -> ModuleType:
        importlib.invalidate_caches()  # the file may have been written a moment ago
        try:
            module = importlib.import_module(name)
            vouch((name.partition(".")[0],))  # also one that is installed is the user's own
            return module
        except ModuleNotFoundError as error:
            # Only if the module itself is missing, not one that it imports.
            if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
                parent, _, last = name.rpartition(".")
                hint = "a file is named with its ending, as in words.py"
                if callable(getattr(sys.modules.get(parent), last, None)):
                    hint = f"{last} is a function of {parent}: write {parent}:{last}"
                raise LocateError(
                    f"there is no module {error.name!r} (looked in {self.folder} and on the Python path); {hint}"
                ) from None
            raise

    def _stands_in_script(self) -> bool:
        """Return whether the function is one of this process's script, which is this file."""
        script = sys.modules.get("__main__")
        file, spec = getattr(script, "__file__", None), getattr(script, "__spec__", None)
        if self.path is None:
            same = spec is not None and spec.name == self.module
        else:
            same = file is not None and os.path.realpath(file) == os.path.realpath(self.path)
        return same and inspect.isfunction(vars(script).get(self.function))

    def _functions(self, module: ModuleType) -> str:
        """The functions that one may have meant: those that say they return a Topology, or all public ones."""
        own = {
            name: thing
            for name, thing in vars(module).items()
            if inspect.isfunction(thing) and not name.startswith("_") and thing.__module__ == module.__name__
        }
        typed = [
            name
            for name, function in own.items()
            if function.__annotations__.get("return") in (Topology, "Topology", "esault.Topology")
        ]
        if typed:
            return f"; it has {', '.join(typed)}: write {self.source}:{typed[0]}"
        inside = [each.name for each in pkgutil.iter_modules(getattr(module, "__path__", ()))]
        if not own and inside:
            return f"; it is a package: name the module of it that has one: {', '.join(f'{self.source}.{name}' for name in inside)}"
        if not own:
            return "; it defines no public function: write `def topology() -> Topology:`"
        return f"; if one of {', '.join(own)} returns a Topology, write {self.source}:NAME"

    def _as_module(self, error: BaseException) -> str:
        """Return how to name a file of a package, where it imports its neighbours as such; else nothing."""
        if self.path is None or not isinstance(error, ImportError):
            return ""
        folders = list(Path(self.path).parents)
        missing, beside = str(error.name).partition(".")[0], 0
        if "no known parent package" in str(error):
            depth = next((i for i, folder in enumerate(folders) if not (folder / "__init__.py").exists()), 0) or 1
        else:
            depth = next((i for i, folder in enumerate(folders, 1) if folder.name == error.name), 0)
            if not depth:
                depth = beside = next((i for i, folder in enumerate(folders) if i and _holds(folder, missing)), 0)
        if not depth or depth >= len(folders):
            return ""
        module = ".".join([*reversed([folder.name for folder in folders[:depth]]), Path(self.path).stem])
        if not all(part.isidentifier() for part in module.split(".")):
            return ""
        where = "" if str(folders[depth]) == self.cwd else f", in {folders[depth]}"
        named = module if self.function == "topology" else f"{module}:{self.function}"
        if beside:
            return f". {missing} lies in {folders[depth]}: name the file as a module, {named}{where}"
        return f". It imports as a module of the package {folders[depth - 1].name}: name it as one, {named}{where}"

    def _say(self, error: BaseException) -> str:
        """Return the exception's message, and on which line; its traceback then starts in the user's file."""
        place = ""
        trace = _from_file(error.__traceback__, self.path)
        if trace is None and isinstance(error, SyntaxError):
            # its text shows the place; the frames on the way are those of the importer
            error.__traceback__ = None
        if trace is not None:
            error.__traceback__ = trace
            while trace is not None:
                if self.path is not None and trace.tb_frame.f_code.co_filename == self.path:
                    place = f" (line {trace.tb_lineno} of {self.source})"
                trace = trace.tb_next
        if isinstance(error, SystemExit):
            return f"it ended the process by sys.exit({error.code!r}){place}"
        return f"{type(error).__name__}: {error}{place}"


def _holds(folder: Path, name: str) -> bool:
    """Return whether a module or a package of that name lies there."""
    return (folder / f"{name}.py").is_file() or any((folder / name).glob("*.py"))


class _SourceLoader(importlib.machinery.SourceFileLoader):
    """Always compiles: cached bytecode is told apart by whole seconds, and a notebook's cell is saved faster."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


@contextlib.contextmanager
def _registered(name: str, module: ModuleType) -> Iterator[None]:
    """Keep the module in `sys.modules` unless its body fails; dataclasses and annotations look for it there."""
    before = sys.modules.get(name)
    sys.modules[name] = module
    try:
        yield
    except BaseException:
        del sys.modules[name]
        if before is not None:
            sys.modules[name] = before
        raise


def _from_file(trace: TracebackType | None, path: str | None) -> TracebackType | None:
    """The part of a traceback from the file on; None when the file is not in it."""
    while trace is not None and trace.tb_frame.f_code.co_filename != path:
        trace = trace.tb_next
    return trace
