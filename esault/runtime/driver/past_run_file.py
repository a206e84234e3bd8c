"""The file in which what policies have learnt is kept from run to run (`--learn DIR`)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from esault.elasticity.scaling import Scaling

__all__ = ["keep_learnt", "recall_learnt"]


def recall_learnt(path: str | Path, scaling: Scaling, notice: Callable[[str], None]) -> None:
    """Have policies begin with what is kept there; `notice` is told where that is nothing that can be read."""
    try:
        scaling.recall(json.loads(Path(path).read_text()))
    except FileNotFoundError:
        return
    except (OSError, ArithmeticError, ValueError, KeyError, TypeError, AttributeError) as error:
        notice(f"--learn: {path} cannot be read ({type(error).__name__}: {error}); policies begin without it")


def keep_learnt(path: str | Path, scaling: Scaling, notice: Callable[[str], None]) -> None:
    """Keep it for the next run; `notice` is told where that cannot be."""
    learnt = scaling.learnt()
    if not learnt:
        return
    draft = Path(f"{path}.draft")
    try:
        draft.write_text(json.dumps(learnt))
        draft.replace(path)
    except OSError as error:
        notice(f"--learn: {path} cannot be written ({error.strerror or error}); the next run begins without it")
