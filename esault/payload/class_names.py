"""Classes and functions that packed values may name: those of safe libraries, and the user's own.

Pickles name what they are made of, and a reader that fetched whatever is named would run whatever bytes say. Here a name means
something only if it stands in a list of types that hold data and do nothing else, or if it is defined in a module of the user's: one
that lies neither in Python's library nor among installed packages, or in a package that a topology has vouched for (`types=`).
Nothing else is looked up, no other module is imported, and no name reaches through a module into another one.

It is one module of over 300 lines: the writer and the reader must judge a name by the very same lists.
"""

from __future__ import annotations

import builtins
import contextlib
import dis
import importlib
import importlib.util
import os
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from esault.errors import FrameError, PayloadError
from esault.payload.loaded import being_loaded
from esault.payload.remedy import type_name

__all__ = ["TOPOLOGY_MODULES", "as_script", "check", "find", "is_own", "named", "topology_module", "vouch"]

#: what the names of modules begin with that topology files are imported under
TOPOLOGY_MODULES = "esault_topology_"

_NUMBERS = "bool int float complex str bytes bytearray list tuple dict set frozenset range slice"
_PURE = "abs all any len max min round sorted sum"
_ERRORS = [
    name for name, thing in vars(builtins).items() if isinstance(thing, type) and issubclass(thing, BaseException)
]
_RANDOM = "__generator_ctor __bit_generator_ctor __randomstate_ctor"

#: module -> names in it that hold data, or compute and do nothing else. `operator.attrgetter` and its kin are not among them: they
#: reach from any object to all that Python has.
_SAFE: dict[str, frozenset[str]] = {
    module: frozenset(names.split())
    for module, names in {
        "builtins": " ".join((_NUMBERS, _PURE, "Ellipsis NotImplemented", *_ERRORS)),
        "_io": "BytesIO StringIO",
        "array": "array _array_reconstructor",
        "collections": "ChainMap Counter OrderedDict UserDict UserList UserString defaultdict deque",
        "datetime": "date datetime time timedelta timezone",
        "decimal": "Decimal",
        "fractions": "Fraction",
        "functools": "partial",
        "http": "HTTPMethod HTTPStatus",
        "ipaddress": "IPv4Address IPv4Interface IPv4Network IPv6Address IPv6Interface IPv6Network",
        "itertools": "count",
        "math": "ceil cos exp fabs floor fsum hypot log log10 log2 prod sin sqrt tan trunc",
        "operator": "add and_ getitem floordiv mod mul neg or_ sub truediv",
        "pathlib": "Path PosixPath PurePath PurePosixPath PureWindowsPath WindowsPath",
        "random": "Random",
        "re": "_compile",
        "statistics": "NormalDist",
        "types": "GenericAlias SimpleNamespace",
        "urllib.parse": "DefragResult DefragResultBytes ParseResult ParseResultBytes SplitResult SplitResultBytes",
        "uuid": "SafeUUID UUID",
        "zoneinfo": "ZoneInfo",
        "msgpack.ext": "ExtType Timestamp",
        "msgspec._core": "UnsetType rebuild",
        "msgspec._utils": "rebuild",
        "esault.payload.rebuild": "array array_view arrow dtype_of logger member method none_type object_array scalar unset zone",
        "esault.topology.user_metrics": "kept",
        "esault.topology.window": "Window",
        "numpy": "ndarray dtype",
        "numpy.ma": "MaskedArray",
        "numpy.ma.core": "MaskedArray _mareconstruct",
        "numpy.random._pickle": _RANDOM,
        "numpy.random._generator": "Generator",
        "numpy.random._mt19937": "MT19937",
        "numpy.random._pcg64": "PCG64 PCG64DXSM",
        "numpy.random._philox": "Philox",
        "numpy.random._sfc64": "SFC64",
        "numpy.random.mtrand": "RandomState",
        "numpy.random.bit_generator": "SeedSequence __pyx_unpickle_SeedSequence",
        "pandas": "Interval Period Timedelta Timestamp",
        "pandas._libs.arrays": "__pyx_unpickle_NDArrayBacked",
        "pandas._libs.internals": "_unpickle_block",
        "pandas._libs.interval": "Interval __pyx_unpickle_IntervalMixin",
        "pandas._libs.missing": "NA NAType",
        "pandas._libs.tslibs.nattype": "__nat_unpickle _nat_unpickle",
        "pandas._libs.tslibs.period": "Period",
        "pandas._libs.tslibs.timedeltas": "Timedelta _timedelta_unpickle",
        "pandas._libs.tslibs.timestamps": "Timestamp _unpickle_timestamp",
        "pandas.core.frame": "DataFrame",
        "pandas.core.series": "Series",
        "pandas.core.indexes.base": "Index _new_Index",
        "pandas.core.indexes.datetimes": "DatetimeIndex _new_DatetimeIndex",
        "pandas.core.indexes.interval": "IntervalIndex _new_IntervalIndex",
        "pandas.core.indexes.period": "PeriodIndex _new_PeriodIndex",
        "pandas.core.internals.managers": "BlockManager SingleBlockManager",
        "pandas.core.arrays.string_": "StringDtype",
        "pandas.core.dtypes.dtypes": "ArrowDtype CategoricalDtype DatetimeTZDtype IntervalDtype PeriodDtype",
        "pydantic.networks": "AnyHttpUrl AnyUrl AnyWebsocketUrl FileUrl FtpUrl HttpUrl WebsocketUrl",
        "pydantic.types": "SecretBytes SecretStr",
        "pydantic_core._pydantic_core": "TzInfo Url",
        "freezegun.api": "FakeDate FakeDatetime",
        "pytz": "_UTC _p",
        "dateutil.tz.tz": "tzutc tzoffset",
    }.items()
}
#: modules all of whose classes hold data
_SAFE_MODULES = ("numpy.dtypes", "pandas.core.arrays", "pandas.core.indexes", "pandas._libs.tslibs.offsets")
#: the same things under other names, in other versions of Python and NumPy
_ALIASES = {
    "_operator": "operator",
    "pathlib._local": "pathlib",
    "_decimal": "decimal",
    "_pydecimal": "decimal",
    "_random": "random",
    "esault.windows": "esault.topology.window",
}

