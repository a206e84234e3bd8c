"""Facts about processes: owner, lease, title, usage, folder, signals, output."""
