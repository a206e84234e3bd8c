"""A cache written by hand: nodes that know each other, found both by a dict and along the chain. Each node is one object."""

import random

from esault import Bolt, Topology, by_key
from esault.sinks import JsonLines
from esault.sources import Items, Paced


class Node:
    def __init__(self, name):
        self.name = name
        self.hits = 0
        self.before = self.after = self


class Chain:
    """A ring of nodes, the least recently used behind the head."""

    def __init__(self, most):
        self.most = most
        self.head = Node(None)
        self.nodes = {}

    def touch(self, name):
        """The node of that name, now the newest; and the name that fell out for it."""
        node, gone = self.nodes.get(name), None
        if node is None:
            if len(self.nodes) == self.most:
                oldest = self.head.after
                self._out(oldest)
                gone = oldest.name
                del self.nodes[gone]
            node = self.nodes[name] = Node(name)
        else:
            self._out(node)
        node.before, node.after = self.head.before, self.head
        node.before.after = self.head.before = node
        node.hits += 1
        return node, gone

    def _out(self, node):
        node.before.after, node.after.before = node.after, node.before


class Cache(Bolt):
    def __init__(self):
        self.chain = Chain(3)
        self.favourite = None  # a node, which is in the chain too

    def process(self, key, value):
        node, gone = self.chain.touch(value)
        if self.favourite is None or node.hits > self.favourite.hits:
            self.favourite = node
        self.emit(key, (value, node.hits, gone, self.favourite.name, self.favourite.hits))


def reads(size):
    rng = random.Random(8)
    return [(f"k{rng.randrange(20)}", rng.choice("abcde")) for _ in range(size)]


def topology(size: int = 2000, rate: float = 1000.0, out: str = "out") -> Topology:
    t = Topology("recently-used")
    t.spout("reads", Paced(Items(reads(size)), rate)).bolt("cache", Cache, by_key()).sink(
        "cache-out", JsonLines(f"{out}/cache-out.jsonl")
    )
    return t


def expected(size):
    caches, best, rows = {}, {}, []
    for key, name in reads(size):
        cache = caches.setdefault(key, [])  # [name, hits] pairs, the oldest first
        entry = next((e for e in cache if e[0] == name), None)
        gone = None
        if entry is None:
            entry = [name, 0]
            if len(cache) == 3:
                gone = cache.pop(0)[0]
        else:
            cache.remove(entry)
        cache.append(entry)
        entry[1] += 1
        if key not in best or entry[1] > best[key][1]:
            best[key] = entry
        rows.append((key, (name, entry[1], gone, *best[key])))
    return {"cache-out": rows}
