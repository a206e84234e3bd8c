"""A command of esault in the process of its test: what it says where it starts nothing, without the start of a Python."""

from __future__ import annotations

import contextlib
import gc
import io

from esault.cli.main import main


def esault(*arguments: str) -> tuple[int, str, str]:
    """Return its exit code, output and errors."""
    usual = gc.get_threshold()
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            main(list(arguments))
            code = 0
        except SystemExit as ended:
            code = int(ended.code or 0)
        finally:
            gc.set_threshold(*usual)
    return code, out.getvalue(), err.getvalue()
