"""Claims of the migration dissertation, and which of them are seen again in the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bench.policies.migration.scenarios import Measured, gain

__all__ = ["CLAIMS", "Claim", "Verdict"]

#: scenarios by what they are compared for: d 0.25, 0.50, 0.75 with limit 1
DS = (1, 2, 3)
RANDOM, BASE = 10, 12
STABLE, STABLE_RANDOM, STABLE_BASE = (4, 5, 6), 11, 13


class Verdict(NamedTuple):
    """The outcome of a claim."""

    text: str
    holds: bool


@dataclass(frozen=True)
class Claim:
    """Something that the dissertation says."""

    name: str
    text: str
    paper: str
    #: what of it must be seen here
    counts_as: str
    judge: Callable[[Measured], Verdict]


def _percents(shares: Iterable[float], digits: int = 0) -> str:
    # Adding 0.0 makes -0.0 a plain zero.
    return " / ".join(f"{round(100 * s, digits) + 0.0:.{digits}f}" for s in shares) + " %"


def _at_least(figure: str, base: int, least: float) -> Callable[[Measured], Verdict]:
    def judge(m: Measured) -> Verdict:
        gains, there = m.gains(figure, base, DS), m.all(base, figure)
        # A mean over seeds that differ widely says little: how widely is said beside it.
        text = f"{_percents(gains)} of {min(there):,.0f} to {max(there):,.0f} ms"
        return Verdict(text, min(gains) >= least)

    return judge


def _slow_below_base(m: Measured) -> Verdict:
    below = all(
        ours < base
        for figure in ("slow_mean", "slow_p99")
        for s in DS
        for ours, base in zip(m.all(s, figure), m.all(BASE, figure))
    )
    text = f"mean {_percents(m.gains('slow_mean', BASE, DS))}, p99 {_percents(m.gains('slow_p99', BASE, DS))}"
    return Verdict(text, below)


def _events_below_base(m: Measured) -> Verdict:
    losses = m.gains("events", BASE, DS)
    return Verdict(_percents(losses, 2), max(losses) <= 0.012)


def _fewer_with_larger_d(m: Measured) -> Verdict:
    counts = [m.mean(s, "migrations") for s in DS]
    return Verdict(" / ".join(f"{c:.1f}" for c in counts), counts[0] > counts[1] > counts[2])


def _limit(m: Measured) -> Verdict:
    one, none = m.mean(1, "migrations"), m.mean(7, "migrations")
    return Verdict(f"{one:.1f} and {none:.1f}", none > one)


def _as_many(m: Measured) -> Verdict:
    one, none = m.mean(1, "migrations"), m.mean(7, "migrations")
    return Verdict(f"{one:.1f} and {none:.1f}", abs(one / 28 - 1) <= 0.25 and abs(none / 68 - 1) <= 0.25)


def _fewer_events_without_limit(m: Measured) -> Verdict:
    loss = gain(m.mean(9, "events"), m.mean(3, "events"))
    return Verdict(_percents([loss], 2), loss >= 0.01)


def _stable_alike(m: Measured) -> Verdict:
    away = [
        abs(m.mean(s, figure) - m.mean(STABLE_BASE, figure))
        for figure in ("fast_mean", "slow_mean")
        for s in (*STABLE, STABLE_RANDOM)
    ]
    return Verdict(f"at most {max(away):.1f} ms away from none", max(away) <= 2.0)


def _fast_as_random(m: Measured) -> Verdict:
    apart = [
        f"{figure} of scenario {s}"
        for figure in ("fast_mean", "fast_p99")
        for s in DS
        if not m.overlap(figure, s, RANDOM)
    ]
    means = " / ".join(f"{m.mean(s, 'fast_mean'):.1f}" for s in (*DS, RANDOM))
    return Verdict(f"means {means} ms; apart: {', '.join(apart) or 'none'}", not apart)


def _random_no_help(m: Measured) -> Verdict:
    mean, p99 = m.gains("slow_mean", BASE, [RANDOM])[0], m.gains("slow_p99", BASE, [RANDOM])[0]
    return Verdict(f"mean {100 * mean:.0f} % better, p99 {100 * p99:.0f} % better", mean > 0 and p99 <= 0)


def _latency_not_by_d(m: Measured) -> Verdict:
    pairs = ((1, 2), (1, 3), (2, 3))
    means = " / ".join(f"{m.mean(s, 'fast_mean'):.1f}" for s in DS)
    return Verdict(f"fast means {means} ms", all(m.overlap("fast_mean", a, b) for a, b in pairs))


def _latency_not_by_limit(m: Measured) -> Verdict:
    text = f"fast means {m.mean(1, 'fast_mean'):.1f} and {m.mean(7, 'fast_mean'):.1f} ms"
    return Verdict(text, m.overlap("fast_mean", 1, 7))


def _more_events(scenarios: Sequence[int], than: int) -> Callable[[Measured], Verdict]:
    def judge(m: Measured) -> Verdict:
        more = [-g for g in m.gains("events", than, scenarios)]
        return Verdict(_percents(more, 2), min(more) >= 0.001)

    return judge


CLAIMS = (
    Claim(
        "fast p99",
        "varied load, p99 of the fast copies, d 0.25 / 0.50 / 0.75: below none by",
        "80 / 71 / 75 %",
        "71 % at least for each d",
        _at_least("fast_p99", BASE, 0.71),
    ),
    Claim(
        "fast mean",
        "varied load, mean latency of the fast copies: below none by",
        "89 / 84 / 87 %",
        "84 % at least for each d",
        _at_least("fast_mean", BASE, 0.84),
    ),
    Claim(
        "slow copies",
        "varied load, slow copies: below none by",
        "mean 44 / 41 / 49 %, p99 22 / 21 / 30 % (derived)",
        "below none in mean and p99, for each d and each seed",
        _slow_below_base,
    ),
    Claim(
        "processed",
        "varied load, processed events: below none by",
        "1.18 / 0.91 / 0.63 %",
        "at most 1.2 % (the model loses nothing: it can only show a backlog at the end)",
        _events_below_base,
    ),
    Claim(
        "sensitivity",
        "migrations grow fewer as d grows (d 0.25 / 0.50 / 0.75)",
        "28 at 0.25, fewer beyond (figures)",
        "means over the seeds fall from d to d",
        _fewer_with_larger_d,
    ),
    Claim(
        "no limit",
        "without a limit there are more migrations (d 0.25: limit 1, and none)",
        "28 and 68",
        "the mean over the seeds is higher",
        _limit,
    ),
    Claim(
        "how many",
        "as many migrations as in the dissertation (d 0.25: limit 1, and none)",
        "28 and 68",
        "both within a quarter",
        _as_many,
    ),
    Claim(
        "stable load",
        "stable load: no strategy changes the mean latency",
        "alike (figures)",
        "means of fast and slow copies within 2 ms of none",
        _stable_alike,
    ),
    Claim(
        "fast as random",
        "varied load, fast copies: no difference to random (d 0.25 / 0.50 / 0.75 / random)",
        "none that is significant",
        "ranges over the seeds overlap, mean and p99, each d",
        _fast_as_random,
    ),
    Claim(
        "slow p99 against random",
        "varied load, p99 of the slow copies: below random by",
        "26 / 25 / 33 %",
        "25 % at least for each d",
        _at_least("slow_p99", RANDOM, 0.25),
    ),
    Claim(
        "slow mean against random",
        "varied load, mean latency of the slow copies: below random by",
        "36 / 32 / 41 %",
        "32 % at least for each d",
        _at_least("slow_mean", RANDOM, 0.32),
    ),
    Claim(
        "random is no help",
        "varied load, slow copies under random against none",
        "mean 13 % better, p99 5 % worse",
        "mean better, p99 no better",
        _random_no_help,
    ),
    Claim(
        "latency by d",
        "varied load: latency does not depend on d",
        "equal (test)",
        "ranges over the seeds of the fast copies' means overlap",
        _latency_not_by_d,
    ),
    Claim(
        "latency by limit",
        "varied load, d 0.25: latency does not depend on the limit",
        "similar",
        "ranges over the seeds of the fast copies' means overlap",
        _latency_not_by_limit,
    ),
    Claim(
        "processed without limit",
        "varied load, d 0.75: fewer events without a limit, by",
        "3.4 %",
        "1 % at least (the model's moves cost nothing that could show it)",
        _fewer_events_without_limit,
    ),
    Claim(
        "processed against random",
        "varied load, events: more than random by",
        "4213 / 8853 / 13783 events of about 1.74 million: 0.24 / 0.51 / 0.80 %",
        "0.1 % at least for each d (the model loses nothing)",
        _more_events(DS, RANDOM),
    ),
    Claim(
        "processed, stable",
        "stable load, events: more than none by",
        "0.20 / 0.23 / 0.37 %",
        "0.1 % at least for each d (the model loses nothing)",
        _more_events(STABLE, STABLE_BASE),
    ),
)
