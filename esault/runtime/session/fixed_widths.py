"""Units that stay as wide as they start, and what else is said of them."""

from __future__ import annotations

from collections.abc import Mapping

from esault.elasticity.policy import NONE
from esault.errors import UsageError

__all__ = ["with_fixed"]


def with_fixed(
    parallelism: Mapping[str, int], policies: Mapping[str, str], fixed: Mapping[str, int | None]
) -> tuple[dict[str, int], dict[str, str]]:
    """Return parallelism and policies by unit where those in `fixed` keep this number; None: the one that they start with.

    Raises UsageError where another number, or a policy, is said of one of them.
    """
    for name, width in fixed.items():
        if not name:
            raise UsageError(
                "fixed names no unit: say UNIT, or UNIT=N, such as count=4; --policy none keeps all units as they are"
            )
        if width is not None and parallelism.get(name, width) != width:
            raise UsageError(
                f"unit {name!r} is fixed at {width}, and parallelism says {parallelism[name]}: say one of them"
            )
        if policies.get(name, NONE) != NONE:
            raise UsageError(f"unit {name!r} is fixed, and the policy {policies[name]} would scale it: say one of them")
    widths = {name: width for name, width in fixed.items() if width is not None}
    return {**parallelism, **widths}, {**policies, **dict.fromkeys(fixed, NONE)}
