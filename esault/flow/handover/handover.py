"""All changes that one sub-unit takes part in, as old owner, as new owner or as both.

It is one module of over 300 lines: what is read while a change is on takes one way, whichever side of it this sub-unit is on.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from esault.errors import FrameError
from esault.flow.channel.frame import FETCH, GOT, ROWS, STATE, Frame, batch_of
from esault.flow.delivery.acks import Acks, Post
from esault.flow.handover.broadcast_rows import BroadcastRows
from esault.flow.handover.divide import DealtRows, Divider, Entry, MovedKeys
from esault.flow.handover.names_by_range import NamesByRange
from esault.flow.handover.pace import Pace
from esault.flow.handover.state_receiver import StateReceiver
from esault.flow.handover.state_sender import StateSender, Store
from esault.messages.change import (
    GIVES,
    TAKES,
    Cancel,
    HandOverRanges,
    HandOverTo,
    HoldRanges,
    LostOldOwner,
    Ranges,
    RangesHandedOver,
    RangesHeld,
    StateInstalled,
)
from esault.routing.ring import Name

__all__ = ["Handover"]

#: seconds a turn spends on a change, at least; several turns may pass between two looks at the sockets
TURN = 0.0003
#: seconds that it spends at most, behind tuples that took long: it has its share of the time whatever a batch takes
LONGEST_TURN = 0.01
#: share of the time that goes into state that has not been asked for yet, at most: while tuples wait here, and while none does.
#: The rest is left to tuples and other processes
BULK_SHARE, IDLE_SHARE = 0.25, 0.75
#: seconds between two times at which what was processed or taken over is acked while more waits: the inbox may not be empty before
#: the change is over, and the window would be closed until then
ACK_EVERY = 0.001
#: entries divided between two looks at the clock
SLICE = 4
#: END counts as every barrier, past and to come
EVERY_VERSION = 1 << 62


def _no_fence(version: int, number: int, old: int) -> None:
    """Put none."""


class Handover:
    """Stands between reading and the inbox while a change is on; costs one test a batch while none is."""

    def __init__(
        self,
        *,
        incarnation: int,
        inputs: frozenset[int],
        to_all: frozenset[int],
        store: Store,
        acks: Acks,
        tracked: bool,
        random64: Callable[[], int],
        hold_rows: int,
        clock: Callable[[], float],
        say: Callable[[Any], None],
        fence: Callable[[int, int, int], None],
        shares: bool = False,
    ) -> None:
        """`inputs`: those whose rows move with their keys; `to_all`: those of broadcast state. `say` takes messages for the unit.

        `shares`: rows of the inputs move by no key, since any sub-unit will do, and no state does.

        `fence` puts a fence among what is emitted, for a portion of state: version, number, its old owner or 0 for this one.
        """
        self._incarnation = incarnation
        self._inputs = inputs
        self._broadcast = BroadcastRows(to_all)
        self._store = store
        self._acks = acks
        self._tracked = tracked
        self._random64 = random64
        self._hold_rows = hold_rows
        self._clock = clock
        self._say = say
        self._fence = _no_fence if shares else fence  # rows that any may have come in no order
        self._shares = shares
        self._outgoing: StateSender | None = None
        self._incoming: StateReceiver | None = None
        #: the change that is done here, and the ways to those who gave: what they send again, they have not heard of
        self._done: tuple[int, dict[int, Post]] = (0, {})
        #: entries that have been read and not divided; none are processed before they are
        self._undivided: deque[Entry] = deque()
        #: of a change in subscales, while there are more to come: the names that they will move
        self._names: NamesByRange | None = None
        self._pace = Pace()
        #: what is said of a subscale at the end of the rest behind it
        self._handed_over: RangesHandedOver | None = None
        self._rests_until = 0.0
        #: so many of them, the first ones, stood in the inbox: what of them had to be held has been, and is released
        self._released = 0
        #: rows that were read and are neither in the inbox nor processed here
        self.away = 0
        #: when state may go again that has not been asked for
        self._bulk_at = 0.0
        #: when state may go although tuples wait here, and whether it was put off until then
        self._state_at, self._put_off = 0.0, False
        #: whether the last turn ended before all that could go had gone: what tuples then take of its share of the time is made up for
        self._cut_short = False
        #: when acks may go although tuples wait here
        self._acks_at = 0.0
        #: newest table version by sender: BARRIERs may come before HandOverRanges
        self._barriers: dict[int, int] = {}

    @property
    def active(self) -> bool:
        """Return whether batches must pass through `offer`."""
        return self.moving or self._handed_over is not None

    @property
    def moving(self) -> bool:
        """Return whether rows or state are on their way: not in the rest behind a subscale."""
        here = self._outgoing is not None or self._incoming is not None or bool(self._undivided)
        return here or self._broadcast.active

    @property
    def idle(self) -> bool:
        """Nothing is held, carried or on its way."""
        return not self.active

    @property
    def pending(self) -> int:
        """Rows that are here, and neither in the inbox nor processed."""
        rows = sum([len(entry.batch.keys) for entry in (*self._undivided, *self._broadcast.aside)])
        if self._outgoing is not None:
            rows += self._outgoing.carrying
        if self._incoming is not None:
            rows += self._incoming.holding
        return rows

    @property
    def wake_at(self) -> float | None:
        """The time at which there is more to do even if nothing comes in; None: never."""
        bulk = self._bulk_at if self._outgoing is not None and self._outgoing.scanning else None
        state = self._state_at if self._outgoing is not None and self._put_off else None
        ask = self._incoming.ask_at if self._incoming is not None else None
        rows = min(self._outgoing.rows_at, self._outgoing.again_at) if self._outgoing is not None else math.inf
        rest = self._rests_until if self._handed_over is not None else math.inf
        due = min([at for at in (bulk, state, ask, rows, rest) if at is not None])
        return None if due == math.inf else due

    # what the unit says ------------------------------------------------------------------------------

    def _divider(self, moves: Ranges, everything: bool) -> Divider:
        acks = self._acks if self._tracked else None
        moved = DealtRows(moves) if self._shares else MovedKeys(moves, everything)
        return Divider(moved, self._random64, acks, self._hold_rows)

    def _names_of(self, message: HandOverRanges, moved: MovedKeys) -> Iterator[tuple[int, Name]]:
        """Return the names of all elements, or of those that move where they are known, and who gets them, 0 for one that stays."""
        names, ranges = self._names, [(low, high) for low, high, _ in message.moves]
        if names is not None and names.knows(ranges) and not message.everything:
            found = names.take(ranges, moved)
            if not names:
                self._note_no_names()
            return found
        self._note_no_names()
        if not message.later:
            made: list[Name] = []
            self._store.note_made(made)
            return self._all_names(self._store.scan(), made, moved)
        names = NamesByRange(message.later)
        if self._store.note_made(names.made):
            self._names = names
        return names.look(self._store.scan(), moved)

    def _all_names(self, names: Iterator[Name], made: list[Name], moved: MovedKeys) -> Iterator[tuple[int, Name]]:
        """Return all of these, and of those that were taken from a disk meanwhile: a scan that had not come to them finds them no more."""
        for name in names:
            yield moved.owner_of(self._store.key_of(name)), name
        while made:
            name = made.pop()
            yield moved.owner_of(self._store.key_of(name)), name
        self._store.note_made(None)

    def _note_no_names(self) -> None:
        if self._names is not None:
            self._names = None
            self._store.note_made(None)

    def hold_ranges(self, message: HoldRanges) -> None:
        """From now on rows of these ranges are held."""
        if message.broadcast == GIVES:
            self._broadcast.gives = message.version
        elif message.broadcast == TAKES:
            self._broadcast.takes = True
        if message.holds and (self._incoming is None or self._incoming.version < message.version):
            posts = {old: self._acks.post_to(old, endpoint) for old, endpoint in message.olds.items()}
            divider = self._divider(() if self._shares else message.moves, message.everything)
            self._incoming = StateReceiver(message.version, divider, posts, self._store, self._clock)
        self._say(RangesHeld(self._incarnation, message.version))

    def hand_over(self, message: HandOverRanges, inbox: deque[Entry]) -> None:
        """From now on rows of these ranges are carried; what waits in the inbox is divided first."""
        if self._outgoing is not None and self._outgoing.version >= message.version:
            return
        self._pace.begin(self._clock())
        posts = {new: self._acks.post_to(new, endpoint) for new, endpoint in message.news.items()}
        late = [s for s in message.senders if self._barriers.get(s, 0) < message.version]
        divider = self._divider(message.moves, message.everything)
        names = None if self._shares else self._names_of(message, divider.moved)  # type: ignore[arg-type]
        copies = bool(self._broadcast.gives)
        self._outgoing = StateSender(
            message.version, divider, posts, late, self._store, self._clock, self._fence, copies, names
        )
        self._undivided.extendleft(reversed(inbox))
        self._released += len(inbox)
        self.away += sum([len(entry.batch.keys) for entry in inbox])
        inbox.clear()

    def replace_new_owner(self, message: HandOverTo) -> None:
        """A new owner died; this is its successor."""
        if self._outgoing is not None and self._outgoing.version == message.version:
            post = self._acks.post_to(message.new, message.express)
            self._outgoing.replace(message.dead, message.new, post)

    def lose_old_owner(self, message: LostOldOwner) -> None:
        """An old owner died."""
        if self._incoming is not None and self._incoming.version == message.version:
            self._incoming.lost(message.old)

    def cancel(self, message: Cancel) -> None:
        """The change was dropped before any sender was told of its table: nothing was held."""
        if self._incoming is not None and self._incoming.version == message.version:
            self._incoming = None
        if self._broadcast.gives == message.version:
            self._broadcast.gives = 0

    # what comes on the channels ------------------------------------------------------------------------

    def barrier(self, sender: int, version: int) -> None:
        """A sender sends by this version from now on."""
        self._barriers[sender] = max(version, self._barriers.get(sender, 0))
        if self._outgoing is not None and version >= self._outgoing.version:
            # Its rows before the barrier may still stand undivided: `advance` sees to those before it sends ROWS.
            self._outgoing.barrier(sender)

    def ended(self, sender: int) -> None:
        """A sender has sent END: no more rows of its own come."""
        self.barrier(sender, EVERY_VERSION)

    def gone(self, sender: int) -> None:
        """A sender is dead or has left: no HandOverRanges names it any more."""
        self._barriers.pop(sender, None)
        if self._outgoing is not None:
            self._outgoing.barrier(sender)

    def read(self, frame: Frame) -> None:
        """A frame of a change, from another owner. Raises FrameError."""
        other, body = frame.channel, frame.body
        if type(body) is not tuple or not body or type(body[0]) is not int:
            raise FrameError("a frame of a change starts with its version")
        version = body[0]
        outgoing, incoming = self._outgoing, self._incoming
        if frame.kind in (FETCH, GOT):
            if len(body) != 2:
                raise FrameError("FETCH and GOT have two fields")
            if outgoing is not None and outgoing.version == version:
                if frame.kind == FETCH:
                    outgoing.fetch(other, body[1])
                else:
                    outgoing.got(other, body[1])
            return
        number = _number_of(frame.kind, body)
        if incoming is None or incoming.version != version:
            done, posts = self._done
            if version == done and other in posts:  # it has not heard that this has come
                posts[other].put(GOT, (version, number))
        elif frame.kind == ROWS:
            if len(body) > 2 and body[2] is not None and incoming.lacks_rows(other):
                self._store.install_ring_state(body[2])
            if len(body) == 4 and self._broadcast.takes:
                if type(body[3]) is not bytes:
                    raise FrameError("broadcast state is packed")
                self._store.install_broadcast(body[3])
                self._broadcast.takes = False
            incoming.rows(other, [(sent, batch_of(raw), bool(taken)) for sent, raw, taken in body[1]])
        else:
            self._fence(version, number, other)
            if frame.kind == STATE:
                incoming.state(other, number, body[2])
            else:
                incoming.end_after(other, number, body[2])

    def offer(self, entry: Entry, inbox: deque[Entry], sender: int = 0) -> None:
        """A batch that was read: into the inbox, or to where the change has it."""
        if self._broadcast.waits(entry, self._barriers.get(sender, 0)):
            self.away += len(entry.batch.keys)
            self._broadcast.aside.append(entry)
        elif self._undivided or (self._outgoing is not None and not self._outgoing.aligned):
            self.away += len(entry.batch.keys)
            self._undivided.append(entry)  # behind those that are not divided yet: order
        elif self._incoming is not None and entry.batch.input in self._inputs:
            self.away += len(entry.batch.keys)
            rest = self._incoming.offer(entry)
            if rest is not None:
                self._put(rest, inbox)
        else:
            inbox.append(entry)

    def _put(self, entry: Entry, inbox: deque[Entry]) -> None:
        self.away -= len(entry.batch.keys)
        inbox.insert(self._broadcast.place(entry, inbox), entry)

    # the loop --------------------------------------------------------------------------------------

    def advance(self, inbox: deque[Entry]) -> bool:
        """A slice of the change's work; True while there is more to do at once."""
        now = self._clock()
        saved = now - LONGEST_TURN / BULK_SHARE if self._cut_short else now
        self._state_at, self._bulk_at = max(self._state_at, saved), max(self._bulk_at, saved)
        until = now + max(TURN, (now - self._state_at) * BULK_SHARE)
        more = self._divide(inbox, until)
        outgoing, incoming = self._outgoing, self._incoming
        self._put_off = bool(inbox) and now < self._state_at
        if outgoing is not None and not more and not self._put_off:
            bulk = now >= self._bulk_at
            more = self._cut_short = outgoing.advance(until - now, bulk, self._broadcast.settled(inbox))
            if outgoing.aligned:
                self._broadcast.gives = 0  # the copy went
            spent = self._clock() - now
            share = BULK_SHARE if inbox or self._undivided else IDLE_SHARE
            self._bulk_at += spent / share
            self._state_at = min(self._state_at, now) + spent / BULK_SHARE
            self._pace.look(bool(inbox))
            if outgoing.done:
                self._outgoing = None
                self._handed_over = RangesHandedOver(
                    self._incarnation, outgoing.version, outgoing.news, outgoing.moved_keys, outgoing.moved_bytes
                )
                self._rests_until = now if self._names is None else self._pace.rests_until(now)
        if self._handed_over is not None and now >= self._rests_until:
            self._say(self._handed_over)
            self._handed_over = None
        if incoming is not None:
            incoming.ask(now)
            if incoming.released and not self._undivided:  # among those may be earlier rows of the same keys
                for entry in incoming.released:
                    self._put(entry, inbox)
                incoming.released.clear()
            more = incoming.forget(until) or more
            if incoming.done:
                self._incoming, self._done = None, (incoming.version, incoming.posts)
                self._broadcast.takes = False  # who would have given it is dead
                held = incoming.longest_hold
                self._say(
                    StateInstalled(self._incarnation, incoming.version, incoming.moved_keys, incoming.moved_bytes, held)
                )
        for entry in self._broadcast.released():
            self._put(entry, inbox)
        if self._acks and now >= self._acks_at:
            self._acks_at = now + ACK_EVERY
            self._acks.send()
        return more

    def _divide(self, inbox: deque[Entry], until: float) -> bool:
        """Divide what was read, in order; True while some is left."""
        while self._undivided:
            for _ in range(min(SLICE, len(self._undivided))):
                entry: Entry | None = self._undivided.popleft()
                assert entry is not None
                released = self._released > 0
                self._released -= released
                if entry.batch.input in self._inputs:
                    if self._outgoing is not None and not self._outgoing.aligned:
                        entry = self._outgoing.divide(entry)
                    # To hold a row once more would put it behind later ones of its key.
                    if entry is not None and self._incoming is not None and not released:
                        entry = self._incoming.offer(entry)
                if entry is not None:
                    self._put(entry, inbox)
            if self._clock() >= until:
                break
        return bool(self._undivided)


def _number_of(kind: int, body: tuple[Any, ...]) -> int:
    """Return by which number ROWS, STATE or STATE_END is confirmed. Raises FrameError for one that is none."""
    if kind == ROWS:
        if len(body) not in (2, 3, 4) or type(body[1]) is not tuple:
            raise FrameError("ROWS has a version and entries")
        return 0
    if kind == STATE:
        if len(body) != 3 or type(body[1]) is not int or type(body[2]) is not tuple:
            raise FrameError("STATE has a version, a number and items")
        return body[1]
    if len(body) != 3 or type(body[1]) is not int or type(body[2]) is not int:
        raise FrameError("STATE_END has a version, a number and how many portions there are")
    return body[1] + 1
