"""Trades of an exchange by a WebSocket, and candles of them by another: open, high, low, close and volume of each minute.

Shows `WebSocketSource` and `WebSocketSink`. Out comes, to all who connect to ws://localhost:8091, the candle of each product when its
minute is over, and first the last ones again. Trades that are made while it is not connected are missing: a WebSocket knows no position.

    esault run topologies/connectors/web_socket_trades.py --checkpoint 1
    python -m websockets ws://localhost:8091                              # in another terminal; pip install websockets

The default is the feed of Coinbase. Another one of the same form: `--set url=ws://localhost:8000/feed`, which is sent
`{"type": "subscribe", ...}` and sends messages such as

    {"type": "match", "product_id": "BTC-USD", "time": "2026-02-03T09:00:00.500000Z", "price": "64000.5", "size": "0.25"}
"""

from datetime import datetime

from esault import Bolt, Topology
from esault.sinks import WebSocketSink
from esault.sources import WebSocketSource
from esault.windows import TumblingWindow

__all__ = ["topology"]

TRADES = "wss://ws-feed.exchange.coinbase.com"
PRODUCTS = ("BTC-USD", "ETH-USD")


class Candle(Bolt):
    """One product in one minute."""

    def __init__(self):
        self.prices, self.volume = [], 0.0

    def process(self, key, trade):
        self.prices.append((trade["at"], trade["price"]))
        self.volume += trade["size"]

    def finish(self):
        in_order = [price for _, price in sorted(self.prices, key=lambda each: each[0])]
        candle = {"open": in_order[0], "high": max(in_order), "low": min(in_order), "close": in_order[-1]}
        self.emit(self.key, {"from": self.window.start, **candle, "volume": self.volume})


def trade(message):
    """Its numbers; times are seconds since the epoch."""
    at = datetime.fromisoformat(message["time"].replace("Z", "+00:00")).timestamp()
    product, price, size = message["product_id"], float(message["price"]), float(message["size"])
    return {"product": product, "at": at, "price": price, "size": size}


def topology(url: str = TRADES, port: int = 8091, name: str = "web_socket_trades") -> Topology:
    """Return it; it has no end."""
    t = Topology(name)
    wanted = {"type": "subscribe", "product_ids": list(PRODUCTS), "channels": ["matches"]}
    messages = t.spout("messages", WebSocketSource(url, send=[wanted]))
    trades = messages.filter(lambda message: message.get("type") == "match").map(trade)
    timed = trades.timed(lambda trade: trade["at"], lateness=2).key_by(lambda trade: trade["product"])
    timed.window("candle", Candle, TumblingWindow(60)).sink("candles", WebSocketSink(port, start="earliest"))
    return t
