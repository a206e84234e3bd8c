"""Packed values that somebody else made: nothing runs that is not the user's own, whatever bytes say."""

from __future__ import annotations

import builtins
import contextlib
import dis
import functools
import os
import pickle
import pickletools
import struct
import subprocess
import sys
import types

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esault.errors import FrameError
from esault.payload import class_names
from esault.payload.codec import Codec
from esault.payload.packed_rows import Rows
from tests.unit.payload import kinds

codec = Codec()
ROWS = 89


def call(function, *args):
    """An object whose pickle calls a function."""

    class Calls:
        def __reduce__(self):
            return function, args

    return Calls()


def named(module: str, name: str, *args: str) -> bytes:
    """A pickle that calls what is found under a name, by opcodes, as nothing of Python's would write it."""

    def text(value: str) -> bytes:
        return b"\x8c" + bytes([len(value)]) + value.encode()

    arguments = b"(" + b"".join(map(text, args)) + b"t"
    return b"\x80\x05" + text(module) + text(name) + b"\x93" + arguments + b"R."


def chain() -> bytes:
    """getattr(__import__("os"), "system")("true"): each call gives what the next one is made of."""
    start = named("builtins", "__import__", "os")[2:-1]
    return b"\x80\x05\x8c\x08builtins\x8c\x07getattr\x93(" + start + b"\x8c\x06systemtR(\x8c\x04truetR."


ATTACKS = {
    "os.system": pickle.dumps(call(os.system, "true")),
    "posix.system": named("posix", "system", "true"),
    "eval": pickle.dumps(call(eval, "1")),
    "exec": pickle.dumps(call(exec, "1")),
    "open": pickle.dumps(call(open, "/tmp/esault-hostile", "w")),
    "import": pickle.dumps(call(__import__, "os")),
    "getattr": pickle.dumps(call(getattr, 1, "real")),
    "partial of system": pickle.dumps(functools.partial(os.system, "true")),
    "partial of eval": pickle.dumps(functools.partial(eval, "1")),
    "popen": pickle.dumps(call(subprocess.Popen, ["true"])),
    "attrgetter": named("operator", "attrgetter", "__class__"),
    "itemgetter": named("operator", "itemgetter", "__class__"),
    "methodcaller": named("operator", "methodcaller", "__class__"),
    "an unimported module": named("antigravity", "fly"),
    "an unimported module of the library": named("this", "s"),
    "an unimported package": named("pip", "main"),
    "through a module of the user's": named("tests.unit.payload.kinds", "functools.reduce"),
    "a module in a module of the user's": named("tests.unit.payload.kinds", "re"),
    "imported into a module of the user's": named("tests.unit.payload.test_values_hostile", "named_by_import"),
    "through a class to what all classes have": named("tests.unit.payload.kinds", "Plain.__init__.__globals__"),
    "the engine's own": named("esault.payload.class_names", "vouch", "os"),
    "a way to import": named("importlib", "import_module", "os"),
    "code": named("types", "CodeType"),
    "a function made by hand": named("types", "FunctionType"),
    "a file mapped to memory": named("numpy", "memmap", "/tmp/esault-hostile"),
    "a file of Arrow": named("pyarrow.lib", "OSFile", "/tmp/esault-hostile", "w"),
    "a pickle in a pickle": named("pickle", "loads", "x"),
    "a pickle by NumPy": named("numpy", "load", "/tmp/esault-hostile"),
    "a file by pandas": named("pandas", "read_pickle", "/tmp/esault-hostile"),
    "a chain": chain(),
    "protocol 0": b"cos\nsystem\n(S'true'\ntR.",
    "protocol 1 by INST": b"(S'true'\nios\nsystem\n.",
    "persistent": b"Pabc\n.",
    "an extension of copyreg": b"\x82\x01.",
    "dunder of a safe type": named("collections", "Counter.__init__"),
    "a safe type's way out": named("random", "Random.__reduce__"),
}

named_by_import = os.system


def forms(attack: bytes):
    yield b"\xc1" + attack
    yield msgpack.packb(msgpack.ExtType(ROWS, b"P" + attack))
    yield msgpack.packb(msgpack.ExtType(ROWS, b"M" + attack))
    yield msgpack.packb(msgpack.ExtType(ROWS, b"E" + struct.pack(">I", 1) + attack))
    yield msgpack.packb(msgpack.ExtType(ROWS, b"C" + attack))
    yield msgpack.packb((1, 2, 3, 4, [msgpack.ExtType(ROWS, b"D" + attack)]))


@pytest.mark.parametrize("name", ATTACKS)
def test_nothing_is_run_and_nothing_imported(name, monkeypatch):
    called = []
    for module, function in ((os, "system"), (builtins, "eval"), (builtins, "exec"), (subprocess, "Popen")):
        monkeypatch.setattr(module, function, lambda *args, _name=function: called.append(_name))
    before = set(sys.modules)
    for data in forms(ATTACKS[name]):
        with pytest.raises(FrameError):
            codec.unpack(data)
    assert not called
    new = {module.partition(".")[0] for module in set(sys.modules) - before}
    assert new <= {"pyarrow", "numpy", "pandas", "collections", "random"}
    assert not os.path.exists("/tmp/esault-hostile")


def test_a_class_of_the_users_is_called_and_what_it_imported_is_not():
    assert codec.unpack(b"\xc1" + named("tests.unit.payload.kinds", "Plain", "x")) == kinds.Plain("x")
    with pytest.raises(FrameError, match="defined elsewhere"):
        codec.unpack(b"\xc1" + named("tests.unit.payload.kinds", "NAMED"))


