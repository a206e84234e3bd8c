"""The sinks of a run as the driver calls them, once each: at its beginning, after it went back, and at its end."""

from __future__ import annotations

from functools import partial

from esault.background import BackgroundLoop
from esault.control.report.summary import how_ended, may_repeat
from esault.control.run.driver import Driver
from esault.errors import EsaultError
from esault.flow.operators.user_error import UserError, pack_cause
from esault.flow.send.end_sinks import end_sinks
from esault.flow.send.recommit import go_back, recommit
from esault.flow.send.sink_call import call_sink, waited
from esault.runtime.driver.committer import PATIENCE, Committer
from esault.runtime.messages import RunSpec
from esault.topology.plan import SinkPlan
from esault.topology.sink import RunInfo

__all__ = ["LAST_COMMIT_WITHIN", "RunSinks"]

#: seconds within which sinks must take what the last checkpoint holds, where a sub-unit ended before it could give it to them
LAST_COMMIT_WITHIN = 10.0


class RunSinks:
    """Calls `begin`, `commit` for the whole run, and `end`, through the committer."""

    def __init__(self, spec: RunSpec, committer: Committer) -> None:
        self._spec, self._committer = spec, committer
        self._begun: list[SinkPlan] = []

    def commit(self, core: Driver) -> None:
        """Begin to commit the checkpoint that is due, if one is and the last is done."""
        kept, committer = core.run_checkpoints.committing, self._committer
        if kept is not None and not committer.busy:
            again = partial(recommit, kept, core.plan.sinks, committer.background)
            committer.begin(partial(again, whole=False, context=self._spec.context))

    def begin(self, core: Driver) -> None:
        """Call `begin` where that has not been done, and give sinks what the newest checkpoint holds. Raises what they raise."""
        spec, committer = self._spec, self._committer
        if not self._begun:
            for sink in core.plan.sinks:
                info = RunInfo(
                    spec.run,
                    core.plan.name,
                    sink.name,
                    resumed=spec.kept is not None,
                    lineage=spec.lineage or spec.run,
                    from_savepoint=spec.from_savepoint,
                )
                begin = partial(_begin, sink, info, committer.background)
                committer.call(partial(call_sink, sink.name, "begin", begin))
                self._begun.append(sink)
        back = bool(core.restores.all)
        committer.call(partial(go_back, core.completed, core.plan.sinks, committer.background, back, spec.context))

    def settle(self, core: Driver) -> bool:
        """Wait for a commit that is on, give sinks what a dead sub-unit could not; return whether they can be ended."""
        committer, settled = self._committer, self._committer.settle()
        if not core.died_late or core.failure is not None or not settled:
            return settled
        try:
            last = partial(recommit, core.completed, core.plan.sinks, committer.background, context=self._spec.context)
            within = PATIENCE if how_ended(core) == "stopped" else LAST_COMMIT_WITHIN
            settled = committer.call_within(last, within)
            if not settled:
                core.failure = (
                    f"sinks did not take what the last checkpoint holds within {within:.0f} s: see that their servers answer; "
                    "with --resume they get it"
                )
        except (EsaultError, UserError) as error:
            core.failure, core.cause = str(error), pack_cause(error)
        return settled

    def end(self, core: Driver) -> None:
        """Call `end` of those that have begun."""
        background = self._committer.background
        ended = how_ended(core) == "drained"
        self._committer.call(partial(end_sinks, self._begun, ended, may_repeat(core), background))


def _begin(plan: SinkPlan, info: RunInfo, background: BackgroundLoop) -> None:
    waited(plan.sink.begin(info), background)
