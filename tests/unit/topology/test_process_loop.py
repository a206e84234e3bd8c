"""A `process` that is written out does what calling it does, or is called."""

from __future__ import annotations

import contextlib
import importlib.util
import linecache
import traceback

import pytest

from esault import Bolt
from esault.topology import process_source
from esault.topology.process_loop import process_loop

LIMIT = 3


class Simple(Bolt):
    def process(self, key, value):
        self.emit(key, str(value) + "!")


class BothComputed(Bolt):
    def process(self, word, count):
        """Its arguments are named otherwise."""
        self.emit(str(word).upper(), [count, self.more(word)])

    def more(self, word):
        self.emit("more", word)
        return 1


class Mapped(Bolt):
    def process(self, key, value):
        """One for one."""
        self.emit(key, [each * 2 for each in range(value)])


class MappedByHelper(Mapped):
    """What it calls could emit, too."""

    def more(self, key, value):
        self.emit(key, value)


class MappedByAnother(Mapped):
    def open(self, context):
        context.add(self)


class MappedOfBoth(Bolt):
    def process(self, key, value):
        self.emit(key, (key, value))


class Sides(Bolt):
    def process(self, key, value):
        self.emit(key, value, stream="beside")
        self.emit(value=value, key=key)
        emit = self.emit
        emit(key, 0)


class WaysOut(Bolt):
    def process(self, key, value):
        if value == 2:
            return
        for i in range(value):
            if i == LIMIT:
                break
            if i == 1:
                continue
            self.emit(key, i)
        else:
            self.emit(key, "all")
            return
        self.emit(key, -1)


class Tries(Bolt):
    def process(self, key, value):
        try:
            each = 6 // (value - 2)
        except ZeroDivisionError as error:
            self.emit(key, str(error))
            return
        with contextlib.suppress(KeyError):
            if each < 0:
                raise KeyError
            self.emit(key, each)
        self.emit((key, 1)[0], "end")


class Private(Bolt):
    def __init__(self):
        self.__total = 0
        self.rows = []

    def process(self, key, value):
        self.__total += value
        self.rows.append([each + value for each in range(value)])
        total: int = self.__total
        key, value = value, key
        while total > 2:
            total -= 3
        self.emit(key, (value, total))


class Derived(Private):
    def again(self):
        return super().process


class Maybe(Bolt):
    """What is not set would be that of the tuple before."""

    def process(self, key, value):
        if value:
            found = value
        self.emit(key, found)


class Later(Bolt):
    def process(self, key, value):
        for each in range(value):
            if each:
                self.emit(key, before)  # noqa: F821
            before = each  # noqa: F841


class Kept(Bolt):
    def process(self, key, value):
        self.emit(key, (lambda: value)())  # noqa: PLC3002


class Looks(Bolt):
    def process(self, key, value):
        self.emit(key, sorted(locals()))


class Above(Simple):
    def process(self, key, value):
        super().process(key, value)


class OneLine(Bolt):
    def process(self, key, value): self.emit(key, value)  # fmt: skip


class OutOfLoop(Bolt):
    def process(self, key, value):
        for each in range(value):
            if each:
                return
            self.emit(key, each)


class Replaced(Bolt):
    def __init__(self):
        self.process = print

    def process(self, key, value):
        self.emit(key, value)


class Sets(Simple):
    def open(self, context):
        setattr(self, "emit", print)


class More(Bolt):
    def process(self, key, value, more=1):
        self.emit(key, more)


def decorated(function):
    def inner(self, key, value):
        function(self, key, value)

    return inner


class Decorated(Bolt):
    @decorated
    def process(self, key, value):
        self.emit(key, value)


def closed_over(what):
    class Within(Bolt):
        def process(self, key, value):
            self.emit(key, what)

    return Within


def free():
    class Within(Bolt):
        def process(self, key, value):
            self.emit(key, value)

    return Within


MAPPED = [Simple, Mapped, free()]
WRITTEN = [
    *MAPPED,
    MappedByHelper,
    MappedByAnother,
    MappedOfBoth,
    BothComputed,
    Sides,
    WaysOut,
    Tries,
    Private,
    Derived,
]
CALLED = [
    *(Maybe, Later, Kept, Looks, Above, OneLine, OutOfLoop, Replaced, Sets, More, Decorated, closed_over(1)),
    *(Bolt, type("NoSource", (Bolt,), {"process": lambda self, key, value: None})),
]
ROWS = [("a", 0), ("b", 5), ("a", 2), ("c", 1), ("b", 3), ("a", 7), ("a", 4)]


class Emits:
    """A unit's class with its columns."""

    def __init__(self, cls):
        self.keys, self.values, self.beside = [], [], []
        columns = self

        def emit(self, key, value, stream=None):
            if stream is None:
                columns.keys.append(key)
                columns.values.append(value)
            else:
                columns.beside.append((key, value))

        self.cls: type[Bolt] = type(cls.__name__, (cls,), {"emit": emit})

    def state(self, *objects):
        return self.keys, self.values, self.beside, [each.__getstate__() for each in objects]