def test_methods_are_found_only_if_the_user_wrote_them():
    def bound(owner: str, name: str) -> bytes:
        return b"\xc1" + pickle.dumps(call(kinds_method, owner, name))

    from esault.payload.rebuild import method as kinds_method

    for name in ("__init__", "__reduce__", "__class__", "__getattribute__", "upper", "format"):
        with pytest.raises(FrameError):
            codec.unpack(bound("a text", name))


def test_a_module_of_the_users_is_imported_if_their_code_asks_for_it_and_not_else(tmp_path, monkeypatch):
    (tmp_path / "esault_test_models.py").write_text("class Order:\n    pass\n")
    (tmp_path / "esault_test_wipes_all.py").write_text("raise SystemExit('a script beside it, which ran')\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("esault_test_models", "esault_test_wipes_all"):
        with pytest.raises(FrameError, match="not imported here, and nothing that is imported asks for it"):
            codec.unpack(b"\xc1" + named(name, "Order"))

    loaded = types.ModuleType("esault_test_topology")
    exec("def process(value):\n    from esault_test_models import Order\n    return Order()", vars(loaded))
    monkeypatch.setitem(sys.modules, loaded.__name__, loaded)
    made = codec.unpack(b"\xc1" + named("esault_test_models", "Order"))
    assert type(made).__name__ == "Order"
    del sys.modules["esault_test_models"]
    class_names.forget()


def test_a_module_that_comes_with_a_package_which_is_asked_for_is_found(tmp_path, monkeypatch):
    """As a model's class stands in sklearn.linear_model._base, and code imports it from sklearn.linear_model."""
    package = tmp_path / "esault_test_learn" / "linear"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").write_text("")
    (package / "__init__.py").write_text("from esault_test_learn.linear._base import Model\n")
    (package / "_base.py").write_text("class Model:\n    pass\n")
    (package / "_script.py").write_text("raise SystemExit('nothing asks for it')\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(class_names, "_vouched_packages", {"esault_test_learn"})
    class_names.forget()
    loaded = types.ModuleType("esault_test_topology")
    monkeypatch.setitem(sys.modules, loaded.__name__, loaded)
    with pytest.raises(FrameError, match="nothing that is imported asks for it"):
        codec.unpack(b"\xc1" + named("esault_test_learn.linear._base", "Model"))
    exec("def load():\n    from esault_test_learn.linear import Model\n    return Model()", vars(loaded))
    class_names.forget()
    with pytest.raises(FrameError, match="nothing that is imported asks for it"):
        codec.unpack(b"\xc1" + named("esault_test_learn.linear._script", "Model"))
    made = codec.unpack(b"\xc1" + named("esault_test_learn.linear._base", "Model"))
    assert type(made).__name__ == "Model"
    for name in [name for name in sys.modules if name.startswith("esault_test_learn")]:
        del sys.modules[name]
    class_names.forget()


def test_who_asks_for_a_module_is_looked_for_again_only_when_more_is_loaded(tmp_path, monkeypatch):
    (tmp_path / "esault_test_unasked.py").write_text("class Order:\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    class_names.forget()
    seen: list[set[str]] = []
    imports = class_names._imports
    monkeypatch.setattr(class_names, "_imports", lambda code, ends: seen.append(ends) or imports(code, ends))

    def looked():
        seen.clear()
        with pytest.raises(FrameError, match="nothing that is imported asks for it"):
            class_names.find("esault_test_unasked", "Order")
        return bool(seen)

    assert [looked(), looked()] == [True, False]
    loaded = types.ModuleType("esault_test_loaded")
    monkeypatch.setitem(sys.modules, loaded.__name__, loaded)
    assert [looked(), looked()] == [True, False]
    monkeypatch.setattr(sys.modules["__main__"], "esault_test_cell", looked, raising=False)
    assert [looked(), looked()] == [True, False]


def small(data: bytes) -> bool:
    """Whether a pickle names no place of memory that would have to be made first: more than there is of it, in the worst case."""
    with contextlib.suppress(Exception):
        return all("PUT" not in code.name or argument < 1 << 20 for code, argument, _ in pickletools.genops(data))
    return b"r" not in data


packed = st.sampled_from([codec.pack_value([value]) for value in kinds.VALUES if not isinstance(value, (int, str))])


@settings(max_examples=600, deadline=None)
@given(packed, st.data())
def test_damaged_values_give_a_value_or_an_error(data, draw):
    broken = bytearray(data)
    for _ in range(draw.draw(st.integers(1, 3))):
        broken[draw.draw(st.integers(1, len(broken) - 1))] = draw.draw(st.integers(0, 255))
    if small(bytes(broken[1:])):
        with contextlib.suppress(FrameError, MemoryError):
            codec.unpack(bytes(broken))


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([[{"a": 1, "b": "x"}] * 9, [kinds.D(1)] * 9, [kinds.N(1)] * 9, [1, "a", 2.5] * 20]), st.data())
def test_damaged_columns_give_rows_or_an_error(rows, draw):
    broken = bytearray(codec.pack(Rows(rows)))
    for _ in range(draw.draw(st.integers(1, 3))):
        broken[draw.draw(st.integers(0, len(broken) - 1))] = draw.draw(st.integers(0, 255))
    if b"r" not in broken:  # see `small`
        with contextlib.suppress(FrameError, MemoryError):
            codec.unpack(bytes(broken))


def test_code_that_does_not_name_a_module_is_not_taken_apart_to_look_for_it(monkeypatch):
    """Where hundreds of modules are loaded, taking all of them apart took minutes at each restore."""
    taken = []
    get = dis.get_instructions
    monkeypatch.setattr(dis, "get_instructions", lambda code: taken.append(code) or get(code))
    assert not class_names._is_asked_for("nobody.asks.for_this_one")
    assert not taken
