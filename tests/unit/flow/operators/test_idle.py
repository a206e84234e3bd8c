"""Vector 6.5 of the paper's specification: sweeps at 0, 30, 60, 90 s; and finer sweeps."""

import pytest

from esault.flow.operators.idle import IdleSweep


def removed_at(tuples, generations=1, until=300.0):
    """When a key whose tuples come at these times is removed."""
    sweep, used, known, todo = IdleSweep(30.0, 0.0, generations), set(), set(), sorted(tuples)
    now = 0.0
    while now <= until:
        while todo and todo[0] <= now:
            used.add("k")
            known.add("k")
            todo.pop(0)
        if sweep.due(now):
            sweep.use(used)
            used = set()
            if any("k" in names for names in sweep.sweep(now, known)):
                return now
        now = round(now + 0.1, 1)
    return None


@pytest.mark.parametrize(("tuples", "at"), [([1], 60), ([29.9], 60), ([30.1], 90), ([1, 45], 90)])
def test_the_papers_sweeps(tuples, at):
    assert removed_at(tuples) == pytest.approx(at)


def test_more_generations_come_closer_to_the_time_asked_for():
    assert 31 <= removed_at([1], generations=4) <= 40


def test_a_key_that_is_used_is_never_removed():
    assert removed_at([t * 20 for t in range(15)], until=280) is None


def test_names_are_looked_at_some_a_step():
    sweep, names = IdleSweep(30.0, 0.0), range(1000)
    looked = []

    def seen():
        for name in names:
            looked.append(name)
            yield name

    assert sum(map(len, sweep.sweep(30.0, names))) == 0  # all are flagged
    steps = sweep.sweep(60.0, seen())
    idle = next(steps)
    assert len(idle) == len(looked) < 100
    assert [*idle, *(name for some in steps for name in some)] == list(names)
