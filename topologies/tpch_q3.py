"""TPC-H's third query, live: the ten unshipped orders worth most, while customers, orders and line items stream in.

Shows joins of streams by keyed bolts that remember what they have seen: `match` has an object for each customer, `revenue` one
for each order, and what comes too early waits in their state. Filters run in the processes that read. The three inputs may
come in any order and at any speed; once all are in, the result is that of the query over tables. Out come `out/q3/orders`, a
row for each new revenue of an order, (order, revenue, date, priority), of which an order's greatest is the one that holds, and
`out/q3/top.jsonl` with the ten best at the end. Money is counted in ten-thousandths, without rounding.

    pip install tpchgen-cli && tpchgen-cli tbl -s 0.01 --tables=customer,orders,lineitem --output-dir=tpch
    esault run topologies/tpch_q3.py --set folder=tpch
"""

from esault import Bolt, Topology, by_key, single
from esault.sinks import JsonLines, SparkTable
from esault.sources import TextFiles

__all__ = ["topology"]


def ten_thousandths(price: str, discount: str) -> int:
    """`price * (1 - discount)`, both with two digits behind the point, exactly."""
    return int(price.replace(".", "")) * (100 - int(discount.replace(".", "")))


class Match(Bolt):
    """A customer: whether it is of the segment (None: not known yet, its orders wait)."""

    def __init__(self):
        self.wanted = None
        self.waiting = {}

    def process_stream(self, stream, key, value):
        if stream == "customers":
            self.wanted = value
        else:
            order, *rest = value
            self.waiting[order] = tuple(rest)
        if self.wanted:
            for order, rest in self.waiting.items():
                self.emit(order, rest)
        if self.wanted is not None:
            self.waiting = {}


class Revenue(Bolt):
    """An order: date and priority once it has matched a customer; the revenue of its items."""

    def __init__(self):
        self.order = None
        self.total = 0

    def process_stream(self, stream, key, value):
        if stream == "match":
            self.order = value
        else:
            self.total += value
        if self.order and self.total:
            self.emit(key, (self.total, *self.order))


class Top(Bolt):
    """The orders of most revenue; equal ones by date, then by number. A revenue only grows, so that none that fell out is missed."""

    def __init__(self):
        self.best = {}

    def process(self, key, value):
        self.best[key] = value
        if len(self.best) > 10:
            del self.best[max(self.best, key=self.rank)]

    def rank(self, order):
        revenue, date, _ = self.best[order]
        return -revenue, date, order

    def finish(self):
        for place, order in enumerate(sorted(self.best, key=self.rank), 1):
            self.emit(place, (order, *self.best[order]))


def topology(
    folder: str = "tpch", out: str = "out/q3", segment: str = "BUILDING", date: str = "1995-03-15"
) -> Topology:
    """`folder` holds customer.tbl, orders.tbl and lineitem.tbl; `segment` and `date` are the query's two parameters."""
    t = Topology("tpch-q3")
    # Columns by number, as the standard lists them: a date is text that sorts as a date does.
    tables = {
        name: t.spout(name, TextFiles(f"{folder}/{file}.tbl")).map(lambda line: line.split("|"))
        for name, file in (("customers", "customer"), ("orders", "orders"), ("items", "lineitem"))
    }
    customers = tables["customers"].key_by(lambda c: int(c[0])).map(lambda c: c[6] == segment)
    orders = tables["orders"].filter(lambda o: o[4] < date).key_by(lambda o: int(o[1]))
    items = tables["items"].filter(lambda i: i[10] > date).key_by(lambda i: int(i[0]))
    match = t.bolt("match", Match, {customers: by_key(), orders.map(lambda o: (int(o[0]), o[4], int(o[7]))): by_key()})
    revenue = t.bolt("revenue", Revenue, {match: by_key(), items.map(lambda i: ten_thousandths(i[5], i[6])): by_key()})
    columns = {"order": int, "revenue": int, "date": str, "priority": int}
    revenue.sink("orders", SparkTable(f"{out}/orders", columns, mode="replace"))
    revenue.bolt("top", Top, single()).sink("top", JsonLines(f"{out}/top.jsonl", mode="replace"))
    return t
