"""A stream of a real Redis is looked at while nothing runs."""

from __future__ import annotations

import uuid

from watched_input import check_watched_input


def test_an_entry_is_seen_behind_those_that_were_read_and_is_still_there_for_the_run(server, tmp_path):
    stream = f"r-{uuid.uuid4().hex[:10]}"
    add = lambda: server.client.xadd(stream, {"n": 1})
    add(), add()
    check_watched_input(tmp_path, f"RedisSource({stream!r}, {server.url!r})", 2, add)
