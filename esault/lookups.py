"""Tables on servers for `stream.enrich(name, table, of=...)`, with a cache in each process.

PostgresLookup(dsn, table, key=...)  rows of a table or a query (needs esault[postgres])
RedisLookup("customer:{}", url)      hashes or strings by their keys (needs esault[redis])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from esault.late_names import late_names

if TYPE_CHECKING:
    from esault.connectors.postgres.lookup import PostgresLookup
    from esault.connectors.redis.lookup import RedisLookup

__all__ = ["PostgresLookup", "RedisLookup"]

#: where those are that are loaded when they are asked for
_ELSEWHERE = {
    "PostgresLookup": "esault.connectors.postgres.lookup",
    "RedisLookup": "esault.connectors.redis.lookup",
}

__getattr__, __dir__ = late_names(globals(), _ELSEWHERE)