#: folders of what is installed
_LIBRARIES = tuple(
    {
        os.path.realpath(path) + os.sep
        for path in (
            *(sysconfig.get_paths().get(name, "") for name in ("stdlib", "platstdlib", "purelib", "platlib")),
            *(site.getsitepackages() if hasattr(site, "getsitepackages") else ()),
            os.path.dirname(os.path.dirname(os.path.abspath(__file__))),  # eSault itself
        )
        if path
    }
)
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")

#: packages, and single classes, that a topology of this process has vouched for
_vouched_packages: set[str] = set()
_vouched_classes: set[Any] = set()
#: "module.name" of a class that is gone -> the class that took its place
_moved: dict[str, Any] = {}
#: the module of the topology file that was imported last
_topology: list[ModuleType] = []
#: where cells of a notebook are written
_NOTEBOOK = os.path.join(".esault", "notebook")
#: the user's script, while it takes results over
_script: list[ModuleType] = []
#: (module, name) -> (the module, what is there)
_found: dict[tuple[str, str], tuple[ModuleType | None, Any]] = {}
#: classes and functions that were found under their own names
_checked: set[Any] = set()
_own: dict[str, bool] = {}
_MOST_KNOWN = 4096
#: modules that nothing asks for -> how much was loaded when that was seen
_unasked: dict[str, tuple[int, int]] = {}


def vouch(types: Iterable[Any], moved: Iterable[tuple[str, Any]] = ()) -> None:
    """Trust these classes, and packages by name, in this process; read classes that moved by their old names."""
    for each in types:
        if isinstance(each, str):
            _vouched_packages.add(each)
        else:
            _vouched_classes.add(each)
    _moved.update(moved)
    forget()


