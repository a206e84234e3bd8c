from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from running import module

from esault import EndOfStream
from esault.topology.context import Context

module("nexmark/q1.py")  # puts their folder on the path
from nexmark_events import AUCTION, BID, KIND, PERSON, TIME, Auction, Bid, Events, Person  # noqa: E402
from nexmark_source import Nexmark  # noqa: E402


def epochs(n, **how):
    events = Events(**how)
    return [event for epoch in range(n) for event in events.in_epoch(epoch)]


def test_the_mix_is_one_person_three_auctions_and_46_bids():
    assert Counter(event[KIND] for event in epochs(100)) == {PERSON: 100, AUCTION: 300, BID: 4600}


def test_ids_are_dense_and_times_evenly_spaced():
    events = epochs(100, per_second=1000.0, start=5.0)
    assert [event[TIME] for event in events] == list(range(5000, 10_000))
    assert [e[Person.ID] for e in events if e[KIND] == PERSON] == list(range(1000, 1100))
    assert [e[Auction.ID] for e in events if e[KIND] == AUCTION] == list(range(1000, 1300))


def test_half_of_the_bids_are_on_a_hot_auction_and_three_of_four_by_a_hot_bidder():
    bids = [e for e in epochs(2000) if e[KIND] == BID]
    assert sum(bid[Bid.AUCTION] % 100 == 0 for bid in bids) / len(bids) == pytest.approx(0.5 + 0.5 / 100, abs=0.01)
    assert sum(bid[Bid.BIDDER] % 100 == 1 for bid in bids) / len(bids) == pytest.approx(0.75 + 0.25 / 100, abs=0.01)
    auctions = [e for e in epochs(2000) if e[KIND] == AUCTION]
    hot = sum(auction[Auction.SELLER] % 100 == 0 for auction in auctions) / len(auctions)
    assert hot == pytest.approx(0.75 + 0.25 / 100, abs=0.015)


def test_bids_are_on_auctions_in_flight_or_a_few_ahead():
    for epoch in (0, 7, 500):
        newest = 1000 + 3 * epoch + 2
        for bid in Events().in_epoch(epoch)[4:]:
            assert bid[Bid.AUCTION] <= newest + 10
            assert bid[Bid.AUCTION] >= newest - 102


def test_sizes_and_prices_are_those_of_the_standard():
    events = epochs(1000)
    for kind, own, size in ((PERSON, 2, 200), (AUCTION, 2, 500), (BID, 2, 100)):
        texts = [sum(len(v) if isinstance(v, str) else 8 for v in e[own - 1 :]) for e in events if e[KIND] == kind]
        assert sum(texts) / len(texts) == pytest.approx(size, rel=0.06)
    prices = [e[Bid.PRICE] for e in events if e[KIND] == BID]
    assert min(prices) >= 100 and max(prices) <= 10**8
    assert sum(price < 10**5 for price in prices) / len(prices) == pytest.approx(0.5, abs=0.01)
    assert all(
        e[Auction.RESERVE] > e[Auction.INITIAL] and e[Auction.EXPIRES] > e[TIME] for e in events if e[KIND] == AUCTION
    )


def test_disorder_keeps_the_events_and_their_groups():
    ordered, mixed = Events(), Events(disorder=200)
    for group in range(3):
        straight = [event for epoch in range(4 * group, 4 * group + 4) for event in ordered.in_epoch(epoch)]
        assert sorted(mixed.in_group(group)) == sorted(straight)
        assert mixed.in_group(group) != straight


@pytest.mark.parametrize("disorder", [7, 51, 953 * 50])
def test_a_group_that_cannot_be_mixed_is_refused(disorder):
    with pytest.raises(ValueError, match="multiple of 50"):
        Events(disorder=disorder)


def read(count, part, parts, limits, position=None, **how):
    spout = Nexmark(count, Events(**how))
    spout.open(Context("events", part=part, parts=parts))
    if position is not None:
        spout.seek(position)
    rows = []
    while True:
        try:
            rows += [event for _, event in spout.read(next(limits))]
        except EndOfStream:
            return rows, spout
        if position is None and len(rows) > 120:
            return rows, spout


@given(
    st.integers(0, 700),
    st.integers(1, 4),
    st.sampled_from([0, 50, 100]),
    st.lists(st.integers(1, 130), min_size=1, max_size=5),
)
def test_parts_together_read_each_event_once_and_go_on_where_they_were(count, parts, disorder, limits):
    import itertools

    everything = []
    for part in range(parts):
        first, spout = read(count, part, parts, itertools.cycle(limits), disorder=disorder)
        rest, _ = read(count, part, parts, itertools.cycle(limits[::-1]), spout.position(), disorder=disorder)
        everything += first + rest
    size = disorder or 50
    groups = [event for n in range(-(-count // size)) for event in Events(disorder=disorder).in_group(n)]
    assert sorted(everything) == sorted(groups[:count])
