"""Aggregates by name, the bolt that keeps them for each key, and the step that combines them before they travel."""
