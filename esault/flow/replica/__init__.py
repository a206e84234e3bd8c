"""Sub-units of units with active replicas, and the merger behind them."""
