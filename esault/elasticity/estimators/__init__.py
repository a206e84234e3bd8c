"""Estimates that policies reckon with: rates, forecasts, loads and waits, from views alone. No policy is known here."""