def forget() -> None:
    """Forget all look-ups: a name may mean another thing now."""
    _found.clear()
    _own.clear()
    _checked.clear()
    _unasked.clear()


def topology_module(module: ModuleType) -> None:
    """This is the topology's own file now: a class of it is found here, wherever the file lay when the class was named."""
    _topology[:] = [module]
    _found.clear()
    _unasked.clear()


def is_own(name: Any) -> bool:
    """Return whether a module of this name is the user's own."""
    if type(name) is not str:  # a type that was made in C may say anything
        return False
    found = _own.get(name)
    if found is None:
        if len(_own) >= _MOST_KNOWN:
            _own.clear()
        found = _own[name] = _judge(name)
    return found


def _judge(name: str) -> bool:
    if name == "__main__" or name.startswith(TOPOLOGY_MODULES):
        return True
    package = name.partition(".")[0]
    if package in _vouched_packages or any(name == each or name.startswith(each + ".") for each in _vouched_packages):
        return True
    module = sys.modules.get(name)
    if module is not None:
        file = getattr(module, "__file__", None)
        if file is None:
            spec = getattr(module, "__spec__", None)
            # one that the user made by hand; Cython makes some for itself
            return spec is None and name not in sys.builtin_module_names and not name.startswith("_cython")
    else:
        if package in sys.builtin_module_names or package in sys.stdlib_module_names or package == "esault":
            return False
        if "." in name and not is_own(name.rpartition(".")[0]):
            return False  # looking for it would import what it is in
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError, AttributeError):
            return False
        file = None if spec is None else spec.origin
        if file is None:
            folders = list(spec.submodule_search_locations or ()) if spec is not None else []
            return bool(folders) and not any(map(_is_installed, folders))
    return not _is_installed(file)


def _is_installed(file: str) -> bool:
    real = os.path.realpath(file)
    return real.startswith(_LIBRARIES) or any(each in real for each in _INSTALLED)


def find(module: str, name: str) -> Any:
    """The class or function of this name. Raises FrameError for what may not be named, or is not there."""
    known = _found.get((module, name))
    if known is not None and (known[0] is None or sys.modules.get(known[0].__name__) is known[0]):
        return known[1]
    if len(_found) >= _MOST_KNOWN:
        _found.clear()
    home, thing = _look_up(module, name)
    _found[module, name] = home, thing
    return thing


def _look_up(module: str, name: str) -> tuple[ModuleType | None, Any]:
    if _moved:
        for given in (f"{module}.{name}", f"{_short(module)}.{name}"):
            if given in _moved:
                return None, _moved[given]
    module = _ALIASES.get(module, module)
    if module.startswith(("numpy.core", "numpy._core")):
        raise FrameError(f"{module}.{name} is not what eSault writes of NumPy")
    if _is_safe(module, name):
        return _import(module), _walk(_import(module), module, name)
    for each in _vouched_classes:
        if each.__module__ == module and each.__qualname__ == name:
            return None, each
    if not is_own(module):
        raise FrameError(
            f"they name {module}.{name}, which is neither a type that eSault knows nor the user's own; if you trust it, "
            f"say Topology(..., types=({module.partition('.')[0]!r},))"
        )
    if module.startswith(TOPOLOGY_MODULES) and _script:
        with contextlib.suppress(FrameError):  # a cell may have taken it away since
            thing = _walk(_script[-1], module, name)
            if isinstance(thing, (type, FunctionType)) or is_own(type(thing).__module__):
                return _script[-1], thing
    if module.startswith(TOPOLOGY_MODULES) and module not in sys.modules:
        if not _topology:
            raise FrameError(f"they name {name} of a topology file, and none is loaded here")
        home = _topology[0]
    else:
        home = _import(module)
    thing = _walk(home, module, name)
    if isinstance(thing, type) or type(thing) is FunctionType:
        if thing.__module__ == home.__name__ and thing.__qualname__ == name:
            return home, thing
        if isinstance(thing, type) and (thing in _vouched_classes or is_own(thing.__module__)):
            return home, thing
    elif is_own(type(thing).__module__) and not isinstance(thing, ModuleType) and "." not in name:
        return home, thing  # a singleton of the user's own that says its name
    elif (_vouched(module) and isinstance(thing, (BuiltinFunctionType, type(find)))) or (
        _vouched(module) and callable(thing) and getattr(thing, "__module__", None) == home.__name__
    ):
        return home, thing
    raise FrameError(f"they name {module}.{name}, which is defined elsewhere and no class or function of that module")


