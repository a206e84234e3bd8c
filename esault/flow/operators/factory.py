"""The operator that fits a bolt."""

from __future__ import annotations

from esault.flow.operators.async_operator import AsyncElementOperator, AsyncObjectOperator
from esault.flow.operators.batch_operator import BatchOperator
from esault.flow.operators.broadcast_operator import BroadcastOperator
from esault.flow.operators.count_operator import CountOperator
from esault.flow.operators.element_operator import ElementOperator
from esault.flow.operators.object_operator import ObjectOperator
from esault.flow.operators.operator import Operator
from esault.flow.operators.operator_parameters import OperatorParameters
from esault.flow.operators.pane_operator import PaneOperator
from esault.flow.operators.session_operator import SessionOperator
from esault.flow.operators.slice_operator import SliceOperator, may_slice
from esault.flow.operators.time_window_operator import TimeWindowOperator
from esault.flow.operators.timed_operator import TimedOperator
from esault.flow.operators.window_operator import WindowOperator
from esault.topology.timed_bolt import Unwindowed
from esault.topology.window import CountWindow, SessionWindow, TimeWindow, WindowKind

__all__ = ["operator"]


#: kind of windows -> its operator; a kind that derives from another has its operator
_WINDOWS: dict[type[WindowKind], type[WindowOperator]] = {
    TimeWindow: TimeWindowOperator,
    SessionWindow: SessionOperator,
    CountWindow: CountOperator,
    Unwindowed: TimedOperator,
}


def operator(parameters: OperatorParameters) -> Operator:
    """The operator that fits the plan of a bolt."""
    plan = parameters.plan
    if plan.window is not None:
        if plan.window.panes is not None:
            return PaneOperator(parameters)
        if may_slice(plan):
            return SliceOperator(parameters)
        windows = next(_WINDOWS[each] for each in type(plan.window.kind).__mro__ if each in _WINDOWS)
        return windows(parameters)
    kind: type[Operator]
    if plan.concurrency:
        kind = AsyncElementOperator if plan.objects.endswith("key") else AsyncObjectOperator
    elif plan.broadcast_inputs:
        kind = BroadcastOperator
    else:
        kind = BatchOperator if plan.batch else ElementOperator if plan.objects.endswith("key") else ObjectOperator
    return kind(parameters)
