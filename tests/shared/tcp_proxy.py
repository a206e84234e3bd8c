"""A door to a server that can be shut: connections are refused, and open ones cut, while the server keeps what it has.

It can also speak TLS for a server that speaks none.
"""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import threading

from ports import free_port


class Proxy:
    """Hands on what comes to `port` to the server at `target`, while it is open; by TLS with `files` of a certificate and its key."""

    def __init__(self, target: int, files: tuple[str, str] | None = None) -> None:
        self._target, self.port = target, free_port()
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) if files is not None else None
        if files is not None and self._tls is not None:
            self._tls.load_cert_chain(*files)
        self._listening: socket.socket | None = None
        self._pairs: set[socket.socket] = set()

    def open(self) -> None:
        """Take connections."""
        self._listening = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, args=(self._listening,), daemon=True).start()

    def shut(self) -> None:
        """Refuse and cut connections."""
        listening, self._listening = self._listening, None
        if listening is not None:
            listening.shutdown(socket.SHUT_RDWR)
            listening.close()
        for each in list(self._pairs):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                here, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=self._hand_on, args=(here,), daemon=True).start()

    def _hand_on(self, here: socket.socket) -> None:
        with contextlib.suppress(OSError), contextlib.ExitStack() as ends:
            ends.enter_context(here)
            if self._tls is not None:
                here = ends.enter_context(self._tls.wrap_socket(here, server_side=True))
            there = ends.enter_context(socket.create_connection(("127.0.0.1", self._target)))
            pair = {here: there, there: here}
            self._pairs |= set(pair)
            try:
                while self._listening is not None:
                    decoded = isinstance(here, ssl.SSLSocket) and here.pending()
                    for each in [here] if decoded else select.select(list(pair), [], [], 1.0)[0]:
                        data = each.recv(65536)
                        if not data:
                            return
                        pair[each].sendall(data)
            finally:
                self._pairs -= set(pair)
