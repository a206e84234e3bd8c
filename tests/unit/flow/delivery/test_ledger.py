"""The ledger: figures of the paper's ack server, and every edge of registering, acking, forgetting and expiring."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.flow.delivery.ledger import DONE, PROCESSED, Ledger

ROOT = (7, 1, 0)
BOTH = PROCESSED | DONE


def test_the_ack_server_of_the_paper_edges_5_and_9():
    ledger = Ledger()
    assert ledger.register(ROOT, 5 ^ 9, 5 ^ 9, 0.0) == 0
    assert ledger.ack(ROOT, 5, 5, 0.0) == 0
    assert ledger.ack(ROOT, 9, 9, 0.0) == BOTH
    assert ROOT not in ledger
    assert list(ledger.open()) == []


def test_the_ack_server_of_the_paper_a_missing_ack_replays_exactly_once_and_a_late_one_is_ignored():
    ledger = Ledger(bucket_seconds=30)
    ledger.register(ROOT, 12, 12, 0.0)
    ledger.ack(ROOT, 5, 5, 1.0)
    assert ledger.stalled(3.9, after=3) == []
    assert ledger.stalled(4.0, after=3) == [ROOT]
    assert ledger.forget(ROOT) is True
    ledger.register((7, 1, 1), 3, 3, 4.0)
    assert ledger.stalled(4.0, after=3) == []
    assert ledger.ack(ROOT, 9, 9, 5.0) == 0
    assert list(ledger.open()) == [(7, 1, 1)]
    assert ledger.ack((7, 1, 1), 3, 3, 6.0) == BOTH
    assert ledger.stalled(99.0, after=3) == []
    assert len(ledger) == 0


def test_an_ack_carries_what_was_derived_so_a_tree_is_done_with_its_last_leaf():
    ledger = Ledger()
    x, y, z = 0b1, 0b10, 0b100
    ledger.register(ROOT, x, x, 0.0)
    assert ledger.ack(ROOT, x ^ y ^ z, x ^ y ^ z, 0.0) == 0
    assert ledger.ack(ROOT, z, z, 0.0) == 0
    assert ledger.ack(ROOT, y, y, 0.0) == BOTH


def test_a_sink_that_has_written_and_not_committed_gives_the_window_back_first():
    ledger = Ledger()
    ledger.register(ROOT, 5, 5, 0.0)
    assert ledger.ack(ROOT, 5, 0, 0.0) == PROCESSED
    assert list(ledger.open()) == [ROOT]
    assert ledger.ack(ROOT, 0, 5, 0.0) == DONE
    assert list(ledger.open()) == []


def test_processed_is_told_once_though_held_rows_derive_more_later():
    ledger = Ledger()
    x, y = 1, 2
    ledger.register(ROOT, x, x, 0.0)
    assert ledger.ack(ROOT, x, 0, 0.0) == PROCESSED
    assert ledger.ack(ROOT, y, x ^ y, 0.0) == 0
    assert ledger.ack(ROOT, y, y, 0.0) == DONE


def test_done_includes_processed_even_if_its_ack_is_still_on_the_way():
    ledger = Ledger()
    ledger.register(ROOT, 5, 5, 0.0)
    assert ledger.ack(ROOT, 0, 5, 0.0) == BOTH
    assert ledger.ack(ROOT, 5, 0, 0.0) == 0


def test_acks_before_the_root_wait_for_it():
    ledger = Ledger()
    assert ledger.ack(ROOT, 5, 5, 0.0) == 0
    assert ledger.ack(ROOT, 9, 9, 0.0) == 0
    assert (len(ledger), ledger.unregistered) == (0, 1)
    assert ledger.register(ROOT, 12, 12, 0.0) == BOTH
    assert (len(ledger), ledger.unregistered) == (0, 0)


def test_early_acks_that_cancel_out_do_not_end_a_root_that_nobody_registered():
    ledger = Ledger()
    assert ledger.ack(ROOT, 5, 5, 0.0) == 0
    assert ledger.ack(ROOT, 5, 5, 0.0) == 0
    assert ROOT not in ledger


def test_a_root_of_which_nothing_was_sent_is_done_at_once():
    assert Ledger().register(ROOT, 0, 0, 0.0) == BOTH


def test_a_root_that_is_taken_over_when_it_is_registered_says_so():
    ledger = Ledger()
    ledger.ack(ROOT, 5, 0, 0.0)
    assert ledger.register(ROOT, 5, 5, 0.0) == PROCESSED
    assert ledger.ack(ROOT, 0, 5, 0.0) == DONE


def test_registering_an_open_root_again_is_refused_since_it_would_end_it_unprocessed():
    ledger = Ledger()
    ledger.register(ROOT, 5, 5, 0.0)
    with pytest.raises(
        ValueError, match=r"root \(7, 1, 0\) is open already; a replay is registered under a new attempt"
    ):
        ledger.register(ROOT, 5, 5, 0.0)
    assert ledger.ack(ROOT, 5, 5, 0.0) == BOTH


def test_sums_of_unregistered_roots_live_one_to_two_buckets():
    ledger = Ledger(bucket_seconds=30)
    assert ledger.expire(100.0) == 0
    ledger.ack(ROOT, 5, 5, 101.0)
    assert ledger.expire(129.9) == 0
    assert ledger.expire(130.0) == 0
    assert ledger.unregistered == 1
    ledger.ack((7, 2, 0), 1, 1, 131.0)
    assert ledger.expire(159.9) == 0
    assert ledger.expire(160.0) == 1
    assert ledger.unregistered == 1
    assert ledger.expire(1000.0) == 1
    assert ledger.unregistered == 0


def test_a_sum_in_the_older_bucket_is_still_found():
    ledger = Ledger(bucket_seconds=30)
    ledger.expire(0.0)
    ledger.ack(ROOT, 5, 5, 1.0)
    ledger.expire(30.0)
    ledger.ack(ROOT, 9, 9, 31.0)
    assert ledger.unregistered == 1
    assert ledger.register(ROOT, 12, 12, 32.0) == BOTH


def test_registered_roots_never_expire():
    ledger = Ledger(bucket_seconds=1)
    ledger.register(ROOT, 5, 5, 0.0)
    assert [ledger.expire(now) for now in (0.0, 10.0, 20.0, 30.0)] == [0, 0, 0, 0]
    assert ROOT in ledger


def test_a_bucket_must_have_a_length():
    with pytest.raises(ValueError, match="bucket_seconds must be above 0, not 0"):
        Ledger(bucket_seconds=0)


def test_a_forgotten_attempt_means_nothing_any_more():
    ledger = Ledger()
    ledger.register(ROOT, 5, 5, 0.0)
    assert ledger.forget(ROOT) is True
    assert ledger.forget(ROOT) is False
    assert ledger.ack(ROOT, 5, 5, 0.0) == 0
    assert ledger.forget(ROOT) is False
    assert ledger.unregistered == 0


def test_an_owner_that_is_no_more_takes_its_roots_along():
    ledger = Ledger(bucket_seconds=30)
    ledger.expire(0.0)
    ledger.ack((7, 3, 0), 1, 1, 1.0)
    ledger.expire(30.0)
    ledger.ack((7, 2, 0), 1, 1, 31.0)
    ledger.register((7, 1, 0), 1, 1, 31.0)
    ledger.register((8, 1, 0), 1, 1, 31.0)
    assert ledger.forget_owner(7) == 3
    assert (list(ledger.open()), ledger.unregistered) == ([(8, 1, 0)], 0)


def test_stalled_counts_from_the_last_ack_and_lists_the_oldest_first():
    ledger = Ledger()
    for number in range(3):
        ledger.register((7, number, 0), 1, 1, float(number))
    ledger.ack((7, 0, 0), 2, 2, 5.0)
    assert ledger.stalled(6.0, after=4) == [(7, 1, 0), (7, 2, 0)]
    assert ledger.stalled(9.0, after=4) == [(7, 0, 0), (7, 1, 0), (7, 2, 0)]
    assert ledger.stalled(4.0, after=4) == []


def test_the_check_finds_a_broken_ledger():
    ledger = Ledger()
    ledger.register(ROOT, 5, 5, 0.0)
    ledger.check()
    ledger._entries[ROOT].p = 0
    with pytest.raises(AssertionError, match="is taken over and its owner was not told"):
        ledger.check()
    ledger._entries[ROOT].d = 0
    with pytest.raises(AssertionError, match="is complete and still open"):
        ledger.check()
    ledger._entries[ROOT].d = ledger._entries[ROOT].p = 5
    ledger._early[ROOT] = (1, 1)
    with pytest.raises(AssertionError, match="twice"):
        ledger.check()


@given(st.integers(1, 60), st.integers(0, 10**9))
def test_any_tree_is_done_exactly_with_its_last_ack_in_whatever_order_they_come(size, seed):
    draw = random.Random(seed)
    ids = [1 << i for i in range(size)]
    parents = [None, *(draw.randrange(i) for i in range(1, size))]
    acks = []
    for i, id in enumerate(ids):
        for child, parent in enumerate(parents):
            if parent == i:
                id ^= ids[child]
        acks.append(id)
    draw.shuffle(acks)
    early = draw.randrange(size + 1)
    ledger = Ledger()
    flags = [ledger.ack(ROOT, a, a, 0.0) for a in acks[:early]]
    flags.append(ledger.register(ROOT, ids[0], ids[0], 0.0))
    flags += [ledger.ack(ROOT, a, a, 0.0) for a in acks[early:]]
    assert flags == [0] * size + [BOTH]
