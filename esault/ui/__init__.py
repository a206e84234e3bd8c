"""The look of a run in a terminal; no logic of its own. Whatever goes wrong here never touches the run."""
