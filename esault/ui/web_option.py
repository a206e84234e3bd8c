"""The option `--ui` of a run: nothing of the page is loaded without it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from esault.errors import UsageError
from esault.runtime.session.request import View

__all__ = ["web_ui"]


@contextlib.contextmanager
def web_ui(view: View, ui: str | None, control: bool = False, tls: tuple[str, str] | None = None) -> Iterator[View]:
    """The view, with a page where `ui` says; None: without. Raises UsageError."""
    if ui is None:
        if control or tls:
            raise UsageError("--ui-control and --ui-tls go with --ui PORT")
        yield view
        return
    from esault.ui.web.address import parse
    from esault.ui.web.web_view import WebView

    made = WebView(parse("--ui", ui, control, tls), view, control)
    try:
        yield made
    finally:
        made.close()
