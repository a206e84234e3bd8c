"""Count the words of text files, live.

Shows the smallest whole topology: a spout that reads lines, a stateless bolt that any sub-unit can run, and a keyed
bolt with one object per word, whose state moves when the unit grows or shrinks. Out comes the table `out/word_count`
with a row, (word, total), for each word: an upsert table, which keeps the newest row of each key.

    esault run word_count.py --set path='texts/*.txt'
    esault analyze word_count.py
"""

from esault import Bolt, Topology, by_key, run, shuffle
from esault.sinks import SparkTable
from esault.sources import TextFiles


class Split(Bolt):
    def process(self, key, value):
        for word in value.lower().split():
            self.emit(word, 1)


class Count(Bolt):
    """One object per word. Its attributes are that word's state, and move with it."""

    def __init__(self):
        self.total = 0

    def process(self, key, value):
        self.total += value
        self.emit(key, self.total)


def topology(path: str = "*.txt", out: str = "out/word_count") -> Topology:
    t = Topology("word-count")
    lines = t.spout("lines", TextFiles(path))  # key: file, value: line
    words = lines.bolt("split", Split, grouping=shuffle())
    counts = words.bolt("count", Count, grouping=by_key(), max_parallelism=8)
    table = SparkTable(out, columns={"word": str, "total": int}, mode="replace", primary_key="word")
    counts.sink("table", table)
    return t


def reports(tables):
    words = tables["table"].select("word", "total")
    return {"top words": words.orderBy("total", ascending=False).limit(20)}


if __name__ == "__main__":
    print(run(topology, params={"path": "texts/*.txt"}))
