"""Which slots a run begins with, of those that the nodes have."""

from __future__ import annotations

import pytest

from esault.cluster.messages import Welcome
from esault.cluster.slot_messages import SlotShare
from esault.cluster.survey import Found, share_by_priority
from esault.errors import UsageError


def found(name, free, *shares, draining=False):
    held = tuple(SlotShare(str(i), "t", *share) for i, share in enumerate(shares))
    return Found(
        f"{name}:1",
        Welcome(
            name=name,
            slots=9,
            free=free,
            offers=(),
            draining=draining,
            members=(),
            esault="",
            python="",
            wall=0.0,
            shares=held,
        ),
    )


LOW, EQUAL, OWN = (1, 4, 1), (5, 3, 0), (None, 2, 0)


@pytest.mark.parametrize(
    ("slots", "shares"),
    [
        (1, (("a:1", 1), ("b:1", 0))),
        (3, (("a:1", 2), ("b:1", 1))),
        (5, (("a:1", 3), ("b:1", 2))),  # free ones first, then those of lower ones that can be given
        (6, (("a:1", 4), ("b:1", 2))),
    ],
)
def test_free_slots_go_first_and_then_those_that_lower_ones_can_give(slots, shares):
    nodes = [found("a", 2, LOW, EQUAL), found("b", 2, EQUAL, OWN), found("c", 9, draining=True)]
    assert share_by_priority(nodes, slots, 5) == shares


def test_what_all_together_do_not_have_is_refused_with_the_numbers():
    with pytest.raises(UsageError, match="takes 5 slots to begin, and the hosts have 1 free and 3 that runs of lower"):
        share_by_priority([found("a", 1, LOW, EQUAL)], 5, 5)
