"""A spout of the user's own whose position is a dict, and a bolt with slots whose objects say by `__reduce__` how they are made."""

import random

from esault import Bolt, EndOfStream, Spout, Topology, by_key
from esault.sinks import JsonLines
from esault.sources import Paced


class Chapters(Spout):
    """Chapter by chapter, line by line; each chapter is made anew from its number."""

    def __init__(self, chapters, lines):
        self.chapters, self.lines = chapters, lines
        self.at = {"chapter": 0, "line": 0}

    def read(self, limit):
        chapter, line = self.at["chapter"], self.at["line"]
        if chapter == self.chapters:
            raise EndOfStream
        rows = [(f"ch{chapter}", text) for text in text_of(chapter, self.lines)[line : line + limit]]
        line += len(rows)
        self.at = {"chapter": chapter + 1, "line": 0} if line == self.lines else {"chapter": chapter, "line": line}
        return rows

    def position(self):
        return dict(self.at)

    def seek(self, position):
        self.at = dict(position)


def text_of(chapter, lines):
    rng = random.Random(f"chapter {chapter}")
    return [" ".join(rng.choices(["and", "but", "the", "sea", "ship"], k=rng.randrange(1, 5))) for _ in range(lines)]


class Words:
    """Immutable: every change makes another one."""

    __slots__ = ("_counts",)

    def __init__(self, *pairs):
        object.__setattr__(self, "_counts", dict(pairs))

    def __setattr__(self, name, value):
        raise AttributeError("Words never change")

    def __reduce__(self):
        return Words, tuple(self._counts.items())

    def plus(self, word):
        return Words(*{**self._counts, word: self._counts.get(word, 0) + 1}.items())

    def most(self):
        return max(sorted(self._counts), key=self._counts.__getitem__)


class Tally(Bolt):
    __slots__ = ("longest", "words")

    def __init__(self):
        self.words = Words()
        self.longest = ""

    def __getstate__(self):
        return self.words, self.longest

    def __setstate__(self, state):
        self.words, self.longest = state

    def process(self, key, value):
        for word in value.split():
            self.words = self.words.plus(word)
            self.longest = max(self.longest, word, key=len)
        self.emit(key, (self.words.most(), self.longest))


def topology(size: int = 2000, rate: float = 1000.0, out: str = "out") -> Topology:
    t = Topology("chapters")
    t.spout("lines", Paced(Chapters(10, size // 10), rate)).bolt("tally", Tally, by_key()).sink(
        "words", JsonLines(f"{out}/words.jsonl")
    )
    return t


def expected(size):
    rows = []
    for chapter in range(10):
        seen = []
        for line in text_of(chapter, size // 10):
            seen += line.split()
            rows.append((f"ch{chapter}", (max(sorted(set(seen)), key=seen.count), max(seen, key=len))))
    return {"words": rows}