def _short(module: str) -> str:
    """The name of a topology's module as its user knows it: the stem of the file."""
    if not module.startswith(TOPOLOGY_MODULES):
        return module
    return module[len(TOPOLOGY_MODULES) :].rpartition("_")[0]


def _vouched(module: str) -> bool:
    return any(module == each or module.startswith(each + ".") for each in _vouched_packages)


def _is_safe(module: str, name: str) -> bool:
    if name in _SAFE.get(module, ()):
        return True
    if module == "numpy" and name.isidentifier():
        numpy = _import("numpy")
        thing = vars(numpy).get(name)
        return isinstance(thing, type) and issubclass(thing, numpy.generic)
    if not module.startswith(_SAFE_MODULES) or not name.isidentifier():
        return False
    thing = vars(_import(module)).get(name)
    return isinstance(thing, type) and thing.__module__.partition(".")[0] == module.partition(".")[0]


def _import(module: str) -> ModuleType:
    found = sys.modules.get(module)
    if found is not None:
        if being_loaded(found):
            importlib.import_module(module)  # waits for the thread that is at it
        return found
    if is_own(module) and not _is_asked_for(module):
        found = _from_package(module)
        if found is not None:
            return found
        raise FrameError(
            f"they name a type of {module}, which is not imported here, and nothing that is imported asks for it; import it at the top of "
            "the topology's file"
        )
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise FrameError(f"they name a type of {module}, which cannot be imported here: {error}") from error


def _from_package(module: str) -> ModuleType | None:
    """Return a module that comes with a package which is asked for, as `sklearn.linear_model._base` does with sklearn.linear_model."""
    package = module.rpartition(".")[0]
    while package:
        if package not in sys.modules and _is_asked_for(package):
            with contextlib.suppress(ImportError):
                importlib.import_module(package)
            return sys.modules.get(module)
        package = package.rpartition(".")[0]
    return None


def _is_asked_for(module: str) -> bool:
    """Return whether a function of the user's, in a module that is loaded, would import this one: bytes do not choose."""
    # Each piece of state whose class is gone asks, and to look through thousands of functions takes milliseconds. A notebook
    # defines more of them without a module.
    loaded_now = (len(sys.modules), len(vars(sys.modules["__main__"])))
    if _unasked.get(module) == loaded_now:
        return False
    # `from a.b import c` names a.b and c; a module that is asked for ends with one of the names of some code.
    ends = {module[i:] for i in range(len(module)) if i == 0 or module[i - 1] == "."}
    for name, loaded in list(sys.modules.items()):
        if loaded is not None and is_own(name):
            for thing in list(vars(loaded).values()):
                methods = list(vars(thing).values()) if isinstance(thing, type) else [thing]
                for each in methods:
                    code = getattr(getattr(each, "__func__", each), "__code__", None)
                    if isinstance(code, CodeType) and _imports(code, ends):
                        return True
    if len(_unasked) >= _MOST_KNOWN:
        _unasked.clear()
    _unasked[module] = loaded_now
    return False


def _imports(code: CodeType, ends: set[str]) -> bool:
    """Return whether the code, or one within it, imports something of such a name."""
    # Few have the name at all: taking all code apart took minutes where hundreds of modules are loaded.
    if not ends.isdisjoint(code.co_names) and any(
        step.opname in ("IMPORT_NAME", "IMPORT_FROM") and step.argval in ends for step in dis.get_instructions(code)
    ):
        return True
    return any(_imports(each, ends) for each in code.co_consts if isinstance(each, CodeType))


