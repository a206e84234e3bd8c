"""Bolts that come in the box."""

from __future__ import annotations

from esault.topology.top_k import TopK

__all__ = ["TopK"]
