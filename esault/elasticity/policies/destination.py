"""Destinations for a sub-unit at which no resource is worse off than where it is.

Formulas 3.5 and 3.6 of Sousa's dissertation (2014). Resources are compared one by one, never added up. The
dissertation has hosts of the same hardware; with `capacity` shares of different hosts are compared, which comes to
the same where they are alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from typing import Generic, TypeVar

from esault.value_class import value_class

__all__ = ["Move", "feasible", "planned"]

R = TypeVar("R", bound=Hashable)

#: shares that differ by less are equal: .70 + .20 is below .90 in binary
TOLERANCE = 1e-9


@value_class(frozen=True)
class Move(Generic[R]):
    """One planned migration."""

    replica: R
    source: str
    destination: str
    #: the fullest resource of the source before, and of the destination after: (name, share)
    before: tuple[str, float]
    after: tuple[str, float]


def feasible(destination: Mapping[str, float], usage: Mapping[str, float], source: Mapping[str, float]) -> bool:
    """Return whether some resource would be lower than at the source is now, and none higher. Equal ones say neither.

    Shares by resource: of the host it may go to, what it takes, of the host it is on.
    """
    differences = [destination[r] + usage[r] - source[r] for r in source]
    return any(v < -TOLERANCE for v in differences) and not any(v > TOLERANCE for v in differences)


def planned(
    candidates: Iterable[R],
    place: Mapping[R, str],
    group: Mapping[R, Hashable],
    usage: Mapping[R, Mapping[str, float]],
    hosts: Iterable[str],
    limit: int,
    capacity: Mapping[str, Mapping[str, float]] | None = None,
) -> list[Move[R]]:
    """Greedily, candidate by candidate: to the least loaded of its feasible hosts; at most `limit` moves (0: all).

    `place`: all replicas by host, also those that stay. Replicas of one `group` are replicas of each other and share no host.
    What is planned counts as done for those that follow, or all would go to the same host. `capacity`: by host and
    resource, in units of `usage` (default: 1). A candidate that is not on one of the hosts stays.
    """
    resources = list(next(iter(usage.values()), {}))
    order = sorted(hosts)
    full = {h: {r: capacity[h][r] if capacity else 1.0 for r in resources} for h in order}
    load = {h: dict.fromkeys(resources, 0.0) for h in order}
    there: dict[str, Counter[Hashable]] = {h: Counter() for h in order}
    at = dict(place)
    for replica, host in at.items():
        if host in load:
            there[host][group[replica]] += 1
            for r in resources:
                load[host][r] += usage[replica][r]
    moves: list[Move[R]] = []
    for replica in candidates:
        if limit and len(moves) >= limit:
            break
        source, used = at[replica], usage[replica]
        if source not in load:
            continue
        shares = {h: {r: load[h][r] / full[h][r] for r in resources} for h in order}
        fitting = [
            host
            for host in order
            if host != source
            and not there[host][group[replica]]
            and feasible(shares[host], {r: used[r] / full[host][r] for r in resources}, shares[source])
        ]
        if not fitting:
            continue
        target = min(fitting, key=lambda host: (max(shares[host].values()), host))
        for r in resources:
            load[target][r] += used[r]
            load[source][r] -= used[r]
        there[source][group[replica]] -= 1
        there[target][group[replica]] += 1
        at[replica] = target
        after = {r: load[target][r] / full[target][r] for r in resources}
        moves.append(Move(replica, source, target, _fullest(shares[source]), _fullest(after)))
    return moves


def _fullest(shares: Mapping[str, float]) -> tuple[str, float]:
    return max(shares.items(), key=lambda item: item[1])
