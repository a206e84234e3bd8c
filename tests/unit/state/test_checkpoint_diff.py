"""Two checkpoints compared, and one made of another by a function of the user's."""

from __future__ import annotations

import itertools

import pytest

from esault.cli.main import main
from esault.errors import UsageError
from esault.messages.checkpoint import CompletedCheckpoint, CompletedUnit
from esault.messages.splits import SplitPlace
from esault.payload.codec import Codec
from esault.payload.timed_state import EVENT, with_timers
from esault.state.checkpoint_diff import differences
from esault.state.checkpoint_view import CheckpointView
from esault.state.rewrite import rewrite_checkpoint
from esault.state.state_dir import StateDir
from esault.state.state_store import FileStateStore

CODEC = Codec()
INCARNATIONS = itertools.count(1)


def bolt(store, number, *chains, objects="key", in_flight=()):
    """Each chain: a list of pieces, each a dict of key -> state; None: the key is gone."""
    made = []
    for chain in chains:
        pieces, incarnation = [], next(INCARNATIONS)
        for i, states in enumerate(chain):
            file = store.create(number + i, incarnation, i == 0)
            for key, state in states.items():
                packed = state if state is None or type(state) is bytes else CODEC.pack_value(state)
                file.add(key, packed)
            pieces.append(file.finish({}).result())
        made.append(tuple(pieces))
    return CompletedUnit("bolt", objects, len(chains), tuple(made), in_flight=in_flight)


def files(**splits):
    return CompletedUnit(
        "spout", "sub-unit", 1, splits={name: SplitPlace(CODEC.pack_value(at), False) for name, at in splits.items()}
    )


@pytest.fixture
def state_dir(tmp_path):
    made = StateDir(tmp_path / "state")
    yield made
    made.close()


def keep(state_dir, number, name, **units):
    store = FileStateStore(state_dir.path)
    made = {each: make(store, number) if callable(make) else make for each, make in units.items()}
    kept = CompletedCheckpoint(number, "r", made, completed_at=1.0, topology="words")
    state_dir.keep(kept)
    return CheckpointView(state_dir.savepoints.create(kept, name))


def count(*chains, **more):
    return lambda store, number: bolt(store, number, *chains, **more)


def test_keys_are_compared_wherever_they_are_and_however_they_were_written(state_dir):
    a = keep(
        state_dir, 1, "a",
        count=count([{"cat": {"n": 1}, "dog": {"n": 2}}, {"dog": None, "owl": {"n": 3}}], [{1: {"n": 1}, None: {"w": 9}}]),
        lines=files(a=1, b=2),
    )  # fmt: skip
    b = keep(
        state_dir, 11, "b",
        count=count([{"cat": {"n": 1}, "elk": {"n": 5}, True: {"n": 1}}, {"owl": {"n": 4}}]),
        lines=files(a=1, b=3, c=0),
    )  # fmt: skip
    found = {each.name: each for each in differences(a, b)}
    it = found["count"]
    assert (it.added, it.removed, it.changed, it.same) == (2, 1, 1, 1)
    assert [(one.key, one.before, one.after) for one in it.first] == [
        ("elk", None, '{"n": 5}'),
        ("true", None, '{"n": 1}'),
        ("owl", '{"n": 3}', '{"n": 4}'),
        ("1", '{"n": 1}', None),
    ]
    at = found["lines"]
    assert (at.kind, at.added, at.removed, at.changed, at.same) == ("spout", 1, 0, 1, 1)
    assert [(one.key, one.before, one.after) for one in at.first] == [("b", "2", "3"), ("c", None, "0")]


def test_equal_and_of_another_type_is_changed_and_in_another_order_is_not(state_dir):
    a = keep(state_dir, 1, "a", count=count([{"x": {"n": 1}, "y": {"s": [{1, 2}]}}]))
    b = keep(state_dir, 11, "b", count=count([{"x": {"n": 1.0}, "y": {"s": [{2, 1}]}}]))
    (it,) = differences(a, b)
    assert (it.changed, it.same, it.first[0].before, it.first[0].after) == (1, 1, '{"n": 1}', '{"n": 1.0}')


def test_units_that_are_gone_new_or_renamed(state_dir):
    a = keep(state_dir, 1, "a", count=count([{"x": {"n": 1}}]), old=count([{"y": {}}]))
    b = keep(state_dir, 11, "b", tally=count([{"x": {"n": 1}}]), new=count([{"z": {}}]))
    found = [(each.name, each.added, each.removed, each.same) for each in differences(a, b, renames={"count": "tally"})]
    assert found == [("tally", 0, 0, 1), ("new", 1, 0, 0), ("old", 0, 1, 0)]
    assert [each.name for each in differences(a, b, unit="count")] == ["count"]


def test_no_more_keys_are_kept_than_are_shown(state_dir):
    a = keep(state_dir, 1, "a", count=count([{}]))
    b = keep(state_dir, 11, "b", count=count([{f"k{i}": {"n": i} for i in range(50)}]))
    (it,) = differences(a, b, limit=3)
    assert (it.count, len(it.first)) == (50, 3)


