"""`esault node`."""

from __future__ import annotations

import os

import click

from esault.cli.finite_range import FiniteRange
from esault.cli.log_format_option import log_format_option
from esault.errors import UsageError
from esault.runtime.process.log_output import LOG_FORMAT, configure

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
    "--slot-price",
    type=FiniteRange(0),
    help='What a slot costs an hour here, in any money: reports add it up, strategy = "cheapest" and budgets in money go by it.',
)
@click.option(
    "--drain-when",
    metavar="COMMAND",
    help="Run each 5 seconds; when it ends with 0, as where a cloud is about to take this host away, the node drains.",
)
@click.option(
    "--audit",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Keep there who asked for what, a JSON object a line.",
)
@click.option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info", show_default=True
)
@log_format_option
def command(
    address: str,
    key: str | None,
    slots: int | None,
    join: str | None,
    name: str | None,
    offers: tuple[str, ...],
    slot_price: float | None,
    drain_when: str | None,
    audit: str | None,
    log_level: str,
    log_format: str,
) -> None:
    """Offer this host's slots to runs of other hosts.

    Ends with SIGTERM or Ctrl-C, or as --drain-when says, when its sub-units have moved to other hosts; a second signal ends it at
    once.
    """

    from esault.cluster.audit import AuditLog
    from esault.cluster.key import ClusterKey, loopback_key
    from esault.cluster.node import Node
    from esault.cluster.termination import TerminationNotice

    configure(log_level, log_format, dated=True)
    os.environ[LOG_FORMAT] = log_format
    opened = ClusterKey(key if key is not None else loopback_key())
    if not opened.is_cluster:
        raise UsageError(f"{key} is a key with a role: a node takes the cluster's own")
    node = Node(
        address,
        opened,
        slots or len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else slots or os.cpu_count() or 1,
        name=name,
        offers=offers,
        slot_price=slot_price,
        join=join,
        loopback_only=key is None,
        audit=None if audit is None else AuditLog(audit),
        notice=None if drain_when is None else TerminationNotice(drain_when),
    )
    print(f"node {node.name}: {node.slots} slots at {node.address}", flush=True)
    node.serve()
