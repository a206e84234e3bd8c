"""The operator that fits a bolt."""

from __future__ import annotations

from esault.flow.emitter import Emitter
from esault.flow.operators.batch_operator import BatchOperator
from esault.flow.operators.element_operator import ElementOperator
from esault.flow.operators.object_operator import ObjectOperator
from esault.flow.operators.operator import Operator
from esault.flow.user_error import LetterBox
from esault.payload.codec import Codec
from esault.topology.context import Context
from esault.topology.plan import UnitPlan

__all__ = ["operator"]


def operator(
    plan: UnitPlan, context: Context, emitter: Emitter, codec: Codec, letters: LetterBox, now: float
) -> Operator:
    """The operator that fits the plan of a bolt."""
    kind = BatchOperator if plan.batch else ElementOperator if plan.objects.endswith("key") else ObjectOperator
    return kind(plan, context, emitter, codec, letters, now)
