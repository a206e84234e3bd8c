"""`esault scale`."""

from __future__ import annotations

import click

from esault.cli.completion import complete_units
from esault.cli.running_option import run_option
from esault.counters import counted
from esault.errors import UsageError

__all__ = ["command"]


@click.command("scale", context_settings={"ignore_unknown_options": True})
@click.argument("unit", shell_complete=complete_units)
@click.argument("n", type=int)
@run_option
def command(unit: str, n: int, run: str | None) -> None:
    """Give UNIT of a running topology N sub-units while tuples flow, and wait until it is done.

    For example `esault scale count 4`. Keys move with their state; nothing is lost or repeated. A policy may change
    the number again: `esault run --fixed` or `--policy UNIT=none` keeps it from that.
    """
    from esault.runtime.session.control_client import ask, choose
    from esault.runtime.session.control_socket import RUN_ENDED

    if n < 1:
        raise UsageError(f"unit {unit!r} cannot have {n} sub-units: it needs one at least")
    chosen = choose(run)
    for answer in ask(chosen.control_socket, {"do": "scale", "unit": unit, "n": n}, patience=None):
        if answer.get("begun"):
            print(f"{chosen.name}, {unit}: to {counted(n, 'sub-unit')} ...", flush=True)
        elif answer.get("waits"):
            print(f"{chosen.name}, {unit}: waits {answer['waits']} ...", flush=True)
        elif "of" in answer:
            keys = counted(answer["moved_keys"], "key")
            print(f"{chosen.name}, {unit}: {keys} moved, {answer['moved']} of {answer['of']} subscales ...", flush=True)
        elif answer.get("unchanged"):
            print(f"{chosen.name}, {unit}: has {counted(n, 'sub-unit')} already")
        else:
            change = f"{answer['before']} -> {counted(answer['after'], 'sub-unit')} in {answer['seconds']:.2f} s"
            if answer["moved_keys"]:
                change += (
                    f", {counted(answer['moved_keys'], 'key')} moved ({answer['moved_bytes']:,} bytes), "
                    f"no tuple held back longer than {1000 * answer['held']:.1f} ms"
                )
            print(f"{chosen.name}, {unit}: {change}")
            if answer.get("watched_by", "none") != "none":
                print(
                    f"the policy {answer['watched_by']} goes on and may change it again; a run started with --fixed {unit}={n} "
                    f"keeps it, one with --policy {unit}=none leaves it to you"
                )
        if answer.get("done"):
            return
    raise UsageError(RUN_ENDED)
