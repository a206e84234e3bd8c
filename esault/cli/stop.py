"""`esault stop`."""

from __future__ import annotations

import click

from esault.cli.running_option import run_argument

__all__ = ["command"]


@click.command("stop")
@run_argument
@click.option("--now", is_flag=True, help="At once: what is in flight is lost.")
@click.option("--savepoint", metavar="NAME", help="Keep its last checkpoint under this name until it is removed.")
def command(run: str | None, now: bool, savepoint: str | None) -> None:
    """End a running topology in order: spouts read no more, what is in flight is processed and landed. Waits for the end.

    With checkpoints it pauses at a last one, and `esault run ... --resume` goes on.
    """
    from esault.runtime.session.control_client import ask, choose

    chosen = choose(run)
    for answer in ask(chosen.control_socket, {"do": "stop", "now": now, "savepoint": savepoint or ""}, patience=None):
        if answer.get("begun"):
            print(f"{chosen.name}: ending ...", flush=True)
        if answer.get("done"):
            print(f"{chosen.name}: {answer['ended']}")
            if savepoint is not None:
                print(f"savepoint {savepoint}: {answer['path']}")
            return
    print(f"{chosen.name}: ended")
