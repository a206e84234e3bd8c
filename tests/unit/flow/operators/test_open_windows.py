"""The open windows of a key, and bounds that are kept as long as there are not too many."""

from __future__ import annotations

from esault.flow.operators.open_windows import KEPT, Bounds, Late, OpenWindows, owned
from esault.windows import Window


class Operator:
    def __init__(self):
        self.bounds = Bounds(lambda index: Window(10.0 * index, 10.0 * index + 10))
        self.opened = []

    def open(self, windows, index):
        self.opened.append((windows.key, index))
        windows[index] = f"object {index}"
        return windows[index]

    def packed(self, element):
        return element.encode()

    def restored(self, key, window, packed):
        return key, window, packed


def test_bounds_of_one_window_are_one_object_and_many_are_forgotten():
    made = []
    bounds = Bounds(lambda index: made.append(index) or Window(index, index + 1))
    assert bounds[3] is bounds[3]
    assert made == [3]
    assert bounds.ends([(3, b""), (5, b"", 1)]) == [4, 6]
    for index in range(10, 10 + KEPT - 2):
        assert bounds[index].start == index
    assert len(bounds) == KEPT
    assert bounds[3] == Window(3, 4)
    assert bounds[-1] == Window(-1, 0)
    assert len(bounds) == 1  # those that are open are asked for again
    assert bounds[3] == Window(3, 4)
    assert made.count(3) == 2


def test_a_window_is_opened_when_its_first_row_comes_and_comes_back_with_its_bounds():
    operator, other = Operator(), Operator()
    windows = owned(OpenWindows, operator)()
    windows.key = "k"
    assert windows[4] == "object 4"
    assert windows[4] == "object 4"
    assert windows[2] == "object 2"
    assert operator.opened == [("k", 4), ("k", 2)]
    assert windows.objects() == ["object 4", "object 2"]
    state = windows.__getstate__()
    assert state == ((4, b"object 4"), (2, b"object 2"))
    back = owned(OpenWindows, other)()
    back.key = "k"
    back.__setstate__(state)
    assert dict(back) == {
        4: ("k", Window(40.0, 50.0), b"object 4"),
        2: ("k", Window(20.0, 30.0), b"object 2"),
    }
    assert other.opened == []
    assert back.of is other
    assert not hasattr(back, "__dict__")  # there may be one for each key


def test_what_is_late_is_processed_by_whom_it_names():
    taken = []
    Late(lambda key, value: taken.append((key, value))).process("k", 1)
    assert taken == [("k", 1)]
