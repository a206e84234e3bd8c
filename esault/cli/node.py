"""`esault node`."""

from __future__ import annotations

import logging

import click

__all__ = ["command"]


@click.command("node")
@click.option(
    "--listen",
    "address",
    metavar="ADDRESS",
    default="127.0.0.1",
    show_default=True,
    help="HOST:PORT by which other hosts reach this one; port 7420 unless said.",
)
@click.option(
    "--key",
    metavar="FILE",
    type=click.Path(),
    help="The cluster's key, from `esault keys`. Without one only this machine is let in.",
)
@click.option(
    "--slots", type=click.IntRange(1), default=None, help="Places for sub-units.  [default: one per processor]"
)
@click.option("--join", metavar="ADDRESS", help="A node of the cluster: runs that know it find this one.")
@click.option("--name", help="What this host is called; unique in the cluster.  [default: host name and port]")
@click.option("--offers", metavar="WORD", multiple=True, help="What sub-units find here, such as gpu; may be repeated.")
@click.option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info", show_default=True
)
def command(
    address: str,
    key: str | None,
    slots: int | None,
    join: str | None,
    name: str | None,
    offers: tuple[str, ...],
    log_level: str,
) -> None:
    """Offer this host's slots to runs of other hosts.

    Ends with SIGTERM or Ctrl-C, when its sub-units have moved to other hosts; a second one ends it at once.
    """
    import os

    from esault.cluster.key import ClusterKey, loopback_key
    from esault.cluster.node import Node

    logging.basicConfig(level=log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    node = Node(
        address,
        ClusterKey(key if key is not None else loopback_key()),
        slots or len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else slots or os.cpu_count() or 1,
        name=name,
        offers=offers,
        join=join,
        loopback_only=key is None,
    )
    print(f"node {node.name}: {node.slots} slots at {node.address}", flush=True)
    node.serve()
