"""Nexmark's events: people who sign up, auctions that they open, bids on them; any event by its number, the same for a seed.

After the NEXMark benchmark (Tucker, Tufte, Papadimos, Maier, 2002) with the mix, the fields and the distributions of the
generator that Apache Beam and Flink use: of 50 events 1 person, 3 auctions and 46 bids; every other bid on a hot auction, 3 of 4 by
a hot bidder, 3 of 4 auctions by a hot seller; prices 10^(2 to 8); ids a little ahead of what there is, as if events had been swapped.
The random numbers are Python's, so the events are not those of another generator.
"""

from __future__ import annotations

import random
from functools import cache
from typing import Any

__all__ = ["AUCTION", "BID", "EPOCH", "KIND", "PERSON", "TIME", "Auction", "Bid", "Event", "Events", "Person"]

#: a tuple: its kind, its time in milliseconds since the epoch, and the fields of Person, Auction or Bid
Event = tuple[Any, ...]
KIND, TIME = 0, 1
PERSON, AUCTION, BID = range(3)


class Person:
    """The places of a person's fields."""

    ID, NAME, EMAIL, CARD, CITY, STATE, EXTRA = range(2, 9)


class Auction:
    """The places of an auction's fields; `EXPIRES` in milliseconds since the epoch, prices in cents."""

    ID, ITEM, DESCRIPTION, INITIAL, RESERVE, EXPIRES, SELLER, CATEGORY, EXTRA = range(2, 11)


class Bid:
    """The places of a bid's fields; price in cents."""

    AUCTION, BIDDER, PRICE, EXTRA = range(2, 6)


#: events that repeat the mix: first the person, then the auctions, then the bids
EPOCH, AUCTIONS = 50, 3
FIRST_ID, FIRST_CATEGORY, CATEGORIES = 1000, 10, 5
#: one of so many people, and of so many auctions, is hot
HOT = 100
IN_FLIGHT, ACTIVE, LEAD = 100, 1000, 10
#: characters of an event on average; a bid's other fields count as 32 of them
PERSON_SIZE, AUCTION_SIZE, BID_SIZE = 200, 500, 100
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES = (
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
)
FIRST = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
LAST = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
#: with which, modulo a group's size, events of a group are put out of order; a prime that no group is a multiple of
STRIDE = 953


@cache
def _characters(seed: int) -> str:
    """A text that all others are cut from: cheaper than a draw for each character."""
    return "".join(random.Random(seed).choices("abcdefghijklmnopqrstuvwxyz ", [1] * 26 + [2], k=1 << 16))


class Events:
    """All events of a seed, at `per_second` of event time from `start` on, seconds since the epoch.

    `disorder`: within groups of so many events they come out of order, 0 for none; a multiple of EPOCH. Of all events a share
    `malformed` lacks what follows its time.
    """

    def __init__(
        self,
        seed: int = 1,
        per_second: float = 10_000.0,
        start: float = 1_600_000_000.0,
        disorder: int = 0,
        malformed: float = 0.0,
    ) -> None:
        if disorder % EPOCH or (disorder and disorder % STRIDE == 0):
            raise ValueError(f"disorder={disorder}: write a multiple of {EPOCH}, and none of {STRIDE}")
        self.group = disorder or EPOCH
        self._disorder = disorder
        self._seed = seed
        self._start, self._gap = 1000.0 * start, 1000.0 / per_second
        self._malformed = malformed
        self._text = _characters(seed)

    def in_group(self, number: int) -> list[Event]:
        """The events of the group of this number, from 0, in the order in which they come."""
        first, epochs = number * self.group // EPOCH, self.group // EPOCH
        events = [event for epoch in range(first, first + epochs) for event in self.in_epoch(epoch)]
        return [events[i * STRIDE % self.group] for i in range(self.group)] if self._disorder else events

    def in_epoch(self, epoch: int) -> list[Event]:
        """The 50 events of an epoch in order of their time."""
        draw = random.Random(self._seed << 48 | epoch).random
        events = [self._person(draw, epoch)]
        events += [self._auction(draw, epoch, i) for i in range(AUCTIONS)]
        events += [
            self._bid(draw, epoch, number) for number in range(EPOCH * epoch + 1 + AUCTIONS, EPOCH * (epoch + 1))
        ]
        if self._malformed:
            events = [event[: TIME + 1] if draw() < self._malformed else event for event in events]
        return events

    def _at(self, number: int) -> int:
        return int(self._start + number * self._gap)

    def _person(self, draw: Any, epoch: int) -> Event:
        name = f"{FIRST[int(draw() * len(FIRST))]} {LAST[int(draw() * len(LAST))]}"
        email = f"{self._string(draw, 7)}@{self._string(draw, 5)}.com"
        card = " ".join(f"{int(draw() * 10_000):04}" for _ in range(4))
        city, state = CITIES[int(draw() * len(CITIES))], STATES[int(draw() * len(STATES))]
        extra = self._extra(draw, PERSON_SIZE - 8 - len(name) - len(email) - len(card) - len(city) - len(state))
        return PERSON, self._at(EPOCH * epoch), FIRST_ID + epoch, name, email, card, city, state, extra

    def _auction(self, draw: Any, epoch: int, i: int) -> Event:
        at = self._at(EPOCH * epoch + 1 + i)
        seller = epoch // HOT * HOT if draw() < 0.75 else _some_person(draw, epoch)
        initial = _price(draw)
        reserve = initial + _price(draw)
        ahead = int(IN_FLIGHT * EPOCH // AUCTIONS * self._gap)
        expires = at + 1 + int(draw() * max(2 * ahead, 1))
        item, description = self._string(draw, 20), self._string(draw, 100)
        category = FIRST_CATEGORY + int(draw() * CATEGORIES)
        extra = self._extra(draw, AUCTION_SIZE - 48 - len(item) - len(description))
        auction = FIRST_ID + AUCTIONS * epoch + i
        return AUCTION, at, auction, item, description, initial, reserve, expires, FIRST_ID + seller, category, extra

    def _bid(self, draw: Any, epoch: int, number: int) -> Event:
        newest = AUCTIONS * epoch + AUCTIONS - 1
        if draw() < 0.5:
            auction = newest // HOT * HOT
        else:
            oldest = max(newest - IN_FLIGHT, 0)
            auction = oldest + int(draw() * (newest - oldest + 1 + LEAD))
        # The second of a hundred, so that hot bidders are not hot sellers too.
        bidder = epoch // HOT * HOT + 1 if draw() < 0.75 else _some_person(draw, epoch)
        return (
            BID,
            self._at(number),
            FIRST_ID + auction,
            FIRST_ID + bidder,
            _price(draw),
            self._extra(draw, BID_SIZE - 32),
        )

    def _string(self, draw: Any, most: int) -> str:
        at = int(draw() * 65_000)
        return self._text[at : at + 3 + int(draw() * (most - 3))].strip()

    def _extra(self, draw: Any, size: int) -> str:
        """Of this size, a fifth more or less."""
        at = int(draw() * 65_000)
        return self._text[at : at + int(size * (0.8 + 0.4 * draw()))]


def _price(draw: Any) -> int:
    return round(100 * 10 ** (6 * draw()))


def _some_person(draw: Any, epoch: int) -> int:
    """One of those who signed up last, or will soon."""
    active = min(epoch + 1, ACTIVE)
    return epoch + 1 - active + int(draw() * (active + LEAD))
