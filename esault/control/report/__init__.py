"""Reports and live views of a run, made of what the driver knows."""
