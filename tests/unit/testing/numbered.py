"""A source of splits that tests share: each split is a row of numbers; splits may appear while it is read."""

from __future__ import annotations

from esault import EndOfStream, SplitReader, SplitSource


class Numbers(SplitReader):
    """The numbers from `at` on, a few at a time; `rows` is asked for each read, since a split may grow."""

    def __init__(self, source, name, at):
        self.source, self.name, self.at = source, name, at
        source.shelf.opened(self.source.context.sub_unit, name)

    def read(self, limit):
        self.source.shelf.reads(self.source.context.sub_unit, self.name)
        left = self.source.shelf.sizes[self.name] - self.at
        if left <= 0 and self.source.discovery_interval is None:
            raise EndOfStream
        rows = [(self.name, self.at + i) for i in range(min(limit, left, 5))]
        self.at += len(rows)
        return rows

    def position(self):
        return self.at

    def commit(self, position):
        self.source.shelf.committed[self.name] = max(position, self.source.shelf.committed.get(self.name, 0))

    def lag(self):
        return self.source.shelf.sizes[self.name] - self.at

    def close(self):
        self.source.shelf.closed(self.source.context.sub_unit, self.name)


class Shelf:
    """The splits as they stand outside, and who reads each."""

    def __init__(self, sizes):
        self.sizes = dict(sizes)
        self.committed = {}
        #: split -> the sub-unit that has it open
        self.readers = {}
        self.alive = lambda sub_unit: True
        self.listings = []

    def __deepcopy__(self, memo):
        return self  # what is outside is one for all

    def opened(self, sub_unit, name):
        before = self.readers.get(name)
        assert before is None or before == sub_unit or not self.alive(before), (
            f"{name} is read by {before} and {sub_unit}"
        )
        self.readers[name] = sub_unit

    def reads(self, sub_unit, name):
        assert self.readers[name] == sub_unit, f"{sub_unit} reads {name}, which {self.readers[name]} has"

    def closed(self, sub_unit, name):
        if self.readers.get(name) == sub_unit:
            self.readers[name] = None


class Numbered(SplitSource):
    """Reads the splits of a shelf."""

    def __init__(self, shelf, every=None, at_once=None, latest=False):
        self.shelf, self.latest = shelf, latest
        self.discovery_interval = every
        self.splits_at_once = at_once

    def splits(self):
        self.shelf.listings.append(self.context.sub_unit)
        return list(self.shelf.sizes)

    def open_split(self, id, position):
        begin = self.shelf.sizes[id] if self.latest else 0
        return Numbers(self, id, begin if position is None else position)

    def open_added_split(self, id):
        return Numbers(self, id, 0)
