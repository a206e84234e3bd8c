"""The containers of `collections`: the last pages in a deque, a Counter, a defaultdict of sets, an OrderedDict as a cache."""

import random
from collections import Counter, OrderedDict, defaultdict, deque

from esault import Bolt, Topology, by_key
from esault.sinks import JsonLines
from esault.sources import Items, Paced

PAGES = ["home", "cart", "help", "pay", "news", "jobs"]


def views(size):
    rng = random.Random(5)
    return [(f"user{rng.randrange(25)}", (rng.choice(PAGES), rng.randrange(100))) for _ in range(size)]


class Visitor(Bolt):
    def __init__(self):
        self.recent = deque(maxlen=4)
        self.pages = Counter()
        self.times = defaultdict(set)
        self.cache = OrderedDict()

    def process(self, key, value):
        page, time = value
        self.recent.append(page)
        self.pages[page] += 1
        self.times[page].add(time % 10)
        self.cache[page] = time
        self.cache.move_to_end(page)
        if len(self.cache) > 3:
            self.cache.popitem(last=False)
        top = min(self.pages.most_common(), key=lambda pair: (-pair[1], pair[0]))
        missing = self.pages["nowhere"] + len(self.times[page] - {0})
        self.emit(key, [list(self.recent), top, missing, list(self.cache.items())])


def topology(size: int = 2000, rate: float = 1000.0, out: str = "out") -> Topology:
    t = Topology("visitors")
    t.spout("views", Paced(Items(views(size)), rate)).bolt("visitor", Visitor, by_key(), idle_after=0.2).sink(
        "visitors", JsonLines(f"{out}/visitors.jsonl")
    )
    return t


def expected(size):
    history, rows = {}, []
    for user, view in views(size):
        seen = history.setdefault(user, [])
        seen.append(view)
        names = [page for page, _ in seen]
        top = min(((page, names.count(page)) for page in set(names)), key=lambda pair: (-pair[1], pair[0]))
        units = {time % 10 for page, time in seen if page == view[0]} - {0}
        # the cache holds the last three different pages, oldest use first
        cache = {}
        for page, time in reversed(seen):
            if page not in cache and len(cache) < 3:
                cache[page] = time
        rows.append((user, [names[-4:], top, len(units), list(reversed(cache.items()))]))
    return {"visitors": rows}
