"""What other code wrote and this one has not, or has anew, is said once for all sub-units."""

from __future__ import annotations

from esault.control.checkpoints.evolution import EvolutionTold
from esault.messages.checkpoint import StateEvolved


def test_sub_units_say_it_together_and_once():
    told = EvolutionTold()
    assert told.lines() == []
    told.note("count", StateEvolved(1, (("Count", "first", 3, True),), (("Count", "longest", 2, True),)))
    told.note("count", StateEvolved(2, (("Count", "first", 1, True), ("shop:Order", "tax", 9, False))))
    assert told.lines() == [
        "unit 'count': attribute 'longest' of Count is new: the state of 2 keys has none, and takes its default",
        "unit 'count': attribute 'first' of Count is in the state of 4 keys and no attribute of it any more: it was left out. If it was "
        "renamed, take the old one over in __setstate__(self, state)",
        "unit 'count': attribute 'tax' of Order is in the state of 9 objects and no attribute of it any more: it was left out. If it was "
        "renamed, take the old one over in __setstate__(self, state)",
    ]
    told.note("count", StateEvolved(3, (("Count", "first", 4, True),)))  # all went back, to the same checkpoint
    assert told.lines() == []
    told.note("other", StateEvolved(4, (("Count", "first", 1, True),)))
    assert "unit 'other': attribute 'first' of Count is in the state of 1 key and" in told.lines()[0]
