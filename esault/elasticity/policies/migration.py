"""The policy `migration`: sub-units whose latency keeps growing go where no resource is fuller.

Nothing is scaled. Rodrigo Duarte Sousa, *Escalonamento Adaptativo para Sistemas de Processamento Contínuo de
Eventos*, master's dissertation, Universidade Federal de Campina Grande, 2014, chapter 3. Which use of which resource
is too high differs by operator, and a busy but steady host needs no action: so trouble is told by its effect. Every
`period` each sub-unit reports its mean latency; every `round` the sum of all increases of more than the share `d`,
over the first report, says who got worse, and the worst are candidates first (degradation.py). A candidate goes to a
host on which no resource would end up higher, and one lower, than on its present host (destination.py). Active replicas
of the same ranges never share a host. At most `limit` are moved in a round, and rounds wait until all moves have
ended. Chosen here, where the text says nothing: of several hosts the least loaded, the mean use in the window,
planned moves count as done, a candidate without a host is skipped, and a move begins all windows anew.

What an operator should know:
- It needs several hosts with room on some of them; on one host it says so and does nothing. It adds no capacity:
  where all hosts are full use a policy that scales units as well.
- It sees growth alone. A sub-unit that is overloaded but steady, or gets slower in steps below `d`, is never moved;
  nor is one that jumps between the last report of a round and the first of the next. So it helps when load shifts,
  not later.
- Growth is relative, without a floor: from 2 to 4 ms counts as from 2 to 4 s. At low load and small `d` noise moves
  sub-units for nothing, and one noisy pair of reports is enough. In the dissertation's model
  (bench/policies/migration/model.py) `d` of 0.25, 0.5 and 0.75 moved 31, 10 and 4 sub-units in ten minutes, and p99
  of the faster replicas fell from 5.2 s to 25, 185, 166 ms.
- The destination rule is conservative: a slightly fuller memory forbids to relieve a full processor. Where sub-units
  take about the same memory they only go to hosts with fewer of them; `memory=false` lifts that, and moved 1.6 to 1.8
  times as many. This rule does most of the work: with it `random` did as well or better in the model, without it far
  worse.
- What a sub-unit takes is measured where it starves, so it may take more where it goes.
- Each replica is judged alone: both of one range may be moved in a round with `limit` above 1, and the faster one may be
  the one.
- State goes along; its size, and so the length of the move, is no part of the choice. No swaps, no forecast.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from esault.elasticity.estimators.degradation import degradation, ranked
from esault.elasticity.policies.migration_rounds import MigrationRounds, Replica, Reports
from esault.elasticity.view import RunView
from esault.errors import UsageError

__all__ = ["Migration"]


@dataclass
class Migration(MigrationRounds):
    """Times in seconds. The dissertation tried `d` of 0.25, 0.5, 0.75 and `limit` of 1 and none; it recommends nothing."""

    #: an increase of latency from one report to the next counts when it is by more than this share of it
    d: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.round < 2 * self.period:
            raise UsageError(
                f"round={self.round:g} must be twice period={self.period:g} at least: growth takes two reports"
            )

    def candidates(
        self, view: RunView, reports: Mapping[Replica, Reports], moved_at: Mapping[Replica, float]
    ) -> list[Replica]:
        """Those that got worse, worst first."""
        return ranked({replica: each.latencies for replica, each in reports.items()}, moved_at, self.d)

    def because(self, reports: Reports) -> str:
        """By how much it got worse."""
        first, grown = reports.latencies[0], degradation(reports.latencies, self.d)
        return (
            f"its latency grew by {grown:,.0%} of {1000 * first:,.3g} ms within {len(reports.latencies)} reports, "
            f"in steps of more than {self.d:.0%}"
        )
