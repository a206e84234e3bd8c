"""A timeline of months has room, tells all of the run, and nothing twice."""

from __future__ import annotations

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from esault.ui.web import history
from esault.ui.web.history import History
from esault.ui.web.thinning import thinned


def window(number, t, rate=10.0, p99=5.0, width=1, waiting=0):
    return number, {"t": t, "units": {"count": [rate, 1.0, p99, width, waiting]}}


def tuples(windows):
    """What all windows together say was processed."""
    before, total = 0.0, 0.0
    for _, each in windows:
        total += each["units"]["count"][0] * (each["t"] - before)
        before = each["t"]
    return total


@given(
    spans=st.lists(st.floats(0.5, 40), min_size=1, max_size=300),
    most=st.integers(8, 60),
    share=st.floats(0.1, 0.6),
    data=st.data(),
)
def test_what_is_thinned_again_and_again_keeps_its_counts_and_its_newest(spans, most, share, data):
    fine = max(1, int(most * share))
    kept, all_windows, t = [], [], 0.0
    for number, span in enumerate(spans):
        t += span
        each = window(number, t, rate=data.draw(st.integers(0, 1000)), width=number % 7)
        all_windows.append(each)
        kept.append(each)
        if len(kept) > most:
            kept = thinned(kept, fine, most)
            assert len(kept) <= max(fine + 1, (most + fine) // 2)
            assert kept[-fine:] == all_windows[-fine:]
    assert abs(tuples(kept) - tuples(all_windows)) <= 1e-6 * max(1.0, tuples(all_windows))
    numbers = [number for number, _ in kept]
    assert numbers == sorted(set(numbers)) and numbers[-1] == len(spans) - 1  # who has seen the last has seen all
    by_end = {each["t"]: each["units"]["count"][3] for _, each in all_windows}
    assert all(each["units"]["count"][3] == by_end[each["t"]] for _, each in kept)  # the width at the end of each


def test_windows_of_one_age_stand_for_the_same_time():
    kept = []
    for second in range(1, 20_001):
        kept.append(window(second, float(second), p99=100.0 if second == 5 else 1.0, waiting=second % 10))
        if len(kept) > 3600:
            kept = thinned(kept, 900, 3600)
    ends = [each["t"] for _, each in kept]
    lengths = [b - a for a, b in zip([0.0, *ends], ends)]
    assert set(lengths[-900:]) == {1.0}
    assert lengths[0] == max(lengths) <= 32  # 20 000 s in 3 600 windows
    old = [length for length, end in zip(lengths, ends) if end < 10_000]
    assert max(old) <= 4 * min(old)
    assert kept[0][1]["units"]["count"][2] == 100.0  # a bad second is still seen
    assert kept[0][1]["units"]["count"][4] == 9


def test_what_is_not_known_is_no_number():
    a, b = (
        window(1, 1.0),
        (2, {"t": 2.0, "units": {"count": [None, None, 7.0, 2, None], "late": [1.0, None, None, 1, 0]}}),
    )
    ((number, each),) = thinned([a, b, window(3, 3.0)], 1, 2)[:1]
    assert (number, each["t"]) == (2, 2.0)
    assert each["units"] == {"count": [10.0, 1.0, 7.0, 2, 0], "late": [1.0, None, None, 1, 0]}


def test_a_new_reader_is_told_of_the_whole_run_and_an_old_one_of_what_is_new(monkeypatch):
    monkeypatch.setattr(history, "WINDOWS", 40)
    monkeypatch.setattr(history, "FINE", 10)
    told = History()
    told.see(SimpleNamespace())
    for second in range(1, 501):
        told.window(float(second), {"count": [1.0, None, None, 1, 0]})
    told.end(0)
    text = b"".join(told.events()).decode()
    (line,) = [line for line in text.splitlines() if '"units"' in line]
    assert line.count('"t"') <= 40 and '"t": 500.0' in line
