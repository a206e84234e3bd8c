"""`esault state`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from esault.cli.completion import complete_states
from esault.cli.running_option import run_option
from esault.counters import counted
from esault.errors import UsageError
from esault.payload.json_text import key_text

if TYPE_CHECKING:
    from esault.runtime.session.control_client import Running

__all__ = ["command"]


@click.command("state")
@click.argument("named", nargs=-1, required=True, metavar="[RUN] UNIT [KEY]", shell_complete=complete_states)
@run_option
@click.option("--prefix", default="", help="Without KEY: keys that begin so.")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="Keys that are shown.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
def command(named: tuple[str, ...], run: str | None, prefix: str, limit: int, as_json: bool) -> None:
    """Show the state that UNIT of a running topology keeps for KEY, or without KEY for some of its keys.

    It is the newest: as it stands in the unit's process between two batches, not that of a checkpoint. A key is typed as it is, or as JSON:
    `esault state count cat`, `esault state count 7`, `esault state pairs '["a", 1]'`.

    With several running RUN says which one, in front or by --run. Two words are UNIT KEY, where a unit is called like the first of them.
    """
    from esault.runtime.session.control_client import ask

    chosen, unit, key = _meant(named, run)
    # an empty text as a key is written as JSON: a request without one is for some keys
    asked = "" if key is None else key or '""'
    request = {"do": "state", "unit": unit, "key": asked, "prefix": prefix, "limit": limit}
    answer: dict[str, Any] = list(ask(chosen.control_socket, request, patience=None))[-1]
    if as_json:
        print(json.dumps({"of": "newest", "keys": answer["keys"], "found": answer["found"]}))
        return
    found = answer["found"]
    if key is not None and not found:
        raise UsageError(
            f"unit {unit!r} has no state for key {key!r}: no tuple of it came, it has expired, or it is moving: try again"
        )
    for each in found:
        print(f"{key_text(each['key'])}\t{json.dumps(each['state'], ensure_ascii=False)}")
    if key is None:
        print(f"{len(found)} of {counted(answer['keys'], 'key')}, as they are now")


def _meant(named: tuple[str, ...], run: str | None) -> tuple[Running, str, str | None]:
    """Return the run, the unit and the key that is asked for. Raises UsageError."""
    from esault.runtime.session.control_client import choose, is_address, running

    most = 3 if run is None else 2
    if len(named) > most:
        raise UsageError(f"write {'[RUN] UNIT [KEY]' if run is None else 'UNIT [KEY]'}, not {len(named)} words")
    if len(named) == 3:
        return choose(named[0]), named[1], named[2]
    if len(named) == 2 and run is None:
        first, second = named
        there = running()
        units = {unit["name"] for each in there for unit in each.status["units"]}
        if is_address(first) or (first not in units and any(each.is_called(first) for each in there)):
            return choose(first), second, None
    return choose(run), named[0], named[1] if len(named) == 2 else None
