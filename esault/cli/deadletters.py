"""`esault deadletters`."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import click

from esault.cli.main import FAILED, Outcome
from esault.cli.running_option import run_option
from esault.errors import UsageError
from esault.payload.json_text import json_text, key_text, strict_json
from esault.runtime.session.control_client import choose
from esault.runtime.session.dead_letters import dead_letters_at, send_again
from esault.sources.dead_letter_files import DeadLetter

__all__ = ["command"]


@click.group("deadletters")
def command() -> None:
    """Look at dead letters, and send them again.

    WHERE is the path that `dead_letter(path)` was given, a file that a sub-unit wrote, or a folder; or the name of a running topology, for
    all dead letters of its units.
    """


def _options(function: Callable[..., Any]) -> Callable[..., Any]:
    function = click.option("--unit", help="Dead letters of this unit alone.")(function)
    function = click.option("--error", default="", help="Dead letters whose error begins so, such as ValueError.")(
        function
    )
    return click.argument("where", metavar="WHERE")(function)


@command.command("list")
@_options
@click.option("--all", "everything", is_flag=True, help="Also dead letters that were sent again.")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="Dead letters that are shown.")
@click.option("--json", "as_json", is_flag=True, help="A JSON object a line, for programs.")
def list_command(where: str, unit: str | None, error: str, everything: bool, limit: int, as_json: bool) -> None:
    """Show dead letters, the newest last, a line for each; those that were sent again are left out."""
    found = _chosen(where, unit, error)
    shown = [dead for dead in found if everything or not dead.sent]
    for dead in shown[-limit:]:
        print(strict_json({**dead.record, "sent": dead.sent}) if as_json else _line(dead))
    if not as_json:
        sent = sum(dead.sent for dead in found)
        kinds = Counter(f"{dead.record['unit']}: {_kind(dead)}" for dead in shown)
        more = "" if len(shown) <= limit else f" (--limit {len(shown)} shows all)"
        print(f"{min(limit, len(shown))} of {len(shown):,} dead letters{more}; {sent:,} were sent again")
        for kind, count in kinds.most_common(10):
            print(f"  {count:,} of {kind}")


@command.command("show")
@_options
@click.argument("ids", nargs=-1, metavar="[ID]...")
def show(where: str, unit: str | None, error: str, ids: tuple[str, ...]) -> None:
    """Show dead letters whole, with the traceback: those of these IDs (their beginnings will do), or the newest."""
    found = _chosen(where, unit, error)
    for dead in [_named(found, id) for id in ids] or found[-1:]:
        print("\n".join(_whole(dead)))


@command.command("send")
@_options
@click.argument("ids", nargs=-1, metavar="[ID]...")
@run_option
def send(where: str, unit: str | None, error: str, ids: tuple[str, ...], run: str | None) -> None:
    """Send dead letters into a running topology again: those of these IDs, or all that were not sent yet.

    Each goes to where it failed: a tuple to the input of its bolt, or to its function step. Waits until what came of it is durable, which is
    with checkpoints the next complete one, and then marks it as sent.
    """
    found = _chosen(where, unit, error)
    chosen = [_named(found, id) for id in ids] or [each for each in found if not each.sent and each.can_be_sent]
    if not chosen:
        print("there is nothing to send")
        return
    sent, refused = send_again(choose(run).control_socket, chosen)
    print(f"sent {len(sent):,} of {len(chosen):,} dead letters again; what came of them is durable")
    for why, count in Counter(refused.values()).most_common():
        print(f"  {count:,} not: {why}")
    if refused:
        raise Outcome(FAILED)


def _chosen(where: str, unit: str | None, error: str) -> list[DeadLetter]:
    dead_ones = dead_letters_at(where)
    return [
        dead
        for dead in dead_ones
        if unit in (None, dead.record["unit"]) and str(dead.record["error"]).startswith(error)
    ]


def _named(dead_ones: list[DeadLetter], id: str) -> DeadLetter:
    found = [dead for dead in dead_ones if dead.id.startswith(id)]
    if len(found) != 1:
        how = "several dead letters begin" if found else "no dead letter begins"
        raise UsageError(f"{how} with {id!r}; esault deadletters list shows their ids")
    return found[0]


def _kind(dead: DeadLetter) -> str:
    return str(dead.record["error"]).partition(":")[0]


def _line(dead: DeadLetter) -> str:
    record = dead.record
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record["time"]))
    first = str(record["error"]).partition("\n")[0]
    mark = "  (sent again)" if dead.sent else "" if dead.can_be_sent else "  (has no tuple)"
    return f"{dead.id}  {at}  {record['unit']}/{record['sub_unit']}  {_short(key_text(record['key']))}  {_short(first, 60)}{mark}"


def _short(text: str, most: int = 30) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."


def _whole(dead: DeadLetter) -> list[str]:
    record = dead.record
    lines = [
        f"dead letter {dead.id}, {'sent again' if dead.sent else 'not sent again' if dead.can_be_sent else 'has no tuple to send'}",
        f"  run:        {record['run']}",
        f"  time:       {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(record['time']))}",
        f"  unit:       {record['unit']}/{record['sub_unit']}, {record['hook']}",
        f"  key:        {json_text(record['key'])}",
        f"  value:      {json_text(record['value'])}",
    ]
    if record["event_time"] is not None:
        lines.append(f"  event time: {record['event_time']:.3f}")
    return [*lines, f"  file:       {dead.file}", *(f"  {line}" for line in record["traceback"].splitlines())]
