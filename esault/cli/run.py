"""`esault run`.

It is one module of over 300 lines: the options of a run, and what each becomes.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from esault.cli.completion import complete_policies
from esault.cli.log_format_option import log_format_option
from esault.cli.main import DIFFERENT, FAILED, STOPPED, WRONG_USE, Outcome
from esault.cli.named_values import counts, policies, renames, spark_conf
from esault.cli.topology_argument import params_of, place_of, set_option, topology_argument
from esault.elasticity.budget import Budget
from esault.errors import EsaultError, TopologyFailed, UsageError
from esault.messages.delivery import Delivery
from esault.messages.settings import Settings
from esault.runtime.process.log_output import configure, configure_file, say
from esault.runtime.session.detached import LOG, OUTPUT, DetachedRun, begin, folder_of_this_run
from esault.runtime.session.fixed_widths import with_fixed

if TYPE_CHECKING:
    from esault.control.report.summary import Snapshot

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
@click.option(
    "--priority",
    type=int,
    metavar="N",
    help="With --hosts: share the hosts' slots with other runs that have one. Where they are short, runs of a lower priority shrink "
    "while tuples flow, and grow again when this one needs less.",
)
@click.option(
    "--control",
    metavar="HOST:PORT",
    help="Hear `esault status`, `scale` ... of other machines there, by keys with roles.",
)
@click.option(
    "--audit",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Keep there who asked for what, a JSON object a line.",
)
@click.option("--master", metavar="URL", help="Of --engine spark: the cluster.  [default: all cores of this machine]")
@click.option(
    "--conf",
    metavar="KEY=VALUE",
    multiple=True,
    help="Of --engine spark: a setting of Spark, such as spark.executor.memory=2g. May be repeated.",
)
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
    shell_complete=complete_policies,
    multiple=True,
    help="What scales a unit, or all of them: auto (the default), none, or another that `esault policies` lists. "
    "May be repeated.",
)
@click.option(
    "--objective",
    metavar="'[UNIT=]p99 < 100 ms'",
    multiple=True,
    help="What latency is to be kept, end to end or of one unit: the policy auto finds the fewest sub-units that keep it, and the report "
    "says how far it was kept. May be repeated.",
)
@click.option(
    "--budget",
    metavar="N|MONEY/h",
    help="The most sub-units that the run may hold at any time, spouts' among them; or what their slots may cost an hour, as in 3.50/h. "
    "The policy auto divides them among the units so that tuples wait least, and says when they are spent and how many would do.",
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
    default=True,
    show_default=True,
    help="Run bolts that keep nothing, and take shuffle(), in the process of the unit before them until they have too much to do.",
)
@click.option(
    "--state",
    metavar="DIR",
    type=click.Path(),
    help="Where checkpoints are kept: a folder, or an address such as s3://bucket/NAME.  [default: .esault/NAME]",
)
@click.option("--resume", is_flag=True, help="Go on with a run that did not finish, from its newest checkpoint.")
@click.option("--restart", is_flag=True, help="Begin anew, although a run there did not finish.")
@click.option(
    "--from-savepoint",
    metavar="NAME|DIR",
    help="Begin with this savepoint; with --resume only where there is nothing to go on with.",
)
@click.option(
    "--rename",
    metavar="OLD=NEW",
    multiple=True,
    help="With --from-savepoint or --resume: a unit or the topology has another name now. May be repeated.",
)
@click.option(
    "--allow-dropped-state",
    is_flag=True,
    help="With these: let the state of units go that there are no more, and say so.",
)
@click.option(
    "--shadow",
    metavar="TOPOLOGY",
    help="Run another version beside it on the same input, and compare what both put out; exit code 3 where it differs.",
)
@click.option(
    "--shadow-set", "shadow_settings", metavar="NAME=VALUE", multiple=True, help="A parameter of the shadow alone."
)
@click.option(
    "--shadow-rename",
    metavar="OLD=NEW",
    multiple=True,
    help="With --from-savepoint or --resume: a unit of the run has another name in the shadow. May be repeated.",
)
@click.option(
    "--scale-to-zero",
    metavar="S",
    type=float,
    help="With --checkpoint: after S seconds without a tuple pause, and give all slots back until input comes.",
)
@click.option("--seconds", type=float, help="End in order after so long.")
@click.option("--report", type=click.Path(), help="Write report.json there.")
@click.option(
    "--learn",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="Begin with as many sub-units as units had for most of the last run, and with the rhythm of its load: both are kept in DIR.",
)
@click.option(
    "--land-metrics",
    metavar="DIR",
    type=click.Path(),
    help="Land the run's own metrics as tables in DIR, added to those of runs before; `esault analyze DIR` reports on them.",
)
@click.option(
    "--metrics",
    metavar="[ADDRESS:]PORT",
    help="Serve metrics for Prometheus at http://127.0.0.1:PORT/metrics, with /healthz and /readyz; 0: any port that is free, and it "
    "is said which.",
)
@click.option(
    "--otlp",
    metavar="URL",
    help="Send metrics and spans by OTLP over HTTP, such as to http://127.0.0.1:4318.  [default: OTEL_EXPORTER_OTLP_ENDPOINT]",
)
@click.option(
    "--ui",
    metavar="[ADDRESS:]PORT",
    help="Show the run on a page in a browser, at http://127.0.0.1:PORT; 0: any port that is free, and it is said which.",
)
@click.option(
    "--ui-control", is_flag=True, help="Let the page scale, throttle and stop the run, by a token in its address."
)
@click.option(
    "--ui-tls",
    nargs=2,
    type=click.Path(),
    metavar="CERTIFICATE KEY",
    help="Files for TLS, needed where --ui is reached by other machines.",
)
@click.option(
    "--detach",
    is_flag=True,
    help="Go on in the background, without this terminal: `esault list` and `esault logs` show it, `esault stop` ends it.",
)
@click.option("--plain", is_flag=True, help="Lines instead of the live view.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="warning",
    show_default=True,
    help="Of what is logged, by user code too.",
)
@log_format_option
def command(
    topology: str,
    settings: tuple[str, ...],
    engine: str,
    slots: int | None,
    hosts: str | None,
    key: str | None,
    priority: int | None,
    control: str | None,
    audit: str | None,
    master: str | None,
    conf: tuple[str, ...],
    parallelism: tuple[str, ...],
    fixed: tuple[str, ...],
    policy: tuple[str, ...],
    objective: tuple[str, ...],
    budget: str | None,
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
    from_savepoint: str | None,
    rename: tuple[str, ...],
    allow_dropped_state: bool,
    shadow: str | None,
    shadow_settings: tuple[str, ...],
    shadow_rename: tuple[str, ...],
    scale_to_zero: float | None,
    seconds: float | None,
    report: str | None,
    learn: str | None,
    land_metrics: str | None,
    metrics: str | None,
    otlp: str | None,
    ui: str | None,
    ui_control: bool,
    ui_tls: tuple[str, str] | None,
    detach: bool,
    plain: bool,
    log_level: str,
    log_format: str,
) -> None:
    """Run TOPOLOGY: path.py, path.py:function or package.module:function.

    Ctrl-C ends the run in order, a second one at once; with --checkpoint it pauses, and --resume goes on. Exit codes: 0
    drained or paused, 1 the topology failed, 2 wrong use, 3 its shadow put out something else,
    130 stopped at once. `esault run TOPOLOGY --help` lists the topology's own parameters.
    """
    detached = folder_of_this_run()
    if detach and detached is None:
        _detach([each for each in sys.argv[1:] if each != "--detach"])
        return
    log = (
        configure(log_level, log_format) if detached is None else configure_file(log_level, str(detached.folder / LOG))
    )
    place = place_of(topology)
    params = params_of(place, settings)
    most = Budget() if budget is None else Budget.parse(budget)
    widths, chosen_policies = _widths_and_policies(parallelism, policy, fixed)
    # The engine starts with these processes' memory: what is imported only to show things comes later.
    from esault.runtime.session.request import Request
    from esault.runtime.session.run import execute, with_checkpoints
    from esault.ui.choose import choose
    from esault.ui.otlp_option import exported
    from esault.ui.prometheus import served
    from esault.ui.web_option import web_ui

    beside = None
    if shadow is not None:
        if hosts:
            raise UsageError("--shadow and --hosts: both versions run on this machine; leave one of them out")
        if shadow_rename and not resume and from_savepoint is None:
            raise UsageError("--shadow-rename is about what both versions go on from: say --resume or --from-savepoint")
        if scale_to_zero is not None:
            raise UsageError("--shadow and --scale-to-zero: both versions read on; leave one of them out")
        if engine != "actors":
            raise UsageError(f"--shadow is for the engine actors, not {engine}")
        from esault.shadow.beside import Beside

        how = {"set": settings, "shadow_set": shadow_settings, "acks": acks, "checkpoint": checkpoint, "slots": slots}
        on = {"renames": renames(shadow_rename, "--shadow-rename"), "allow_dropped_state": allow_dropped_state}
        beside = Beside(place, params, shadow, {**how, **on, "log_level": log_level})
        place = beside.first
    elif shadow_settings or shadow_rename:
        option = "--shadow-set" if shadow_settings else "--shadow-rename"
        raise UsageError(f"{option} is about another version beside this one: name it by --shadow TOPOLOGY")
    with (
        _told(log if log_format == "json" or detached is not None else None, detached),
        choose(plain, log, _began(detached)) as chosen,
        served(metrics, chosen) as served_view,
        exported(otlp, served_view) as measured,
        web_ui(measured, ui, ui_control, ui_tls) as view,
    ):
        request = Request(
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
                    objectives=objective,
                    budget=most.sub_units,
                    hourly_budget=most.hourly,
                ),
                checkpoint,
                checkpoint_timeout,
                aligned_checkpoint_timeout,
            ),
            parallelism=widths,
            slots=slots,
            scale_to_zero=scale_to_zero,
            seconds=seconds,
            report=report,
            view=view,
            policies=chosen_policies,
            state=state,
            resume=resume,
            restart=restart,
            from_savepoint=from_savepoint,
            renames=renames(rename),
            allow_dropped_state=allow_dropped_state,
            hosts=hosts,
            key=key,
            priority=priority,
            control=control,
            audit=audit,
            master=master,
            conf=spark_conf(conf),
            land_metrics=land_metrics,
            learn=learn,
        )
        with beside.running(request) if beside is not None else contextlib.nullcontext():
            done = execute(request)
            if beside is not None and done.ended == "paused":
                beside.paused()
    said = f"{done}\n  report: {report}" if report is not None else str(done)
    if detached is None:
        print(said)
    else:
        say(log, "esault.run", said)
        detached.say(ended=done.ended, code=STOPPED if done.ended == "stopped" else 0)
    if done.ended == "stopped":
        raise Outcome(STOPPED)
    if beside is not None:
        outcome = beside.outcome()
        if detached is None:
            print(f"\nshadow {shadow}:\n{outcome}")
        else:
            say(log, "esault.shadow", str(outcome))
        if not outcome.same:
            raise Outcome(DIFFERENT)


def _widths_and_policies(
    parallelism: tuple[str, ...], policy: tuple[str, ...], fixed: tuple[str, ...]
) -> tuple[dict[str, int], dict[str, str]]:
    """Return what --parallelism, --policy and --fixed say together. Raises UsageError where they contradict each other in one place."""
    kept: dict[str, int | None] = {text: None for text in fixed if "=" not in text}
    kept |= counts((text for text in fixed if "=" in text), "--fixed")
    said: list[dict[str, Any]] = [counts(parallelism, "--parallelism"), policies(policy)]
    source = click.get_current_context().get_parameter_source
    for named, option in zip(said, ("parallelism", "policy")):
        if source(option) != source("fixed"):  # one is in a file: the command line need not repeat all of it
            for name in kept:
                named.pop(name, None)
    return with_fixed(said[0], said[1], kept)


@contextlib.contextmanager
def _told(log: logging.Handler | None, detached: DetachedRun | None) -> Iterator[None]:
    """Tell as a record what ends the run, where all else is one."""
    try:
        yield
    except EsaultError as error:
        if log is None:
            raise
        say(log, "esault.run", str(error), logging.ERROR, error.__cause__)
        code = FAILED if isinstance(error, TopologyFailed) else WRONG_USE
        if detached is not None:
            detached.say(ended="failed", code=code, why=str(error))
        raise Outcome(code) from None


def _began(detached: DetachedRun | None) -> Callable[[Snapshot], None] | None:
    return None if detached is None else lambda snapshot: detached.say(run=snapshot.run, topology=snapshot.topology)


def _detach(arguments: list[str]) -> None:
    """Begin the run in the background; say how it is found, or why it did not begin."""
    made = begin(arguments)
    about = made.about
    if about.get("code"):
        print(f"error: {about.get('why', about['ended'])}", file=sys.stderr)
        raise Outcome(int(about["code"]))
    if not about.get("run"):
        said = (made.folder / OUTPUT).read_text(errors="replace").strip().removeprefix("error: ")
        raise UsageError(said or f"the run did not begin, and left no word in {made.folder}")
    name = about["topology"]
    print(f"{name}: {made.state} in the background, process {about['pid']}, run {about['run']}")
    print(f"  esault logs {name} --follow    esault status --run {name}    esault stop --run {name}")
