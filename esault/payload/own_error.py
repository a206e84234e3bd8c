"""Errors of the user's own code that is called while a value is made again from its bytes."""

from __future__ import annotations

import os

from esault.payload.class_names import is_own

__all__ = ["own_error"]


def own_error(error: Exception) -> str | None:
    """Return the words for an error that the user's own code raised; None where it did not."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None or not is_own(last.tb_frame.f_globals.get("__name__")):
        return None
    code = last.tb_frame.f_code
    where = f"{getattr(code, 'co_qualname', code.co_name)}, {os.path.basename(code.co_filename)}:{last.tb_lineno}"
    said = f"{where} raised {type(error).__name__} when a value was made again from its bytes: {error}"
    if code.co_name in ("__hash__", "__eq__"):
        said += "; an object that is in a set of its own, or a key there, is looked at before it has its attributes"
    return said
