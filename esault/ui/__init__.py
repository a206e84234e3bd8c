"""What a run looks like in a terminal; no logic of its own. Whatever goes wrong here never touches the run."""
