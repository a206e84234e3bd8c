"""`esault state`."""

from __future__ import annotations

import json
from typing import Any

import click

from esault.cli.completion import complete_units
from esault.cli.running_option import run_option
from esault.counters import counted
from esault.errors import UsageError
from esault.payload.json_text import key_text

__all__ = ["command"]


@click.command("state")
@click.argument("unit", shell_complete=complete_units)
@click.argument("key", required=False)
@run_option
@click.option("--prefix", default="", help="Without KEY: keys that begin so.")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="Keys that are shown.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
def command(unit: str, key: str | None, run: str | None, prefix: str, limit: int, as_json: bool) -> None:
    """Show the state that UNIT of a running topology keeps for KEY, or without KEY for some of its keys.

    It is the newest: as it stands in the unit's process between two batches, not that of a checkpoint. A key is typed as it is, or as JSON:
    `esault state count cat`, `esault state count 7`, `esault state pairs '["a", 1]'`.
    """
    from esault.runtime.session.control_client import ask, choose

    request = {"do": "state", "unit": unit, "key": key or "", "prefix": prefix, "limit": limit}
    answer: dict[str, Any] = list(ask(choose(run).control_socket, request, patience=None))[-1]
    if as_json:
        print(json.dumps({"keys": answer["keys"], "found": answer["found"]}))
        return
    found = answer["found"]
    if key is not None and not found:
        raise UsageError(
            f"unit {unit!r} has no state for key {key!r}: no tuple of it came, it has expired, or it is moving: try again"
        )
    for each in found:
        print(f"{key_text(each['key'])}\t{json.dumps(each['state'], ensure_ascii=False)}")
    if key is None:
        print(f"{len(found)} of {counted(answer['keys'], 'key')}")
