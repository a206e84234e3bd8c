from __future__ import annotations

import pytest

from esault import SourceError


def of_postgres(**hooks):
    pytest.importorskip("psycopg")
    from esault.connectors.postgres.client import Client

    return Client("Lookup", SourceError, "host=127.0.0.1 port=1", 60.0, **hooks)


def of_redis(**hooks):
    pytest.importorskip("redis")
    from esault.connectors.redis.client import Client

    return Client("Lookup", SourceError, "redis://127.0.0.1:1", 60.0, **hooks)


@pytest.mark.parametrize("made", [of_postgres, of_redis])
def test_a_server_that_is_away_is_asked_after_waits_that_grow_until_patience_ends(made):
    now, waits = [0.0], []

    def sleep(seconds):
        waits.append(seconds)
        now[0] += seconds

    client = made(clock=lambda: now[0], sleep=sleep)
    with pytest.raises(SourceError, match="start the server"):
        client.run(lambda connection: connection.ping())
    assert sum(waits) == pytest.approx(60.0)
    longest = [min(5.0, 0.1 * 2**tries) for tries in range(len(waits))]
    assert all(most / 2 <= wait <= most for wait, most in zip(waits[:-1], longest))
    assert len(set(waits[6:-1])) > 1  # all as long as may be, but for chance
    assert 6 + 54 / 5 < len(waits) < 6 + 60 / 2.5 + 2
