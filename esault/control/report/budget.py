"""The use that a run has made of its budget."""

from __future__ import annotations

from esault.control.placement.placement import Cluster
from esault.control.report.objectives import sub_unit_seconds
from esault.control.run.driver import Driver
from esault.report import BudgetSpent

__all__ = ["spent"]


def spent(driver: Driver, seconds: float, until: float) -> BudgetSpent | None:
    """Return what the run has held in these seconds; None without a budget."""
    budget, cluster = driver.places.budget, driver.resources
    if budget.sub_units:
        mean = sub_unit_seconds(driver, until) / seconds if seconds > 0 else 0.0
        return BudgetSpent(str(budget), budget.sub_units, float(driver.places.most_held), mean)
    if budget.hourly and isinstance(cluster, Cluster):
        cost, hours = sum(each.cost for each in cluster.costs.values()), cluster.charged_seconds / 3600
        mean = cost / hours if hours else 0.0
        return BudgetSpent(str(budget), budget.hourly, cluster.most_hourly, mean, cost, budget.hourly * hours)
    return None
