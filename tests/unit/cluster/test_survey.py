"""Which slots a run begins with, of those that the nodes have."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from esault.cluster import survey as survey_module
from esault.cluster.messages import Member, Welcome
from esault.cluster.slot_messages import SlotShare
from esault.cluster.survey import Found, Unavailable, Unreachable, share_by_priority, share_out


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
    with pytest.raises(Unavailable, match="takes 5 slots to begin, and the hosts have 1 free and 3 that runs of lower"):
        share_by_priority([found("a", 1, LOW, EQUAL)], 5, 5)


@pytest.mark.parametrize(
    ("slots", "shares"), [(None, (("a:1", 2), ("b:1", 1))), (1, (("a:1", 1),)), (3, (("a:1", 2), ("b:1", 1)))]
)
def test_slots_are_dealt_out_one_by_one_among_those_that_have_some(slots, shares):
    nodes = [found("a", 2), found("b", 1), found("c", 0), found("d", 9, draining=True)]
    assert share_out(nodes, slots) == shares


@pytest.mark.parametrize(
    ("nodes", "slots", "why"),
    [
        ([found("a", 0), found("b", 3, draining=True)], None, "no host has a free slot"),
        ([found("a", 2), found("b", 3, draining=True)], 3, "--slots 3: the hosts have 2 free slots in all"),
    ],
)
def test_slots_that_are_taken_may_be_free_later_so_that_it_is_no_wrong_use(nodes, slots, why):
    with pytest.raises(Unavailable, match=why) as refused:
        share_out(nodes, slots)
    assert not refused.value.wrong_use


def test_members_that_have_gone_without_a_word_are_asked_all_at_once(monkeypatch):
    """Each takes seconds, and on hosts that come and go there are many of them."""
    members = (*(Member(f"gone{i}", f"gone{i}:1") for i in range(8)), Member("b", "b:1"), Member("a", "other:1"))
    together = threading.Barrier(8, timeout=30)

    def ask(address, key):
        if address.startswith("gone"):
            together.wait()
            raise Unreachable(address)
        here = found(address.partition(":")[0], 2)
        return replace(here, welcome=replace(here.welcome, members=members))

    monkeypatch.setattr(survey_module, "ask", ask)
    answered, absent = survey_module.survey(["a:1"], None)
    assert [each.address for each in answered] == ["a:1", "b:1"]
    assert absent == {}
