"""The command line: words into requests, outcomes into exit codes; no logic of its own."""
