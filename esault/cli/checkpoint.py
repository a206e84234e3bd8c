"""`esault checkpoint`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from esault.cli.running_option import run_argument
from esault.counters import counted
from esault.errors import UsageError
from esault.payload.json_text import json_text, key_text

__all__ = ["command"]

_SHAPES = (".parquet", ".jsonl")


@click.group("checkpoint")
def command() -> None:
    """Look into the checkpoints of a topology, while it runs or afterwards, and keep some under a name: savepoints.

    DIR is a state directory, also an address such as s3://bucket/state, the name of a topology whose state is in .esault/NAME here, or a savepoint: DIR/NAME.
    """


def _options(function: Any) -> Any:
    function = click.option("--number", type=int, help="The number of the checkpoint.  [default: the newest]")(function)
    return click.option(
        "--topology", help="The topology's file, where state holds objects of its classes.", metavar="FILE"
    )(function)


@command.command("show")
@click.argument("directory", metavar="DIR")
@click.argument("unit", required=False)
@click.argument("key", required=False)
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="Keys that are shown.")
@_options
def show(
    directory: str, unit: str | None, key: str | None, limit: int, number: int | None, topology: str | None
) -> None:
    """Show a checkpoint; of UNIT, the state of some keys, or of KEY."""
    view = _view(directory, number, topology)
    if unit is None:
        print("\n".join(_described(view)))
        return
    found = 0
    for each, state in view.states(unit):
        if key is None or key in (key_text(each), json_text(each)):
            found += 1
            if found <= limit:
                print(f"{key_text(each)}\t{json_text(state)}")
    if key is not None and not found:
        raise UsageError(f"checkpoint {view.checkpoint.number} has no state of {unit!r} for key {key!r}")
    if key is None:
        print(f"{min(found, limit)} of {counted(found, 'key')} in checkpoint {view.checkpoint.number}")


@command.command("export")
@click.argument("directory", metavar="DIR")
@click.argument("unit")
@click.option("--to", "to", required=True, metavar="FILE", help="FILE.parquet or FILE.jsonl.")
@_options
def export(directory: str, unit: str, to: str, number: int | None, topology: str | None) -> None:
    """Write the state of UNIT to a file, a row for each key: for DuckDB, pandas, Polars, Spark.

    A column `key`, and one for each attribute; what is no number, text, bytes or bool stands as JSON.
    """
    if not to.endswith(_SHAPES):
        raise UsageError(f"--to {to}: write FILE.parquet or FILE.jsonl")
    view = _view(directory, number, topology)
    path = Path(to)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        written = (_parquet if to.endswith(".parquet") else _json_lines)(path, view.states(unit))
    except OSError as error:
        raise UsageError(f"--to {to}: {error.strerror or error}") from None
    print(f"{counted(written, 'key')} of {unit!r} in checkpoint {view.checkpoint.number}: {to}")


@command.command("diff")
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@click.option("--unit", help="This unit only.")
@click.option("--limit", type=click.IntRange(0), default=20, show_default=True, help="Keys of a unit that are shown.")
@click.option("--rename", metavar="OLD=NEW", multiple=True, help="A unit of A has another name in B. May be repeated.")
@click.option("--topology", help="The topology's file, where state holds objects of its classes.", metavar="FILE")
def diff(before: str, after: str, unit: str | None, limit: int, rename: tuple[str, ...], topology: str | None) -> None:
    """Show what became of the state of A by B: keys that were added (+), removed (-) and changed (~), and where sources go on.

    A and B are as DIR; DIR@NUMBER is a checkpoint by its number.
    """
    from esault.cli.named_values import renames
    from esault.state.checkpoint_diff import differences

    a, b = _view(before, None, topology), _view(after, None, topology)
    names = renames(rename)
    known = {*b.checkpoint.units, *(names.get(name, name) for name in a.checkpoint.units)}
    if unit is not None and unit not in known:
        raise UsageError(f"there is no unit {unit!r} in either; there are: {', '.join(sorted(known))}")
    found = list(differences(a, b, limit, unit, names))
    for each in found:
        what = ("key", "keys") if each.kind == "bolt" else ("split or part", "splits or parts")
        print(
            f"{each.name}: {counted(each.added, *what)} added, {each.removed:,} removed, {each.changed:,} changed, {each.same:,} the same"
        )
    for each in found:
        for one in each.first:
            if one.before is None:
                print(f"+ {each.name}\t{one.key}\t{one.after}")
            elif one.after is None:
                print(f"- {each.name}\t{one.key}\t{one.before}")
            else:
                print(f"~ {each.name}\t{one.key}\t{one.before} -> {one.after}")
        if len(each.first) < each.count and limit:
            print(f"  {each.name}: {len(each.first):,} of {each.count:,} are shown; --limit shows more")


@command.command("rewrite")
@click.argument("directory", metavar="DIR")
@click.argument("file", metavar="FILE.py")
@click.option("--to", "to", required=True, metavar="NAME", help="The name of the savepoint that is written.")
@_options
def rewrite(directory: str, file: str, to: str, number: int | None, topology: str | None) -> None:
    """Write a savepoint in which the state of each key is what a function makes of it; what is rewritten stays.

    FILE.py defines `def rewrite(unit, key, state)`, which returns the state, changed or as it was, or None: that key goes.
    """
    from esault.state.rewrite import rewrite_checkpoint
    from esault.state.savepoints import SAVEPOINTS, Savepoints
    from esault.topology.locate import locate

    view = _view(directory, number, topology)
    function = getattr(locate(file).load_module(), "rewrite", None)
    if not callable(function):
        raise UsageError(f"{file} defines no function rewrite(unit, key, state)")
    above = view.path.parent
    savepoints = Savepoints(above.parent if above.name == SAVEPOINTS else view.path)
    path, found = rewrite_checkpoint(view, function, savepoints, to)
    for each in found:
        print(f"{each.unit}: {counted(each.changed, 'key')} changed, {each.removed:,} removed, {each.same:,} the same")
    print(f"savepoint {to}: of checkpoint {view.checkpoint.number}: {path}")


@command.command("create")
@run_argument
@click.option("--name", required=True, help="The savepoint's name.")
def create(run: str | None, name: str) -> None:
    """Take a checkpoint of a running topology and keep it under a name, until it is removed: a savepoint.

    RUN is the topology's name, or the beginning of the run's id. Where none of that name runs, the newest checkpoint of the state directory is kept.
    """
    from esault.runtime.session.control_client import ask, choose, is_address, running

    if run is None or is_address(run) or any(each.is_called(run) for each in running()):
        chosen = choose(run)
        answer = list(ask(chosen.control_socket, {"do": "savepoint", "name": name}, patience=None))[-1]
        took = f", taken in {answer['seconds']:.2f} s" if "seconds" in answer else ""
        print(f"{chosen.name}: savepoint {name}: checkpoint {answer['checkpoint']}{took}: {answer['path']}")
        return
    from esault.state.checkpoint_place import state_place
    from esault.state.state_dir import StateDir

    state_dir = StateDir(state_place(run))
    try:
        kept, amiss = state_dir.newest()
        if kept is None:
            raise UsageError(f"{state_dir.path} has no checkpoint")
        for text in amiss:
            print(text)
        path = state_dir.savepoints.create(kept, name)
    finally:
        state_dir.close()
    print(f"{kept.topology}: savepoint {name}: checkpoint {kept.number}, the newest: {path}")
    if kept.over:
        print("that run had come to its end: its state can be looked at, and no run can go on from it")


@command.command("list")
@click.argument("directory", metavar="DIR")
def list_(directory: str) -> None:
    """List the savepoints of a topology."""
    from esault.state.checkpoint_place import state_place
    from esault.state.checkpoint_view import CheckpointView
    from esault.state.savepoints import Savepoints

    savepoints = Savepoints(state_place(directory))
    for name in savepoints.names():
        kept = CheckpointView(savepoints.folder(name)).checkpoint
        print(f"{name}\tcheckpoint {kept.number}\t{_when(kept)}\t{kept.total_size:,} bytes\t{kept.topology}")
    if not savepoints.names():
        print(f"no savepoints in {savepoints.path}")


@command.command("remove")
@click.argument("directory", metavar="DIR")
@click.argument("name")
def remove(directory: str, name: str) -> None:
    """Remove the savepoint NAME of a topology."""
    from esault.state.checkpoint_place import state_place
    from esault.state.savepoints import Savepoints

    Savepoints(state_place(directory)).remove(name)
    print(f"savepoint {name} is removed")


def _when(kept: Any) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(kept.completed_at))


def _view(directory: str, number: int | None, topology: str | None) -> Any:
    from esault.state.checkpoint_place import checkpoint_place
    from esault.state.checkpoint_view import CheckpointView

    if topology is not None:
        from esault.topology.locate import locate

        locate(topology).load_module()
    place, at, said = directory.rpartition("@")
    if at and said.isdecimal() and number is None and not Path(directory).exists():
        directory, number = place, int(said)
    return CheckpointView(checkpoint_place(directory), number)


def _described(view: Any) -> Iterator[str]:
    kept = view.checkpoint
    yield f"{kept.topology}: checkpoint {kept.number} of run {kept.run}, complete at {_when(kept)}"
    yield f"  in {view.path}; there are {', '.join(map(str, view.numbers))}"
    yield from (f"  {each}" for each in view.amiss)
    for name, unit in kept.units.items():
        line = f"  {name}: {unit.kind} x{unit.parallelism}"
        if unit.kind == "bolt":
            line += f", {counted(view.count(name), 'key')}, {counted(sum(piece.size for piece in unit.pieces), 'byte')}"
            if unit.in_flight:
                line += f", {sum(piece.keys for piece in unit.in_flight):,} parts in flight"
        elif unit.splits:
            line += f", {counted(len(unit.splits), 'split')}"
        yield line + (", finished" if unit.finished else "")


def _json_lines(path: Path, states: Iterator[tuple[Any, Any]]) -> int:
    written = 0
    with path.open("w", encoding="utf-8") as out:
        for key, state in states:
            out.write(f'{{"key": {json_text(key)}, "state": {json_text(state)}}}\n')
            written += 1
    return written


def _parquet(path: Path, states: Iterator[tuple[Any, Any]]) -> int:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise UsageError("a Parquet file needs pyarrow: pip install 'esault[parquet]', or write FILE.jsonl") from None
    keys: list[Any] = []
    columns: dict[str, list[Any]] = {}
    for key, state in states:
        attributes = state if isinstance(state, dict) and all(type(name) is str for name in state) else {"state": state}
        rows = len(keys)
        keys.append(key)
        for name, value in attributes.items():
            column = columns.setdefault(name, [])
            column += [None] * (rows - len(column))
            column.append(value)
    arrays = [_array(pa, [*column, *[None] * (len(keys) - len(column))]) for column in (keys, *columns.values())]
    spare = "key_"  # what an attribute of the name "key" is called here
    while spare in columns:
        spare += "_"
    names = ["key", *(spare if name == "key" else name for name in columns)]
    pq.write_table(pa.table(arrays, names=names), path)
    return len(keys)


def _array(pa: Any, column: list[Any]) -> Any:
    kinds = {type(value) for value in column} - {type(None)}
    if len(kinds) == 1 and kinds <= {int, float, str, bytes, bool}:
        try:
            return pa.array(column)
        except (OverflowError, pa.ArrowInvalid):
            pass  # an int of more than 64 bits
    return pa.array([None if value is None else json_text(value) for value in column], pa.string())