def _walk(home: ModuleType, module: str, name: str) -> Any:
    """Return the object under this name, through classes and nothing else."""
    thing: Any = home
    for part in name.split("."):
        if thing is not home and not isinstance(thing, type):
            raise FrameError(f"they name {module}.{name}, which is in no class")
        try:
            thing = vars(thing)[part]
        except KeyError:
            raise FrameError(
                f"they name {module}.{name}, and {_short(module)} has no {part} here; if it was renamed, say "
                f"Topology(..., moved={{{_short(module) + '.' + name!r}: TheNewClass}}), with the class itself on the right"
            ) from None
        if isinstance(thing, (staticmethod, classmethod)):
            thing = thing.__func__
    return thing


def _worth_vouching(cls: Any, package: str) -> str:
    """Return what to vouch for: a package, or of Python's library, in which there is much that acts, the class alone."""
    if package == "builtins":
        return ""
    return str(cls.__qualname__) if package in sys.stdlib_module_names else repr(package)


def check(thing: Any) -> None:
    """Check that a class or function can be named. Raises PayloadError, with what to do."""
    if thing in _checked:
        return
    name, module = getattr(thing, "__qualname__", None), getattr(thing, "__module__", None)
    kind = "class" if isinstance(thing, type) else "function"
    if module is None and isinstance(thing, BuiltinFunctionType):
        module = "builtins"
    if not isinstance(name, str) or not isinstance(module, str):
        raise PayloadError(f"{kind} {thing!r} has no name to find it by")
    if "<lambda>" in name:
        raise PayloadError(
            "a lambda cannot travel; write a function at the top of the file, by `def`, or functools.partial of one"
        )
    if "<locals>" in name:
        raise PayloadError(
            f"{kind} {name} is defined inside a function, where other processes cannot find it; define it at the top of the file"
        )
    try:
        found = find(module, name)
    except FrameError:
        found = None
    if found is not thing:
        if found is not None or is_own(module):
            raise PayloadError(
                f"{kind} {name} is not what {_short(module)}.{name} is; define it once, at the top of the file"
            )
        if kind == "class":
            vouched = _worth_vouching(thing, module.partition(".")[0])
            raise PayloadError(
                f"{type_name(thing)} is a class of {module}, of which eSault does not know that it only holds data; keep plain values of "
                f"it, {'or ' if not vouched else ''}make it in open(context)"
                + (f", or vouch for it: Topology(..., types=({vouched},))" if vouched else "")
            )
        raise PayloadError(
            f"code does not travel: {module}.{name} is no function of your own; use a name that stands for it"
        )
    if len(_checked) >= _MOST_KNOWN:
        _checked.clear()
    _checked.add(thing)


@contextlib.contextmanager
def as_script(path: str | None) -> Iterator[None]:
    """Within: classes of the topology file `path` are those of the user's script, where that is the same file, or of the notebook
    from whose cells it was written.

    A script that runs its own topology gets results back; an order among them is to be one of its own class of orders.
    """
    main = sys.modules.get("__main__")
    file = getattr(main, "__file__", None)
    if path is None:
        same = False
    elif file is None:
        same = os.path.dirname(path).endswith(_NOTEBOOK)
    else:
        same = os.path.realpath(file) == os.path.realpath(path)
    if main is None or not same:
        yield
        return
    _script.append(main)
    _found.clear()
    try:
        yield
    finally:
        _script.pop()
        _found.clear()


def named() -> list[type]:
    """Classes of the user's that were named in this process, by writing or by reading: bytes that are kept as they came may name them."""
    things = {*_checked, *(thing for _, thing in _found.values() if isinstance(thing, type))}
    return [thing for thing in things if isinstance(thing, type) and is_own(thing.__module__)]
