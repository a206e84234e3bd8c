"""Orders of a stream of Redis, priced by a hash that is looked up, summed by product into another stream.

Shows `RedisSource`, `RedisLookup` and `RedisSink`. Out comes the stream `totals`: an entry with the new total each time a product is
ordered; with checkpoints each order counts once. An order of a product without a price goes no further.

    redis-server --appendonly yes --appendfsync always      # in another terminal; apt-get install redis-server
    redis-cli HSET price:tea cents 250
    redis-cli XADD orders '*' product tea pieces 2
    esault run topologies/connectors/redis_orders.py --checkpoint 1
    redis-cli XRANGE totals - +                             # meanwhile, in another terminal
"""

from esault import Topology
from esault.lookups import RedisLookup
from esault.sinks import RedisSink
from esault.sources import RedisSource

__all__ = ["topology"]


def topology(url: str = "redis://localhost:6379/0", until: str | None = None, name: str = "redis_orders") -> Topology:
    """Return it. `until="end"`: end with the entries that are there now."""
    t = Topology(name)
    orders = t.spout("orders", RedisSource("orders", url, key="product", until=until), max_parallelism=4)
    prices = RedisLookup("price:{}", url, fields="cents", expire_after_write=10)
    priced = orders.enrich("priced", prices, of=lambda order: order["product"], missing="drop")
    cents = priced.map(lambda pair: int(pair[0]["pieces"]) * int(pair[1]))
    total = cents.reduce("total", lambda total, more: total + more, initial=0)
    total.sink("totals", RedisSink("totals", url, key_field="product", value_field="cents"))
    return t
