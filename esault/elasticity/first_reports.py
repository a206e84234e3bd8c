"""The reports of the first moments of a run: what each unit did in a tenth of a second, before the first window of policies is over."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from operator import itemgetter

from esault.elasticity.view import UnitWindow
from esault.messages.probe import Usage
from esault.messages.status import Status, SubUnitCounts
from esault.value_class import value_class

__all__ = ["LENGTH", "FirstReports", "FirstWindow"]

#: seconds that are looked at, by two reports or more of each sub-unit behind its first one
LENGTH = 0.1

_Report = tuple[float, SubUnitCounts, Usage | None, int | None]


@value_class(frozen=True)
class FirstWindow:
    """One unit in a tenth of a second or a little more."""

    window: UnitWindow
    #: processors that its sub-units used or waited for, all together; None: not known
    needs: float | None
    #: tuples that waited at the report, at the start and at the end and between them, at which the fewest did
    least_waiting: float


class FirstReports:
    """Keeps what sub-units have reported."""

    def __init__(self) -> None:
        self._reports: dict[int, list[_Report]] = {}

    def add(self, status: Status) -> None:
        """Add a report."""
        self._reports.setdefault(status.incarnation, []).append((status.now, status.rows, status.usage, status.lag))

    def window(self, sub_units: Iterable[int], spout: bool) -> FirstWindow | None:
        """Return the newest window of a unit; None where one of its sub-units has not reported for long enough."""
        pairs = [self._newest(each) for each in sub_units]
        found = [each for each in pairs if each is not None]
        return _joined(found, spout) if found and len(found) == len(pairs) else None

    def _newest(self, sub_unit: int) -> list[_Report] | None:
        """Return the reports from `LENGTH` before the last one on; None: there are not enough."""
        reports = self._reports.get(sub_unit, [])
        if len(reports) < 3:
            return None
        # The first one may have come while nothing flowed yet.
        begun = bisect_left(reports, reports[-1][0] - LENGTH + 1e-3, key=itemgetter(0)) - 1
        return reports[begun:] if begun >= 0 else None


def _joined(spans: list[list[_Report]], spout: bool) -> FirstWindow:
    arrivals = processed = emitted = dropped = busy = held = before = after = least = needs = 0.0
    lags: list[tuple[int, int]] = []
    for span in spans:
        (began, old, used, lag_before), (ended, new, uses, lag) = span[0], span[-1]
        # As if all had reported over the same time.
        share = LENGTH / (ended - began)
        emitted += share * (new.tuples_out - old.tuples_out)
        processed += share * (new.tuples_in - old.tuples_in)
        arrivals += share * (new.arrivals - old.arrivals)
        dropped += share * (new.dropped - old.dropped)
        busy += share * (new.busy_seconds - old.busy_seconds)
        held += (new.backpressured - old.backpressured) / (ended - began)
        before, after = before + old.backlog, after + new.backlog
        least += min(rows.backlog for _, rows, _, _ in span)
        if lag is not None and lag_before is not None:
            lags.append((lag_before, lag))
        if used is None or uses is None:
            needs = float("nan")
        else:
            needs += (uses.cpu - used.cpu + (uses.cpu_wait or 0.0) - (used.cpu_wait or 0.0)) / (ended - began)
    known = len(lags) == len(spans)
    end = min(span[-1][0] for span in spans)
    window = UnitWindow(
        end - LENGTH,
        end,
        arrivals=emitted if spout else arrivals,
        processed=emitted if spout else processed,
        emitted=emitted,
        dropped=dropped,
        busy=busy,
        waiting_before=before,
        waiting=after,
        width=len(spans),
        lag_before=float(sum(a for a, _ in lags)) if known else None,
        lag=float(sum(b for _, b in lags)) if known else None,
        backpressured=min(1.0, held / len(spans)),
    )
    return FirstWindow(window, None if needs != needs else needs, least)
