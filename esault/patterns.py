"""Patterns of tuples for `stream.pattern(...)`."""

from __future__ import annotations

from esault.topology.pattern import Pattern

__all__ = ["Pattern"]