def test_the_command_counts_first_and_names_checkpoints_by_number_too(state_dir, capsys):
    keep(state_dir, 1, "a", count=count([{"cat": {"n": 1}}]))
    keep(state_dir, 11, "b", count=count([{"cat": {"n": 2}, "dog": {"n": 1}}]))
    with pytest.raises(SystemExit) as ended:
        main(["checkpoint", "diff", f"{state_dir.path}/a", f"{state_dir.path}@11", "--limit", "1"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.splitlines() == [
        "count: 1 key added, 0 removed, 1 changed, 0 the same",
        '~ count\tcat\t{"n": 1} -> {"n": 2}',
        "  count: 1 of 2 are shown; --limit shows more",
    ]
    with pytest.raises(SystemExit) as ended:
        main(["checkpoint", "diff", f"{state_dir.path}/a", f"{state_dir.path}/b", "--unit", "cuont"])
    assert ended.value.code == 2
    assert "there is no unit 'cuont' in either; there are: count" in capsys.readouterr().err


# rewriting ------------------------------------------------------------------------------------------


def states(view, unit="count"):
    return dict(view.states(unit))


def rewritten(state_dir, view, function, name="new"):
    path, counts = rewrite_checkpoint(view, function, state_dir.savepoints, name)
    made = StateDir(path, locked=False).newest()  # each file is what the manifest says
    assert made[1] == []
    return CheckpointView(path), {each.unit: (each.changed, each.removed, each.same) for each in counts}


def test_a_savepoint_is_made_of_another_which_stays(state_dir):
    before = keep(
        state_dir, 1, "a",
        count=count([{"cat": {"n": 1}, "dog": {"n": 2}}, {"cat": {"n": 3}}], [{"owl": {"n": 4}, None: {"w": 9}}, {"owl": None}]),
        other=count([{"x": {"n": 1}}]),
        empty=count(),
        lines=files(a=1),
    )  # fmt: skip

    def rewrite(unit, key, state):
        if unit == "other":
            return state
        state["n"] *= 10
        return None if key == "dog" else state

    after, counts = rewritten(state_dir, before, rewrite)
    assert (states(after), states(after, "other")) == ({"cat": {"n": 30}}, {"x": {"n": 1}})
    assert states(before) == {"cat": {"n": 3}, "dog": {"n": 2}}
    assert counts == {"count": (1, 1, 0), "other": (0, 0, 1)}
    assert after.checkpoint.units["lines"] == before.checkpoint.units["lines"]
    # what stands under no key is what it was
    unit = after.checkpoint.units["count"]
    assert [sum(piece.keys for piece in chain) for chain in unit.chains] == [1, 1]


def test_timers_of_a_key_stay_and_are_not_shown(state_dir):
    timers = (("end", 5.0, EVENT),)
    packed = with_timers(CODEC.pack_value({"n": 1}), timers, CODEC)
    before = keep(state_dir, 1, "a", count=count([{"cat": packed}]))
    assert states(before) == {"cat": {"n": 1}}
    after, _ = rewritten(state_dir, before, lambda unit, key, state: {"n": 2})
    assert dict(after.packed("count")) == {"cat": with_timers(CODEC.pack_value({"n": 2}), timers, CODEC)}


def test_what_is_packed_in_a_state_such_as_objects_of_windows_is_packed_again(state_dir):
    windows = (("0", CODEC.pack_value({"n": 1})), b"no state at all")
    before = keep(state_dir, 1, "a", count=count([{"cat": windows}]))
    assert states(before) == {"cat": (("0", {"n": 1}), b"no state at all")}

    def more(unit, key, state):
        ((name, inner), rest) = state
        return ((name, {"n": inner["n"] + 1}), rest)

    after, counts = rewritten(state_dir, before, more)
    assert counts == {"count": (1, 0, 0)}
    assert rewritten(state_dir, before, lambda unit, key, state: state, "same")[1] == {"count": (0, 0, 1)}
    ((_, packed),) = after.packed("count")
    assert CODEC.unpack(packed) == (("0", CODEC.pack_value({"n": 2})), b"no state at all")
    with pytest.raises(
        UsageError, match=r"rewrite\('count', 'cat', \.\.\.\) returned what cannot be kept: a tuple of 2"
    ):
        rewritten(state_dir, before, lambda unit, key, state: {"n": 1}, "shape")


def test_what_the_function_raises_or_returns_is_named_and_nothing_is_left(state_dir):
    before = keep(state_dir, 1, "a", count=count([{"cat": {"n": 1}}]))
    with pytest.raises(UsageError, match=r"rewrite\('count', 'cat', \.\.\.\): KeyError: 'm'"):
        rewritten(state_dir, before, lambda unit, key, state: state["m"])
    with pytest.raises(UsageError, match="returned what cannot be kept"):
        rewritten(state_dir, before, lambda unit, key, state: {"n": lambda: 1})
    assert state_dir.savepoints.names() == ["a"]
    assert [each.name for each in state_dir.savepoints.path.iterdir()] == ["a"]


def test_the_command_takes_a_file_with_the_function(state_dir, tmp_path, capsys):
    keep(state_dir, 1, "a", count=count([{"cat": {"n": 1}, "dog": {"n": 2}}]))
    file = tmp_path / "fix.py"
    file.write_text("def rewrite(unit, key, state):\n    return None if key == 'dog' else state\n")
    arguments = ["checkpoint", "rewrite", f"{state_dir.path}/a", str(file), "--to", "b"]
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert "count: 0 keys changed, 1 removed, 1 the same" in out and "savepoint b: of checkpoint 1: " in out
    assert states(CheckpointView(state_dir.path / "savepoints" / "b")) == {"cat": {"n": 1}}
    with pytest.raises(SystemExit):
        main(arguments)
    assert "already" in capsys.readouterr().err
    file.write_text("x = 1\n")
    with pytest.raises(SystemExit):
        main([*arguments[:-1], "c"])
    assert "defines no function rewrite" in capsys.readouterr().err
