"""Claims of CRAA's paper, each with a check. A check reads the reference's runs and ours in the same way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.policies.claims import Checks, Verdict
from bench.policies.craa.model import Outcome

__all__ = ["claims"]

Runs = Mapping[str, Mapping[str, Outcome]]
#: by load
LOADS = ("step", "jitter", "sine", "stage")


def reduction(ours: Outcome, theirs: Outcome) -> float:
    """Mean over the operators of the share of losses that is saved; an operator without losses on either side counts 0."""
    shares = [1 - a / b if b else 0.0 if not a else -1.0 for a, b in zip(ours.lost, theirs.lost)]
    return sum(shares) / len(shares)


def claims(
    windows: int,
    data: Mapping[str, Runs],
    feedback: Mapping[str, Mapping[str, Outcome]],
    without: Mapping[str, Mapping[str, Outcome]],
    pairs: Runs,
) -> list[dict[str, Any]]:
    """One entry for each. `data`, `feedback` and `without` have the columns reference and sim."""
    claim = Checks("craa")

    cycles = windows // 6
    loads = lambda column: [load for load in LOADS if load in data[column]]

    @claim(
        "no_loss",
        "behind the head nothing is lost, where TA and KPA lose at every operator",
        "practically none except at the head",
        "0 tuples lost at O2..O5 on step, jitter, sine and stage, and more than 0 at each with TA and KPA",
    )
    def losses(column: str) -> Verdict:
        runs = data[column]
        most = {load: max(runs[load]["CRAA"].lost[1:]) for load in loads(column)}
        rivals = all(min(runs[load][p].lost) > 0 for load in most for p in ("TA", "KPA", "KPA walk"))
        said = ", ".join(f"{load} {n}" for load, n in most.items())
        return f"most at one operator: {said}; rivals lose at each: {rivals}", rivals and not any(most.values())

    @claim(
        "little_loss",
        "behind the head practically nothing is lost: of what TA loses there",
        "practically none except at the head",
        "0.1 % of TA's loss at O2..O5 at most, on each load",
    )
    def share_of_losses(column: str) -> Verdict:
        runs = data[column]
        most = {
            load: sum(runs[load]["CRAA"].lost[1:]) / max(1, sum(runs[load]["TA"].lost[1:])) for load in loads(column)
        }
        return ", ".join(f"{load} {v:.3%}" for load, v in most.items()), max(most.values()) <= 0.001

    @claim(
        "reduction",
        "data loss against TA, mean over the operators",
        "85 % less",
        "at least 72 % less on each of step, jitter, sine, stage, and 80 % on two of them",
    )
    def reduced(column: str) -> Verdict:
        saved = {load: reduction(data[column][load]["CRAA"], data[column][load]["TA"]) for load in loads(column)}
        good = min(saved.values()) >= 0.72 and sum(v >= 0.8 for v in saved.values()) >= min(2, len(saved))
        return ", ".join(f"{load} {v:.1%}" for load, v in saved.items()), good

    @claim(
        "avoided",
        "step load: changes at O3 and O4 that were not made",
        "19 each; none at O1, O2, O5",
        f"{cycles - 1} each: one a cycle but the first; O1, O2 and O5 are not asked",
    )
    def avoided(column: str) -> Verdict:
        o = data[column]["step"]["CRAA"]
        return f"O3 {o.avoided[2]}, O4 {o.avoided[3]} (O1 {o.avoided[0]}, O2 {o.avoided[1]}, O5 {o.avoided[4]})", all(
            o.avoided[i] == cycles - 1 for i in (2, 3)
        )

    @claim(
        "step_changes",
        "step load: changes at O3 and O4",
        "clearly fewer than TA",
        "less than 90 % of TA's at both",
    )
    def step_changes(column: str) -> Verdict:
        ours, theirs = (data[column]["step"][p].changes for p in ("CRAA", "TA"))
        return f"CRAA {ours[2]}, {ours[3]}; TA {theirs[2]}, {theirs[3]}", ours[2] < 0.9 * theirs[2] and ours[
            3
        ] < 0.9 * theirs[3]

    @claim(
        "jitter_changes",
        "jitter load: O4 and O5 do not follow the short peaks",
        "O5 avoids all",
        "2 changes at most at O4 and at O5",
    )
    def jitter_changes(column: str) -> Verdict:
        ours, theirs = (data[column]["jitter"][p].changes for p in ("CRAA", "TA"))
        return f"CRAA O4 {ours[3]}, O5 {ours[4]}; TA {theirs[3]}, {theirs[4]}", max(ours[3:]) <= 2

    if windows > 64:

        @claim(
            "jitter_settled",
            "jitter load: changes at O4 and O5 together after the first cycle",
            "O5 avoids all",
            "none",
        )
        def widths_at_peaks(column: str) -> Verdict:
            changed = {}
            for name in ("CRAA", "TA"):
                o = data[column]["jitter"][name]
                # the first cycle starts from one sub-unit; peaks reach O5 four windows after O1
                changed[name] = sum(
                    a != b for i in (3, 4) for a, b in zip(o.widths[f"O{i + 1}"][32:], o.widths[f"O{i + 1}"][33:])
                )
            return f"CRAA {changed['CRAA']}, TA {changed['TA']}", changed["CRAA"] == 0

    @claim(
        "usage",
        "use of what is allocated, O2 to O5",
        "close to 1; step: above TA and KPA except at O3",
        "0.86 at least on each load, and above TA's at each operator on the step load",
    )
    def usage(column: str) -> Verdict:
        runs = data[column]
        least = {load: min(runs[load]["CRAA"].used[1:]) for load in loads(column)}
        above = all(a > b for a, b in zip(runs["step"]["CRAA"].used[1:], runs["step"]["TA"].used[1:]))
        return (
            f"least at O2..O5: {', '.join(f'{load} {v:.3f}' for load, v in least.items())}; step above TA at each: {above}",
            above and min(least.values()) >= 0.86,
        )

    @claim(
        "throughput",
        "tuples a second out of O5, against TA",
        "slightly more (sine)",
        "more on each load",
    )
    def throughput(column: str) -> Verdict:
        runs = data[column]
        said = {load: (runs[load]["CRAA"].throughput, runs[load]["TA"].throughput) for load in loads(column)}
        return (
            ", ".join(f"{load} {a} against {b}/s" for load, (a, b) in said.items()),
            all(a > b for a, b in said.values()),
        )

    @claim(
        "head",
        "the filter loses less at the head than TA",
        "less",
        "less on sine, stage and random load",
    )
    def head(column: str) -> Verdict:
        runs = data[column]
        known = [load for load in ("sine", "stage", "random to 10000") if load in runs] or loads(column)
        said = {load: (runs[load]["CRAA"].lost[0], runs[load]["TA"].lost[0]) for load in known}
        return ", ".join(f"{load} {a} against {b}" for load, (a, b) in said.items()), all(
            a < b for a, b in said.values()
        )

    @claim(
        "judgement",
        "jitter load: what the judgement spares",
        "the jitter phenomenon is avoided",
        "more changes at O4 and O5 without it",
    )
    def judgement(column: str) -> Verdict:
        with_it, none = data[column]["jitter"]["CRAA"].changes, without[column]["jitter, no judgement"].changes
        return f"O4 {none[3]}, O5 {none[4]} without; {with_it[3]}, {with_it[4]} with", (
            none[3] > with_it[3] and none[4] > with_it[4]
        )

    @claim(
        "printed_floor",
        "(11) as printed takes away too much",
        "(a misprint: the paper reports no loss there)",
        "losses at O2 and O3 on the step load with the printed floor",
    )
    def floor(column: str) -> Verdict:
        lost = without[column]["step, printed floor"].lost
        return f"O2 {lost[1]}, O3 {lost[2]} lost", lost[1] > 0 and lost[2] > 0

    @claim(
        "feedback_tau",
        "feedback test: fewest changes",
        "at tau 0.7 and 0.8, where feedback is most frequent",
        "the fewest of four tau at 0.7 or 0.8, and fewer than without feedback",
    )
    def taus(column: str) -> Verdict:
        runs = feedback[column]
        made = {name: sum(o.changes) for name, o in runs.items()}
        tau = {n: v for n, v in made.items() if n.startswith("tau")}
        slowed = {n: o.slowed for n, o in runs.items() if n.startswith("tau")}
        best = min(tau.values())
        return (
            f"changes: {', '.join(f'{n} {v}' for n, v in made.items())}; slow-downs: {', '.join(f'{n} {v}' for n, v in slowed.items())}",
            best in (tau["tau 0.7"], tau["tau 0.8"]) and best < made["none"],
        )

    @claim(
        "feedback_loss",
        "feedback test, tau 0.8: data loss",
        "far better than TA, changes slightly more",
        "85 % less than TA's, all operators together",
    )
    def feedback_loss(column: str) -> Verdict:
        ours, theirs = feedback[column]["tau 0.8"], feedback[column]["TA"]
        return f"CRAA {sum(ours.lost)}, TA {sum(theirs.lost)}; AC {sum(ours.changes)}, {sum(theirs.changes)}", sum(
            ours.lost
        ) < 0.15 * sum(theirs.lost)

    @claim(
        "thresholds",
        "nine pairs of beta and gamma: data loss at O2..O5 (the policy in the window-level model in both columns)",
        "unaffected; usage and changes about level",
        "no loss with any pair on sine, stage and random load",
    )
    def thresholds(column: str) -> Verdict:
        del column
        lost = {load: {sum(o.lost[1:]) for o in runs.values()} for load, runs in pairs.items()}
        used = {load: [min(o.used[1:]) for o in runs.values()] for load, runs in pairs.items()}
        said = "; ".join(
            f"{load}: {min(v)} to {max(v)} lost, least use {min(used[load]):.3f} to {max(used[load]):.3f}"
            for load, v in lost.items()
        )
        return said, all(max(v) == 0 for v in lost.values())

    return claim.found
