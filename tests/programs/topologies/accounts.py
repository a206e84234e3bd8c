"""Money in Decimals, days where the customer lives by zoneinfo, and a limit per local day."""

import random
from datetime import date, datetime, timedelta, timezone
from decimal import ROUND_HALF_EVEN, Decimal
from zoneinfo import ZoneInfo

from esault import Bolt, Topology, by_key
from esault.sinks import JsonLines
from esault.sources import Items, Paced

CENT = Decimal("0.01")
LIMIT = Decimal("250.00")
ZONES = ["Europe/Rome", "America/New_York", "Asia/Kolkata"]
START = datetime(2026, 3, 28, 20, tzinfo=timezone.utc)


def payments(size):
    rng = random.Random(9)
    for i in range(size):
        customer = rng.randrange(18)
        at = START + timedelta(minutes=7 * i, seconds=rng.randrange(60))
        yield customer, {"zone": ZONES[customer % 3], "at": at, "amount": Decimal(rng.randrange(1, 9000)) / 100}


class Account(Bolt):
    def __init__(self):
        self.zone: ZoneInfo | None = None
        self.day: date | None = None
        self.spent = Decimal(0)
        self.fees = Decimal("0.000")
        self.newest = datetime.min.replace(tzinfo=timezone.utc)
        self.longest = timedelta(0)

    def process(self, key, value):
        if self.zone is None:
            self.zone = ZoneInfo(value["zone"])
        local = value["at"].astimezone(self.zone)
        if self.newest.year > 1:
            self.longest = max(self.longest, local - self.newest)
        self.newest = local
        if local.date() != self.day:
            self.day, self.spent = local.date(), Decimal(0)
        if self.spent + value["amount"] > LIMIT:
            self.emit(key, {"refused": value["amount"], "at": local, "day": self.day})
            return
        self.spent += value["amount"]
        self.fees += (value["amount"] * Decimal("0.015")).quantize(CENT, ROUND_HALF_EVEN)
        self.emit(key, {"spent": self.spent, "fees": self.fees, "at": local, "gap": self.longest.total_seconds()})


def topology(size: int = 2000, rate: float = 1000.0, out: str = "out") -> Topology:
    t = Topology("accounts")
    paid = t.spout("payments", Paced(Items(lambda: payments(size)), rate))
    paid.bolt("account", Account, by_key()).sink("accounts", JsonLines(f"{out}/accounts.jsonl"))
    return t


def expected(size):
    rows, spent, fees, gaps, last = [], {}, {}, {}, {}
    for customer, payment in payments(size):
        at = payment["at"].astimezone(ZoneInfo(payment["zone"]))
        today = (customer, at.date())
        if customer in last:
            gaps[customer] = max(gaps.get(customer, timedelta(0)), at - last[customer])
        last[customer] = at
        if spent.get(today, 0) + payment["amount"] > LIMIT:
            rows.append((customer, {"refused": payment["amount"], "at": at, "day": at.date()}))
            continue
        spent[today] = spent.get(today, Decimal(0)) + payment["amount"]
        fee = (payment["amount"] * Decimal("0.015")).quantize(CENT, ROUND_HALF_EVEN)
        fees[customer] = fees.get(customer, Decimal("0.000")) + fee
        gap = gaps.get(customer, timedelta(0)).total_seconds()
        rows.append((customer, {"spent": spent[today], "fees": fees[customer], "at": at, "gap": gap}))
    return {"accounts": rows}
