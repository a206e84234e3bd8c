"""A server for a view: its port is looked at before anything starts, and it listens once the run's processes are there."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from esault.errors import UsageError
from esault.ui.listen_address import family_of, written

if TYPE_CHECKING:
    import ssl

    from esault.ui.http_server import Application, HttpServer

__all__ = ["LateServer"]


class LateServer:
    """Begins late: processes are forked meanwhile, and take over neither threads nor this socket."""

    def __init__(
        self,
        option: str,
        host: str,
        port: int,
        application: Application,
        tls: ssl.SSLContext | None = None,
        guarded: bool = True,
    ) -> None:
        """`option` is the name of it in messages; port 0: any that is free. Raises UsageError where the port is taken."""
        self._option, self._host, self._port = option, host, port
        self._application, self._tls, self._guarded = application, tls, guarded
        self._server: HttpServer | None = None
        #: the port was taken by another program
        self._gone = False
        try:
            with socket.create_server((host, port), family=family_of(host)):
                pass
        except OSError as error:
            raise UsageError(
                f"{option} {port}: {written(host)}:{port} cannot be listened on ({error.strerror or error}); choose another port, or 0 "
                "for any that is free"
            ) from None

    def start(self, notice: Callable[[str], None]) -> bool:
        """Listen, if it does not yet; return whether it began just now. `notice` is told where the port has been taken."""
        if self._server is not None or self._gone:
            return False
        from esault.ui.http_server import HttpServer  # with it comes http, which every run would load

        try:
            self._server = HttpServer(self._host, self._port, self._application, self._tls, self._guarded)
        except OSError as error:
            self._gone = True
            why = error.strerror or error
            notice(f"{self._option} shows nothing: {written(self._host)}:{self._port} was taken meanwhile ({why})")
            return False
        self._server.start()
        return True

    @property
    def url(self) -> str:
        """The address for a browser."""
        port = self._server.server_port if self._server is not None else self._port
        return f"http{'s' if self._tls is not None else ''}://{written(self._host)}:{port}"

    def close(self) -> None:
        """Answer no more."""
        if self._server is not None:
            self._server.close()
