"""`esault keys`."""

from __future__ import annotations

import click

__all__ = ["command"]


@click.command("keys")
@click.argument("file", type=click.Path(dir_okay=False))
def command(file: str) -> None:
    """Make a cluster's key and write it to FILE.

    Who holds this file belongs to the cluster: copy it to each of its hosts over a safe way (scp), readable by the user alone.
    """
    from esault.cluster.key import make_key

    path = make_key(file)
    print(f"{path}: the key of a new cluster; copy it to each host, readable by you alone, and name it with --key")
