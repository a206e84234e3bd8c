"""`esault run`."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable

import click

from esault.cli.main import STOPPED, Outcome
from esault.cli.topology_argument import params_of, place_of, set_option, topology_argument
from esault.errors import EsaultError, UsageError
from esault.messages.delivery import Delivery
from esault.messages.settings import Settings

__all__ = ["command"]


class _Run(click.Command):
    """Its help lists the parameters of the topology that was named."""

    def get_help(self, ctx: click.Context) -> str:
        text = super().get_help(ctx)
        try:
            named = self.make_parser(ctx).parse_args(sys.argv[2:])[0].get("topology")
        except click.UsageError:
            named = None
        if isinstance(named, str):
            try:
                known = place_of(named).parameters()
            except EsaultError as error:
                return f"{text}\n\n({error})"
            lines = [f"  {p}" for p in known] or ["  none"]
            text += f"\n\nParameters of {named} (--set NAME=VALUE):\n" + "\n".join(lines)
        return text


@click.command("run", cls=_Run)
@topology_argument
@set_option
@click.option(
    "--engine",
    type=click.Choice(["actors", "local", "spark"]),
    default="actors",
    show_default=True,
    help="actors: a process for each sub-unit; local: everything in this process; spark: Spark's Structured Streaming.",
)
@click.option(
    "--slots", type=click.IntRange(1), help="Places for sub-units.  [default: 16; with --hosts all that are free there]"
)
@click.option("--hosts", metavar="FILE", type=click.Path(), help="Run on these hosts' nodes: a hosts.toml.")
@click.option("--key", metavar="FILE", type=click.Path(), help="The hosts' key, where hosts.toml does not name it.")
@click.option("--master", metavar="URL", help="Of --engine spark: the cluster.  [default: all cores of this machine]")
@click.option("--parallelism", metavar="UNIT=N", multiple=True, help="Start a unit with N sub-units; may be repeated.")
@click.option(
    "--fixed",
    metavar="UNIT[=N]",
    multiple=True,
    help="Keep a unit at N sub-units; without N at as many as it starts with. May be repeated.",
)
@click.option(
    "--policy",
    metavar="[UNIT=]NAME[:PARAMETER=VALUE,...]",
    multiple=True,
    help="What scales a unit, or all of them: auto (the default), none, or another that `esault policies` lists. "
    "May be repeated.",
)
@click.option(
    "--acks",
    type=click.Choice(["on", "off"]),
    default="on",
    show_default=True,
    help="off: nothing is tracked or replayed, losses are counted.",
)
@click.option(
    "--ackers",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Processes of their own that track tuples; 0: each spout's process tracks its own.",
)
@click.option(
    "--checkpoint",
    metavar="S",
    type=float,
    help="Keep all state every S seconds: after a death all go back there, and count everything once.",
)
@click.option(
    "--checkpoint-timeout", metavar="S", type=float, help="Give a checkpoint up after S seconds.  [default: 30]"
)
@click.option(
    "--aligned-checkpoint-timeout",
    metavar="S",
    type=float,
    help="Process first what waits before a bolt for S seconds; then the checkpoint is unaligned, and holds it.  [default: 1]",
)
@click.option(
    "--restart-strategy",
    metavar="NAME[:PARAMETER=VALUE,...]",
    help="What follows a transient error of a sink or source: none, fixed-delay, failure-rate or exponential-delay.  "
    "[default: exponential-delay with --checkpoint, none without]",
)
@click.option(
    "--heartbeat-timeout",
    metavar="S",
    type=float,
    default=0.0,
    help="Replace a process of which nothing was heard for S seconds; above the longest that a tuple may take.  [default: never]",
)
@click.option(
    "--chaining/--no-chaining",
    default=False,
    show_default=True,
    help="Run cheap bolts that keep nothing, and take shuffle(), in the process of the unit before them: operator chaining.",
)
@click.option("--state", metavar="DIR", type=click.Path(), help="Where checkpoints are kept.  [default: .esault/NAME]")
@click.option("--resume", is_flag=True, help="Go on with a run that did not finish, from its newest checkpoint.")
@click.option("--restart", is_flag=True, help="Begin anew, although a run there did not finish.")
@click.option("--seconds", type=float, help="End in order after so long.")
@click.option("--report", type=click.Path(), help="Write report.json there.")
@click.option(
    "--land-metrics",
    metavar="DIR",
    type=click.Path(),
    help="Land the run's own metrics as tables in DIR, added to those of runs before; `esault analyze DIR` reports on them.",
)
@click.option(
    "--metrics",
    metavar="PORT",
    type=click.IntRange(0, 65535),
    help="Serve metrics for Prometheus at http://127.0.0.1:PORT/metrics; 0: any port that is free, and it is said which.",
)
@click.option("--plain", is_flag=True, help="Lines instead of the live view.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="warning",
    show_default=True,
    help="Of what is logged, by user code too.",
)
def command(
    topology: str,
    settings: tuple[str, ...],
    engine: str,
    slots: int | None,
    hosts: str | None,
    key: str | None,
    master: str | None,
    parallelism: tuple[str, ...],
    fixed: tuple[str, ...],
    policy: tuple[str, ...],
    acks: str,
    ackers: int,
    checkpoint: float | None,
    checkpoint_timeout: float | None,
    aligned_checkpoint_timeout: float | None,
    restart_strategy: str | None,
    chaining: bool,
    heartbeat_timeout: float,
    state: str | None,
    resume: bool,
    restart: bool,
    seconds: float | None,
    report: str | None,
    land_metrics: str | None,
    metrics: int | None,
    plain: bool,
    log_level: str,
) -> None:
    """Run TOPOLOGY: path.py, path.py:function or package.module:function.

    Ctrl-C ends the run in order, a second one at once; with --checkpoint it pauses, and --resume goes on. Exit codes: 0
    drained or paused, 1 the topology failed, 2 wrong use,
    130 stopped at once. `esault run TOPOLOGY --help` lists the topology's own parameters.
    """
    logging.basicConfig(level=log_level.upper(), format="%(levelname)s %(name)s: %(message)s")
    place = place_of(topology)
    params = params_of(place, settings)
    # The engine starts with these processes' memory: what is imported only to show things comes later.
    from esault.runtime.session.request import Request
    from esault.runtime.session.run import execute, with_checkpoints
    from esault.ui.choose import choose
    from esault.ui.prometheus import served

    with choose(plain) as chosen, served(metrics, chosen) as view:
        done = execute(
            Request(
                place,
                params,
                engine,
                settings=with_checkpoints(
                    Settings(
                        delivery=Delivery.NONE if acks == "off" else Delivery.AT_LEAST_ONCE,
                        ackers=ackers,
                        restart_strategy=restart_strategy or "",
                        chaining=chaining,
                        heartbeat_timeout=heartbeat_timeout,
                    ),
                    checkpoint,
                    checkpoint_timeout,
                    aligned_checkpoint_timeout,
                ),
                parallelism={**_counts(parallelism), **_counts(t for t in fixed if "=" in t)},
                slots=slots,
                seconds=seconds,
                report=report,
                view=view,
                policies={**_policies(policy), **dict.fromkeys((t.partition("=")[0] for t in fixed), "none")},
                state=state,
                resume=resume,
                restart=restart,
                hosts=hosts,
                key=key,
                master=master,
                land_metrics=land_metrics,
            )
        )
    print(done)
    if report is not None:
        print(f"  report: {report}")
    if done.ended == "stopped":
        raise Outcome(STOPPED)


def _policies(texts: tuple[str, ...]) -> dict[str, str]:
    policies = {}
    for text in texts:
        head, colon, rest = text.partition(":")
        unit, equals, name = head.rpartition("=")
        if not name or (equals and not unit):
            raise UsageError(f"--policy {text!r}: say NAME for all units, or UNIT=NAME, such as count=probe")
        policies[unit] = f"{name}{colon}{rest}"
    return policies


def _counts(texts: Iterable[str]) -> dict[str, int]:
    counts = {}
    for text in texts:
        name, equals, number = text.partition("=")
        if not equals or not number.isdigit():
            raise UsageError(f"{text!r}: say UNIT=N, such as count=4")
        counts[name] = int(number)
    return counts
