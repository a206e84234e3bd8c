"""A view that shows a run on a page in a browser, and hands everything on to another view."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from esault.control.report.summary import Snapshot
from esault.control.report.timeline import Page
from esault.errors import UsageError
from esault.runtime.process.log_output import short_line
from esault.runtime.session.request import LogView, TimelineView, View
from esault.ui.late_server import LateServer
from esault.ui.web.address import Address
from esault.ui.web.application import WebApplication
from esault.ui.web.history import History

if TYPE_CHECKING:
    from esault.runtime.session.control_client import Running

__all__ = ["WebView"]


class WebView:
    """Listens once the run's processes are there."""

    def __init__(self, address: Address, view: View, control: bool = False) -> None:
        """`control`: the page may change the run. Raises UsageError where the port is taken."""
        self._view, self._control = view, control
        self._history = History()
        self._topology = self._run = ""
        self._token = address.token
        application = WebApplication(self, address.token, read_too=address.beyond)
        self._server = LateServer(
            "--ui", address.host, address.port, application, address.tls, guarded=not address.beyond
        )

    # as a view ---------------------------------------------------------------------------------

    def line(self, mark: str, text: str) -> None:
        """A line that a process printed."""
        self._history.line(mark, text)
        self._view.line(mark, text)

    def log(self, record: logging.LogRecord) -> bool:
        """A record that user code has logged."""
        self._history.line(*short_line(record))
        return isinstance(self._view, LogView) and self._view.log(record)

    def notice(self, text: str) -> None:
        """Something the user should know."""
        self._history.line("", text)
        self._view.notice(text)

    def update(self, snapshot: Snapshot) -> None:
        """The run as it is."""
        self._topology, self._run = snapshot.topology, snapshot.run
        self._history.see(snapshot)
        if self._server.start(self._view.notice):
            key = f"/#token={self._token}" if self._token else "/"
            self._view.notice(f"web UI: {self._server.url}{key}")
        self._view.update(snapshot)

    def page(self, page: Page) -> None:
        """A window of the timeline."""
        self._history.page(page)
        if isinstance(self._view, TimelineView):
            self._view.page(page)

    def close(self) -> None:
        """The run has ended."""
        self._history.end()
        self._server.close()

    # as the runs of the page -------------------------------------------------------------------

    def list(self) -> Iterator[Mapping[str, Any]]:
        """Return this one run."""
        yield {"run": "this", "topology": self._topology, "control": self._control}

    def history(self, run: str) -> History:
        """Return what is known of it."""
        return self._history

    def running(self, run: str) -> Running:
        """Return this process's own control socket, as another terminal finds it."""
        from esault.runtime.session.control_client import running

        for each in running():
            if each.status.get("pid") == os.getpid() and each.run == self._run:
                return each
        raise UsageError("the run takes no requests now: it is starting, or ending")

    def ask(self, run: str, request: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Send a request to it."""
        from esault.runtime.session.control_client import ask

        return ask(self.running(run).control_socket, dict(request), patience=60.0)
