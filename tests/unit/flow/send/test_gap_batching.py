"""Vector 6.6 of the paper's specification."""

import pytest

from esault.flow.send.gap_batching import GapBatching


def test_tuples_at_the_papers_times_go_in_the_papers_blocks():
    batching, sent = GapBatching(0.002), []
    for at in (0.0, 0.0005, 0.001, 0.003, 0.010):
        sent += batching.add(at, at)
    sent += batching.due(0.1)
    assert [(pytest.approx(at), block) for at, block in sent] == [
        (0.0, [0.0]),
        (0.0025, [0.0005, 0.001]),
        (0.005, [0.003]),
        (0.010, [0.010]),
    ]
