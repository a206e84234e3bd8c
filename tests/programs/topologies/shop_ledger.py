"""Sales of each shop in a dict of dicts, as people write before they know of dataclasses; each total is shown as it grows."""

import copy
import random

from esault import Bolt, Topology, by_key
from esault.sinks import JsonLines
from esault.sources import Items, Paced


def sales(size):
    rng = random.Random(1)
    for i in range(size):
        yield (
            f"shop-{rng.randrange(12)}",
            {"what": rng.choice(["tea", "cup", "pot"]), "cents": rng.randrange(900), "no": i},
        )


class Ledger(Bolt):
    def __init__(self):
        self.goods = {}
        self.days = {"first": None, "numbers": []}

    def process(self, key, value):
        entry = self.goods.setdefault(value["what"], {"sold": 0, "paid": {"cents": 0, "list": []}})
        entry["sold"] += 1
        entry["paid"]["cents"] += value["cents"]
        entry["paid"]["list"] = (entry["paid"]["list"] + [value["cents"]])[-3:]
        if self.days["first"] is None:
            self.days["first"] = value["no"]
        self.days["numbers"].append(value["no"])
        if len(self.days["numbers"]) > 4:
            del self.days["numbers"][0]
        self.emit(key, {"goods": copy.deepcopy(self.goods), "days": copy.deepcopy(self.days)})


def topology(size: int = 2000, rate: float = 1000.0, out: str = "out") -> Topology:
    t = Topology("shop-ledger")
    rows = t.spout("sales", Paced(Items(lambda: sales(size)), rate))
    rows.bolt("ledger", Ledger, by_key()).sink("ledger", JsonLines(f"{out}/ledger.jsonl"))
    return t


def expected(size):
    books, rows = {}, []
    for shop, sale in sales(size):
        book = books.setdefault(shop, {"goods": {}, "days": {"first": sale["no"], "numbers": []}})
        old = book["goods"].get(sale["what"], {"sold": 0, "paid": {"cents": 0, "list": []}})
        paid = {"cents": old["paid"]["cents"] + sale["cents"], "list": [*old["paid"]["list"], sale["cents"]][-3:]}
        book["goods"][sale["what"]] = {"sold": old["sold"] + 1, "paid": paid}
        book["days"]["numbers"] = [*book["days"]["numbers"], sale["no"]][-4:]
        rows.append((shop, {"goods": dict(book["goods"]), "days": dict(book["days"])}))
    return {"ledger": rows}
