"""A simulator of topologies on a virtual clock: the engine's own policies over modelled operators, minutes in seconds."""

from __future__ import annotations

from esault.sim.model import Host, Model, Operator, Source, Timing
from esault.sim.simulation import OperatorRun, Run, simulate

__all__ = ["Host", "Model", "Operator", "OperatorRun", "Run", "Source", "Timing", "simulate"]
