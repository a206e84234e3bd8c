"""Connections to PostgreSQL: how they are made, what their errors mean, and the wait for a server that is away."""

from __future__ import annotations

import logging
import random
import re
import time
from collections.abc import Callable
from typing import Any, TypeVar

from esault.answer_watch import AnswerWatch
from esault.connectors.postgres.odd_dates import register
from esault.errors import EsaultError
from esault.topology.error_policy import Backoff

__all__ = [
    "Client",
    "connected",
    "connection_options",
    "forms",
    "library",
    "passes",
    "qualified",
    "quoted",
    "table_name",
]

T = TypeVar("T")
#: seconds that one attempt to connect may take
CONNECT_WITHIN = 10
#: a machine that is gone without a word is given up after half a minute, not after the kernel's quarter of an hour
_KEEPALIVES = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 4, "tcp_user_timeout": 30_000}
#: waits between attempts; how many there are is decided by the time
_AGAIN = Backoff()
_DSN = 'write "host=... port=5432 dbname=... user=... password=...", or "postgresql://user:password@host:5432/dbname"'
_logger = logging.getLogger(__name__)
_watch = AnswerWatch()


def library(who: str, error: type[EsaultError]) -> Any:
    """Return psycopg. Raises `error`, naming the extra."""
    try:
        import psycopg
    except ImportError:
        raise error(f"{who} needs psycopg: pip install 'esault[postgres]'") from None
    return psycopg


def connection_options(psycopg: Any, dsn: str) -> dict[str, Any]:
    """Return what a connection is made with beside `dsn`, which goes before it."""
    try:
        said = psycopg.conninfo.conninfo_to_dict(dsn)
    except psycopg.ProgrammingError as error:
        raise psycopg.ProgrammingError(f"{_unreadable(str(error))}; {_DSN}") from None
    if dsn.startswith("postgres") and any("@" in str(said.get(name)) for name in ("host", "port", "dbname")):
        raise psycopg.ProgrammingError(
            "the dsn cannot be read; in a password write @ as %40, / as %2F, ? as %3F and % as %25"
        )
    asked = {"connect_timeout": CONNECT_WITHIN, "application_name": "esault", **_KEEPALIVES}
    if psycopg.pq.version() < 120_000:
        del asked["tcp_user_timeout"]
    return {name: value for name, value in asked.items() if name not in said}


def _unreadable(text: str) -> str:
    # Names of options are said; what else libpq quotes may be of a password.
    option = re.fullmatch('invalid (?:connection option|URI query parameter:) "([a-z_]+)"', text.strip())
    return f"the dsn has the option {option[1]!r}, which libpq does not know" if option else "the dsn cannot be read"


def forms(pgconn: Any) -> list[str]:
    """Return the statements that give a connection the forms of dates and spans of time that are read here.

    None where it has them: a server, a database or a user may be set to others.
    """
    wanted = (("DateStyle", "ISO"), ("IntervalStyle", "postgres"))
    said = {name: (pgconn.parameter_status(name.encode()) or b"").decode() for name, _ in wanted}
    return [f"set {name} to '{form}'" for name, form in wanted if said[name] and not said[name].startswith(form)]


def connected(psycopg: Any, dsn: str) -> Any:
    """Return a new connection. Raises psycopg.Error."""
    connection = psycopg.connect(dsn, **connection_options(psycopg, dsn))
    register(psycopg, connection.adapters)
    for statement in forms(connection.pgconn):
        connection.execute(statement)
        connection.commit()
    return connection


