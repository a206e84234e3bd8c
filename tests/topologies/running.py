"""Topologies as their files give them, run in this process or by the command."""

from __future__ import annotations

from pathlib import Path

import esault_command

from esault.testing import LocalRuntime
from esault.topology.locate import locate

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "topologies"


def drained(
    spec: str, /, *, seed: int = 1, parallelism: dict[str, int] | None = None, **params: object
) -> LocalRuntime:
    """The topology `file.py` or `file.py:function` of the folder, run to its end; `landed` has what its sinks got."""
    local = LocalRuntime(locate(f"{FOLDER}/{spec}").build(params), seed=seed, parallelism=parallelism)
    local.run_until_drained()
    return local


def until_emitted(local: LocalRuntime, unit: str, count: int) -> None:
    """Run until the unit has emitted so many tuples."""
    while len(local.emitted(unit)) < count:
        if not local.step():
            local.wait()


def module(file: str):
    """What the file defines."""
    return locate(f"{FOLDER}/{file}").load_module()


def rows(local: LocalRuntime, sink: str) -> list[tuple[object, object]]:
    """(key, value) pairs that a sink got."""
    return [(row.key, row.value) for row in local.landed(sink)]


def real(where: Path, spec: str, /, *arguments: str, **params: object) -> str:
    """`esault run` on actors in the folder `where`; what it printed."""
    sets = [f"--set={name}={value}" for name, value in params.items()]
    code, out, err = esault_command.run("run", f"{FOLDER}/{spec}", "--plain", *sets, *arguments, cwd=where)
    assert code == 0, err
    return out
