"""The connection on which a server sends the changes of its tables."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from typing import Any

from esault.connectors.postgres.client import connection_options, forms

__all__ = ["Replication", "lsn_of", "lsn_text"]

_HEAD, _KEEPALIVE, _STATUS = struct.Struct(">QQQ"), struct.Struct(">QQB"), struct.Struct(">cQQQQB")
_EPOCH = 946_684_800 * 10**6


def lsn_of(text: str) -> int:
    """Return a place in the log, as "16/B374D848" says it, as a number."""
    high, _, low = text.partition("/")
    return int(high, 16) << 32 | int(low, 16)


def lsn_text(lsn: int) -> str:
    """Return it as the server writes it."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


class Replication:
    """A stream of one slot, from a place in the log on."""

    def __init__(
        self,
        psycopg: Any,
        dsn: str,
        slot: str,
        publication: str,
        lsn: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin it. Raises psycopg.Error."""
        self._psycopg, self._pq = psycopg, psycopg.pq
        #: behind all that the server had to say so far
        self.server_lsn = lsn
        self._replies = False
        self._clock = clock
        #: when the server was asked for a word, where it has said nothing since
        self._asked_at: float | None = None
        info = psycopg.conninfo.make_conninfo(dsn, replication="database", **connection_options(psycopg, dsn))
        self._connection: Any = self._pq.PGconn.connect(info.encode())
        if self._connection.status != self._pq.ConnStatus.OK:
            text = self._connection.error_message.decode("utf-8", "replace")
            self._connection.finish()
            raise psycopg.OperationalError(text)
        # Values come as texts, in forms that this connection is set to.
        for statement in (*forms(self._connection), "set client_encoding to 'UTF8'"):
            self._exec(statement, self._pq.ExecStatus.COMMAND_OK)
        options = f"proto_version '1', publication_names '{publication.replace(chr(39), chr(39) * 2)}'"
        asked = f'START_REPLICATION SLOT "{slot}" LOGICAL {lsn_text(lsn)} ({options})'
        self._exec(asked, self._pq.ExecStatus.COPY_BOTH)
        self._connection.nonblocking = 1

    def _exec(self, statement: str, wanted: Any) -> None:
        result = self._connection.exec_(statement.encode())
        if result.status != wanted:
            text = result.error_message.decode("utf-8", "replace")
            self._connection.finish()
            raise self._psycopg.OperationalError(text)

    def receive(self) -> bytes | None:
        """Return the next message of the plugin; None where there is none now. Raises psycopg.Error where the stream has ended."""
        asked = False
        while True:
            size, data = self._connection.get_copy_data(1)
            if size < 0:
                result = self._connection.get_result()  # says why, where the server has said it
                text = (result.error_message if result is not None else b"").decode("utf-8", "replace").strip()
                raise self._psycopg.OperationalError(text or "the server has ended the stream")
            if size == 0:
                if asked:
                    return None
                self._connection.consume_input()
                asked = True
                continue
            self._asked_at = None
            found = bytes(data)
            if found[:1] == b"w":
                return found[1 + _HEAD.size :]
            if found[:1] == b"k":
                end, _, reply = _KEEPALIVE.unpack_from(found, 1)
                self.server_lsn, self._replies = max(self.server_lsn, end), bool(reply) or self._replies

    @property
    def is_asked(self) -> bool:
        """Return whether the server wants to know at once how far this side is."""
        return self._replies

    @property
    def silent_for(self) -> float:
        """Return the seconds for which the server was asked for a word, and has said none. Read what is there before."""
        return 0.0 if self._asked_at is None else self._clock() - self._asked_at

    def confirm(self, lsn: int) -> None:
        """Tell the server that all before this place is done with, so that it may forget it, and ask for a word. Raises psycopg.Error."""
        self._replies = False
        now = time.time_ns() // 1000 - _EPOCH
        self._connection.put_copy_data(_STATUS.pack(b"r", lsn, lsn, lsn, now, 1))
        self._connection.flush()
        if self._asked_at is None:
            self._asked_at = self._clock()

    def close(self) -> None:
        """Hang up."""
        self._connection.finish()
