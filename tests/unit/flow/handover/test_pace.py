"""The rest behind a subscale: as long as it took, unless tuples wait."""

from __future__ import annotations

import pytest

from esault.flow.handover.pace import LONGEST, Pace


@pytest.mark.parametrize(
    ("looks", "rests"),
    [
        ([], True),
        ([False], True),
        ([True], False),
        ([True, True, True, False], True),
        ([True, True, True, True, False], False),
    ],
)
def test_an_old_owner_rests_as_long_as_the_subscale_took_if_it_keeps_up(looks, rests):
    pace = Pace()
    pace.look(True)  # of the one before
    pace.begin(10.0)
    lasts = 0.0625
    for waits in looks:
        pace.look(waits)
    assert pace.rests_until(10.0 + lasts) == 10.0 + lasts * (2 if rests else 1)
    assert pace.rests_until(12.0) == 12.0 + LONGEST * rests
