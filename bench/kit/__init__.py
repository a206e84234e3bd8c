"""Parts that several benches share: their command line, runs in turns, the machine, results as files."""
