"""UUIDs, Paths, big ints, Fractions, frozensets, bytearrays, complex numbers and ranges in one state, and the same list twice in it."""

import hashlib
import random
from fractions import Fraction
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from uuid import UUID

from esault import Bolt, Topology, by_key
from esault.sinks import JsonLines
from esault.sources import Items, Paced


def files(size):
    rng = random.Random(32)
    return [
        (UUID(int=rng.randrange(15)).hex, (Path(f"/data/{rng.randrange(9)}.bin"), rng.randbytes(2)))
        for _ in range(size)
    ]


class Vault(Bolt):
    def __init__(self):
        self.id = None
        self.bytes = bytearray()
        self.product = 1
        self.share = Fraction(1, 2)
        self.paths = frozenset()
        self.turn = 1 + 0j
        self.range = range(0)
        self.all = []
        self.view = {"same": self.all, "again": (self.all, [self.all])}
        self.box = SimpleNamespace(root=PurePosixPath("/"), none=None)

    def process(self, key, value):
        path, data = value
        self.id = self.id or UUID(key)
        self.bytes += data
        self.product *= 3 + data[0]
        self.share = (self.share + Fraction(data[1], 7)) / 2 % 5
        self.share = self.share.limit_denominator(10**6)
        self.paths |= {path}
        self.turn *= 1j
        self.range = range(0, len(self.bytes), 2)
        self.view["same"].append(path.name)
        assert self.view["again"][1][0] is self.all is self.view["again"][0]
        self.box.root = self.box.root.joinpath(path.stem) if len(self.all) % 3 else PurePosixPath("/")
        sha = hashlib.sha256(str(self.product).encode()).hexdigest()[:8]
        self.emit(
            key,
            (
                self.id,
                sha,
                self.share,
                sorted(self.paths),
                int(self.turn.real),
                len(self.range),
                self.all[-1:],
                self.box.root,
            ),
        )


def texts(value):
    """JSON has no Fractions."""
    return (*value[:2], str(value[2]), *value[3:])


def topology(size: int = 2000, rate: float = 1000.0, out: str = "out") -> Topology:
    t = Topology("inventory")
    vaults = t.spout("files", Paced(Items(files(size)), rate)).bolt("vault", Vault, by_key())
    vaults.map(texts).sink("vaults", JsonLines(f"{out}/vaults.jsonl"))
    return t


def expected(size):
    seen, rows = {}, []
    for key, (path, data) in files(size):
        mine = seen.setdefault(key, [])
        mine.append((path, data))
        product, share, root = 1, Fraction(1, 2), PurePosixPath("/")
        for i, (p, d) in enumerate(mine):
            product *= 3 + d[0]
            share = ((share + Fraction(d[1], 7)) / 2 % 5).limit_denominator(10**6)
            root = root / p.stem if (i + 1) % 3 else PurePosixPath("/")
        sha = hashlib.sha256(str(product).encode()).hexdigest()[:8]
        turn = (1, 0, -1, 0)[len(mine) % 4]
        paths = sorted({p for p, _ in mine})
        rows.append((key, (UUID(key), sha, str(share), paths, turn, len(mine), [path.name], root)))
    return {"vaults": rows}