def _rows(keyed, objects):
    """Return the tuples; with the object of each key where there is one per key, but that of "b" is still to be looked up."""
    return ((key, value, None if key == "b" else objects[key]) for key, value in ROWS) if keyed else iter(ROWS)


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("cls", WRITTEN)
def test_what_is_written_out_does_what_calls_do(cls, keyed):
    called, written = Emits(cls), Emits(cls)
    objects = {key: called.cls() for key in "abc"} if keyed else dict.fromkeys("abc", called.cls())
    lengths = []
    for key, value in ROWS:
        lengths.append(len(called.keys))
        objects[key].process(key, value)
    loop = process_loop(written.cls)
    assert loop is not None
    assert loop.stands_for(written.cls.process)
    others = {key: written.cls() for key in "abc"} if keyed else written.cls()
    begins: list = []
    loop.loop(keyed, True)(_rows(keyed, others), others, written.keys, written.values, begins)
    assert begins == lengths
    assert written.state(*(others.values() if keyed else [others])) == called.state(
        *(objects.values() if keyed else [objects["a"]])
    )
    plainly = Emits(cls)
    others = {key: plainly.cls() for key in "abc"} if keyed else plainly.cls()
    loop.loop(keyed, False)(_rows(keyed, others), others, plainly.keys, plainly.values, begins)
    assert (plainly.keys, plainly.values) == (called.keys, called.values)
    assert len(begins) == len(ROWS)


@pytest.mark.parametrize("cls", WRITTEN)
def test_what_makes_one_of_one_is_a_loop_over_values_where_nothing_else_can_emit(cls):
    called, written = Emits(cls), Emits(cls)
    loop = process_loop(written.cls)
    assert loop.maps == (cls in MAPPED)
    if loop.maps:
        bolt = called.cls()
        for key, value in ROWS:
            bolt.process(key, value)
        assert loop.map()(iter([value for _, value in ROWS])) == called.values
        assert (written.keys, written.values) == ([], [])
        assert called.keys == [key for key, _ in ROWS]


@pytest.mark.parametrize("cls", CALLED)
def test_what_cannot_be_written_out_is_called(cls):
    assert process_loop(Emits(cls).cls) is None


def test_tracebacks_show_the_users_lines():
    emits = Emits(Simple)

    class Bad:
        def __str__(self):
            raise ValueError("bad")

    with pytest.raises(ValueError, match="bad") as caught:
        process_loop(emits.cls).loop(False, False)(iter([("a", Bad())]), emits.cls(), emits.keys, emits.values, [])
    frames = traceback.extract_tb(caught.value.__traceback__)
    called = Emits(Simple)
    with pytest.raises(ValueError, match="bad") as again:
        called.cls().process("a", Bad())
    shown = traceback.extract_tb(again.value.__traceback__)
    assert [(f.filename, f.name, f.lineno, f.line) for f in frames[1:]] == [
        (f.filename, f.name, f.lineno, f.line) for f in shown[1:]
    ]
    assert not process_loop(emits.cls).between(caught.value)
    assert emits.keys == emits.values == []


def test_tracebacks_of_a_loop_over_values_show_the_users_lines_once():
    class Bad:
        def __str__(self):
            raise ValueError("bad")

    loop = process_loop(Emits(Simple).cls)
    values = iter([1, Bad(), 3])
    with pytest.raises(ValueError, match="bad") as caught:
        loop.map()(values)
    called = Emits(Simple)
    with pytest.raises(ValueError, match="bad") as again:
        called.cls().process("a", Bad())
    frames, shown = (traceback.extract_tb(each.value.__traceback__)[1:] for each in (caught, again))
    assert [(f.filename, f.name, f.lineno) for f in frames] == [(f.filename, f.name, f.lineno) for f in shown]
    assert frames[0].name == "process"
    assert not loop.between(caught.value)
    assert list(values) == [3]


def test_what_raises_between_two_values_is_no_error_of_its_process():
    def fails():
        yield 1
        raise RuntimeError("not read")

    loop = process_loop(Emits(Simple).cls)
    with pytest.raises(RuntimeError) as caught:
        loop.map()(fails())
    assert loop.between(caught.value)
    assert [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)] == ["fails"]


def test_an_object_that_cannot_be_made_is_no_error_of_its_process():
    class Fails(dict):
        def __missing__(self, key):
            raise RuntimeError("not made")

    emits = Emits(Simple)
    loop = process_loop(emits.cls)
    with pytest.raises(RuntimeError) as caught:
        loop.loop(True, False)(iter([("a", 1, None)]), Fails(), emits.keys, emits.values, [])
    assert loop.between(caught.value)
    assert [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)] == ["__missing__"]


def test_a_file_that_has_changed_since_it_was_loaded_is_not_what_runs(tmp_path, monkeypatch):
    source = "from esault import Bolt\nimport json\n\nclass Mine(Bolt):\n    def process(self, key, value):\n        self.emit(key, json.dumps(%s))\n"

    def loaded(text):
        file.write_text(text)
        spec = importlib.util.spec_from_file_location("mine", file)
        found = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found)
        return found.Mine

    file = tmp_path / "mine.py"
    cls = loaded(source % "value")
    assert process_loop(cls) is not None
    file.write_text(source % "key")
    linecache.checkcache(str(file))
    assert process_loop(cls) is None
    file.write_text("not Python")
    linecache.checkcache(str(file))
    assert process_loop(cls) is None
    file.unlink()
    linecache.checkcache(str(file))
    assert process_loop(cls) is None


def test_what_is_put_in_place_of_process_later_is_called(monkeypatch):
    class Mine(Simple):
        pass

    loop = process_loop(Mine)
    assert loop.stands_for(Mine.process)
    with monkeypatch.context() as patch:
        patch.setattr(Simple, "process", lambda self, key, value: None)
        assert not loop.stands_for(Mine.process)
    with monkeypatch.context() as patch:
        patch.setattr(Simple.process, "__code__", WaysOut.process.__code__)
        assert not loop.stands_for(Mine.process)
    assert loop.stands_for(Mine.process)
    assert process_loop(Mine).loop(False, False) is not None


def test_a_module_that_takes_long_to_parse_is_left_as_it_is(monkeypatch):
    monkeypatch.setattr(process_source, "MOST_TEXT", 100)
    assert process_loop(Simple) is None
