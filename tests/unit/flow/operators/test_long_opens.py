"""Who opens something long for each key is told so, once."""

from __future__ import annotations

import pytest

from esault.flow.operators.long_opens import LONG_OPENS, MANY_OPENS, LongOpens


class Logger:
    def __init__(self):
        self.said = []

    def warning(self, text):
        self.said.append(text)


class Model:
    pass


@pytest.mark.parametrize(
    ("calls", "seconds", "said_at"),
    [(MANY_OPENS + 3, LONG_OPENS, MANY_OPENS), (20, LONG_OPENS / 10, 10), (MANY_OPENS - 1, 9 * LONG_OPENS, None)],
)
def test_it_is_said_once_when_there_were_many_and_they_took_long(calls, seconds, said_at):
    opens, logger = LongOpens(), Logger()
    at = []
    for call in range(1, calls + 1):
        opens.took("count", seconds + 1e-9, Model, logger)
        at += [call] * (len(logger.said) - len(at))
    assert at == ([] if said_at is None else [said_at])
    if said_at:
        assert logger.said[0].startswith(
            f"unit 'count': Model.open has taken {said_at * seconds:.1f} s for {said_at} objects"
        )
