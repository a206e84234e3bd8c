"""`run`: a topology from a script or a notebook, to its end and its report."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from esault.api.option_types import check_option_types
from esault.elasticity.budget import Budget
from esault.elasticity.scaling import EVERY_UNIT
from esault.errors import UsageError
from esault.messages.delivery import Delivery
from esault.messages.settings import Settings
from esault.report import Report
from esault.runtime.session.fixed_widths import with_fixed
from esault.runtime.session.request import Quiet, Request, View
from esault.runtime.session.run import execute, with_checkpoints
from esault.topology.builder import Topology
from esault.topology.locate import loading, locate_function

__all__ = ["LEVELS", "at_level", "run"]

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_lock = threading.Lock()
#: what the runs of now have asked for
_asked: list[int] = []
#: the root logger's own level, while there are some
_own = logging.WARNING


def run(
    topology: Callable[..., Topology],
    params: Mapping[str, Any] | None = None,
    *,
    engine: str = "actors",
    report: str | Path | None = None,
    parallelism: Mapping[str, int] | None = None,
    slots: int | None = None,
    seconds: float | None = None,
    scale_to_zero: float | None = None,
    acks: str = "on",
    ackers: int | None = None,
    settings: Settings | None = None,
    chaining: bool | None = None,
    restart_strategy: str | None = None,
    heartbeat_timeout: float | None = None,
    checkpoint: float | None = None,
    checkpoint_timeout: float | None = None,
    aligned_checkpoint_timeout: float | None = None,
    state: str | Path | None = None,
    resume: bool = False,
    restart: bool = False,
    from_savepoint: str | Path | None = None,
    rename: Mapping[str, str] | None = None,
    allow_dropped_state: bool = False,
    policy: str | Mapping[str, str] | None = None,
    objective: str | Iterable[str] | None = None,
    budget: int | str | None = None,
    fixed: Iterable[str] | Mapping[str, int] = (),
    hosts: str | Path | None = None,
    key: str | Path | None = None,
    priority: int | None = None,
    control: str | None = None,
    audit: str | Path | None = None,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    land_metrics: str | Path | None = None,
    learn: str | Path | None = None,
    metrics: int | str | None = None,
    otlp: str | None = None,
    ui: int | str | None = None,
    ui_control: bool = False,
    ui_tls: tuple[str, str] | None = None,
    log_level: str | None = None,
    view: View | None = None,
) -> Report:
    """Run a topology to its end and return its report.

    `topology` is the function, not what it returns: every process imports its file and calls it with `params`. In a
    script this stands under `if __name__ == "__main__":`. `engine="local"` runs in this process, with `breakpoint()`, and
    takes any function. `acks="off"` tracks and replays nothing, and counts losses. `policy` says what scales units while they run: a name
    for all ("auto" is the default, "none" keeps them as they are) or a name by unit; units in `fixed` stay as wide as they start, or at the
    number that is given for them. `objective` is a latency to keep, such as "p99 < 100 ms" or "count=p99 < 50 ms", or several of them; `budget` the most sub-units that it may hold
    at any time, or "3.50/h": the most that their slots may cost an hour. `engine="spark"` runs it on Spark's Structured
    Streaming, `master` naming the cluster (all cores of this machine by default) and `conf` its settings.

    With `checkpoint=S` all state and positions are kept every S seconds in `state` (.esault/NAME), and after a death all go
    back there: state and tables are as if each tuple had been processed once. `resume=True` goes on with a run that did not
    finish, `restart=True` begins anew. `from_savepoint` begins with a savepoint, by its name or folder; `rename` says what has another name
    now (old name -> new one), `allow_dropped_state` lets state go that no unit takes. `hosts` names a hosts.toml: the sub-units then run on these machines' nodes, and share them with other runs by `priority`.

    With `scale_to_zero=S` a run with checkpoints pauses after S seconds without a tuple, gives all slots back, and goes on when input comes.

    `land_metrics` is a folder in which the run's own metrics land as tables, for `esault analyze`. `metrics` and `ui` are a port, or
    "ADDRESS:PORT", for Prometheus and for a page in a browser, `otlp` the URL of a receiver of OpenTelemetry. What else has the name of an
    option of `esault run` means the same. `view` is told of what the run prints and how it stands (`line`, `notice`, `update`); without,
    lines are printed. What is logged goes to the handlers of this program, at its levels; `log_level` ("debug", "info", "warning" or
    "error") is that of the root logger while it runs.

    Raises TopologyFailed (with the report so far), TopologyError, SourceError, SinkError and UsageError.
    """
    check_option_types(locals())
    if loading() is not None:
        raise UsageError(
            f"run was called while {loading()} was being imported, as every process of a run does; "
            'put it under `if __name__ == "__main__":`'
        )
    if acks not in ("on", "off"):
        raise UsageError(f'acks={acks!r}: it is "on" or "off"')
    settings = settings or Settings(chaining=True)
    if ackers is not None:
        settings = replace(settings, ackers=ackers)
    if acks == "off":
        settings = replace(settings, delivery=Delivery.NONE)
    said: dict[str, Any] = {
        "objectives": (objective,) if isinstance(objective, str) else None if objective is None else tuple(objective),
        "chaining": chaining,
        "restart_strategy": restart_strategy,
        "heartbeat_timeout": heartbeat_timeout,
    }
    if budget is not None:
        asked = Budget.parse(budget)
        said |= {"budget": asked.sub_units, "hourly_budget": asked.hourly}
    settings = replace(settings, **{name: value for name, value in said.items() if value is not None})
    settings = with_checkpoints(settings, checkpoint, checkpoint_timeout, aligned_checkpoint_timeout)
    place = topology if engine == "local" else locate_function(topology)
    policies = {EVERY_UNIT: policy} if isinstance(policy, str) else dict(policy or {})
    if isinstance(fixed, str):
        raise UsageError(f"fixed={fixed!r}: write a list of units, or a number for each, as in {{{fixed!r}: 2}}")
    kept = fixed if isinstance(fixed, Mapping) else dict.fromkeys(fixed)
    widths, policies = with_fixed(parallelism or {}, policies, kept)
    with at_level(log_level), _shown(view, metrics, otlp, ui, ui_control, ui_tls) as shown:
        return execute(
            Request(
                place,
                params or {},
                engine,
                settings,
                widths,
                slots,
                seconds,
                report,
                scale_to_zero=scale_to_zero,
                policies=policies,
                state=state,
                resume=resume,
                restart=restart,
                from_savepoint=None if from_savepoint is None else str(from_savepoint),
                renames=rename or {},
                allow_dropped_state=allow_dropped_state,
                hosts=hosts,
                key=key,
                priority=priority,
                control=control,
                audit=audit,
                master=master,
                conf=conf or {},
                land_metrics=land_metrics,
                learn=learn,
                view=shown,
            )
        )


@contextmanager
def _shown(
    view: View | None,
    metrics: int | str | None,
    otlp: str | None,
    ui: int | str | None,
    ui_control: bool,
    ui_tls: tuple[str, str] | None,
) -> Iterator[View | None]:
    """The view, and what else shows the run; nothing of that is loaded where it is not asked for."""
    from esault.ui.otlp_option import exported
    from esault.ui.prometheus import served
    from esault.ui.web_option import web_ui

    with (
        served(None if metrics is None else str(metrics), view or Quiet()) as served_view,
        exported(otlp, served_view) as measured,
        web_ui(measured, None if ui is None else str(ui), ui_control, ui_tls) as shown,
    ):
        yield shown


@contextmanager
def at_level(level: str | None) -> Iterator[None]:
    """Have the root logger log at `level`, as processes that are forked meanwhile do; None: as it is.

    Of several at once the one holds that says most. The last one that ends gives the logger its own level back. Raises UsageError.
    """
    if level is None:
        yield
        return
    if level not in LEVELS:
        raise UsageError(f"log_level={level!r}: it is one of {', '.join(LEVELS)}")
    number = LEVELS[level]
    global _own
    with _lock:
        if not _asked:
            _own = logging.root.level
        _asked.append(number)
        logging.root.setLevel(min(_asked))
    try:
        yield
    finally:
        with _lock:
            _asked.remove(number)
            logging.root.setLevel(min(_asked, default=_own))