def quoted(name: str) -> str:
    """Return a name as an identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


def table_name(name: str) -> tuple[str, str]:
    """Return (schema, table) of "table" or "schema.table"; the schema is empty where it is not said."""
    schema, dot, table = name.rpartition(".")
    return (schema, table) if dot else ("", name)


def qualified(table: str) -> str:
    """Return "table" or "schema.table" as SQL writes it."""
    schema, name = table_name(table)
    return f"{quoted(schema)}.{quoted(name)}" if schema else quoted(name)


class Client:
    """One connection, made when it is needed, and again where it is lost.

    A server that is away is waited for: it is said once, it is asked again after waits that grow, and `patience` seconds later it is an
    error.
    """

    def __init__(
        self,
        who: str,
        error: type[EsaultError],
        dsn: str,
        patience: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._who, self._error, self._dsn, self._patience = who, error, dsn, patience
        self._clock, self._sleep = clock, sleep
        self._connection: Any = None

    def close(self) -> None:
        """Let go of the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def once(self, work: Callable[[Any], T]) -> T:
        """Run `work(cursor)` in a transaction, without waiting for a server that is away. Raises the error in plain words."""
        psycopg = library(self._who, self._error)
        try:
            return self._attempt(psycopg, work)
        except psycopg.Error as error:
            self.close()
            raise self._said(psycopg, error) from error

    def run(self, work: Callable[[Any], T]) -> T:
        """Run `work(cursor)` in a transaction, again where the connection was lost: what it does must be the same when it is done twice."""
        psycopg = library(self._who, self._error)
        until: float | None = None
        tries = 0
        with _watch.asking(self._say_silent) as question:
            while True:
                try:
                    found = self._attempt(psycopg, work)
                except psycopg.Error as error:
                    now = self._clock()
                    if until is None:
                        until = now + self._patience
                    if not passes(psycopg, error) or now >= until:
                        self.close()
                        raise self._said(psycopg, error) from error
                    if question.first():
                        _logger.warning("%s waits for the server: %s", self._who, _first_line(error))
                    self._sleep(min(until - now, _AGAIN.wait(tries, random.random())))
                    tries += 1
                else:
                    if not question.first():
                        _logger.warning("%s goes on: the server answers", self._who)
                    return found

    def _say_silent(self, seconds: float) -> None:
        _logger.warning("%s waits for the server: no answer for %.0f s", self._who, seconds)

    def _attempt(self, psycopg: Any, work: Callable[[Any], T]) -> T:
        if self._connection is None or self._connection.closed:
            self._connection = connected(psycopg, self._dsn)
        try:
            with self._connection.transaction(), self._connection.cursor() as cursor:
                return work(cursor)
        except psycopg.Error:
            if self._connection.closed or self._connection.broken:
                self._connection = None
            raise

    def _said(self, psycopg: Any, error: Any) -> EsaultError:
        text = _first_line(error)
        state = getattr(error, "sqlstate", None) or ""
        if state.startswith("28") or "authentication failed" in text or "no password supplied" in text:
            hint = "; give the right user and password in the dsn, or PGUSER and PGPASSWORD"
        elif state == "3D000" or ("database" in text and "does not exist" in text):
            hint = "; make it with createdb, or name another in the dsn"
        elif state == "42501":
            hint = "; grant it, or take another user"
        elif state == "53100":
            hint = "; free space on the server's disk, then go on with --resume"
        elif "SSL" in text or "certificate" in text:
            hint = (
                "; let the server speak TLS, name its authority (sslrootcert=PATH), or write another sslmode in the dsn"
            )
        elif state.startswith("23"):
            hint = "; correct the rows or the constraint, then go on with --resume"
        elif passes(psycopg, error):
            hint = "; start the server, or mend host and port in the dsn"
        else:
            hint = ""
        return self._error(f"{self._who}: {text}{hint}")


def passes(psycopg: Any, error: Any) -> bool:
    """Return whether the same may work later: no server, a lost connection, one that is starting or full."""
    state = getattr(error, "sqlstate", None) or ""
    if state:
        return bool(state[:2] in ("08", "57", "40") or state == "53300")
    text = str(error)
    refused = ("authentication", "password", "does not exist", "no pg_hba", "SSL", "invalid", "role")
    return isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)) and not any(w in text for w in refused)


def _first_line(error: Any) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].removeprefix("ERROR:").strip() if lines else type(error).__name__
