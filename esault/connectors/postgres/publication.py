"""The publication that a slot is read by: it must send all tables that are read, or changes are missing without a word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from esault.connectors.postgres.client import qualified, quoted
from esault.errors import SourceError

__all__ = ["check_identity", "check_keys", "check_publication", "make_publication", "sent"]

#: tables that a publication sends none of; of a partitioned one it may name the parts
_LEFT_OUT = """
select asked.name
from unnest(%(tables)s::text[], %(names)s::text[]) with ordinality as asked (found, name, place)
join pg_class as t on t.oid = to_regclass(asked.found)
where not exists (select from pg_publication where pubname = %(publication)s and puballtables)
and not exists (
    select from pg_publication_tables as sent
    join pg_namespace as n on n.nspname = sent.schemaname
    join pg_class as c on c.relnamespace = n.oid and c.relname = sent.tablename
    where sent.pubname = %(publication)s
    and (c.oid = t.oid or c.oid in (select inhrelid from pg_inherits where inhparent = t.oid))
)
and not exists (
    select from pg_publication_rel as member join pg_publication as p on p.oid = member.prpubid
    where p.pubname = %(publication)s and member.prrelid = t.oid
)
order by asked.place
"""

#: tables that it sends beside those
_OTHERS = """
select count(*) from pg_publication_tables as sent
where sent.pubname = %(publication)s
and format('%%I.%%I', sent.schemaname, sent.tablename)::regclass not in (
    select to_regclass(found) from unnest(%(tables)s::text[]) as found
    union all
    select inhrelid from pg_inherits where inhparent in (
        select to_regclass(found) from unnest(%(tables)s::text[]) as found
    )
)
"""


def make_publication(cursor: Any, who: str, publication: str, tables: Sequence[str], own: bool) -> list[str]:
    """Make the publication where it is missing and is the source's `own`, or have it send just these tables; those that it did not send.

    Raises SourceError where it is another's, and there is none, or it does not send all of them.
    """
    if not own:
        check_publication(cursor, who, publication, tables, own)
        return []
    cursor.execute("select puballtables from pg_publication where pubname = %s", [publication])
    there = cursor.fetchone()
    listed = ", ".join(map(qualified, tables))
    if there is None:
        cursor.execute(f"create publication {quoted(publication)} for table {listed}")
    elif not there[0]:
        cursor.execute(_OTHERS, _asked(publication, tables))
        (others,) = cursor.fetchone()
        missing = _left_out(cursor, publication, tables)
        if others or missing:  # a table was made anew, or the source's tables have changed
            cursor.execute(f"alter publication {quoted(publication)} set table {listed}")
        return missing
    return []


def check_publication(
    cursor: Any, who: str, publication: str, tables: Sequence[str], own: bool, goes_on: bool = False
) -> None:
    """Raise SourceError where there is no such publication, or it does not send all tables; `goes_on`: from a checkpoint."""
    cursor.execute("select 1 from pg_publication where pubname = %s", [publication])
    listed = ", ".join(map(qualified, tables))
    anew = "begin anew with --restart, which reads a new snapshot"
    if cursor.fetchone() is None:
        made = f"CREATE PUBLICATION {quoted(publication)} FOR TABLE {listed}"
        hint = made if not goes_on else anew if own else f"{made}, and {anew}"
        raise SourceError(f"{who}: there is no publication {publication!r}: {hint}")
    missing = _left_out(cursor, publication, tables)
    if missing:
        names = ", ".join(missing)
        added = f"ALTER PUBLICATION {quoted(publication)} ADD TABLE {', '.join(map(qualified, missing))}"
        said = f"{who}: publication {publication!r} does not send changes of {names}"
        if goes_on:  # who knows since when
            said += ", and those behind the checkpoint may be gone (was the table made anew?)"
            hint = anew if own else f"{added}, and {anew}"
        else:
            hint = added
        raise SourceError(f"{said}: {hint}")


#: columns of a table whose changes are sent, and the condition for its rows; since version 15 a publication may name both
_SENT = """
select attnames::text[], rowfilter from pg_publication_tables
where pubname = %s and format('%%I.%%I', schemaname, tablename)::regclass = to_regclass(%s)
"""
_STORED = """
select array_agg(attname::text order by attnum) from pg_attribute
where attrelid = to_regclass(%s) and attnum > 0 and not attisdropped and attgenerated = ''
"""
#: columns of old rows that are sent where an index says which
_IDENTITY = """
select relreplident, array(
    select attname::text from pg_index join pg_attribute on attrelid = indrelid and attnum = any(indkey)
    where indrelid = t.oid and indisreplident
) from pg_class as t where t.oid = to_regclass(%s)
"""


def sent(cursor: Any, publication: str, table: str) -> tuple[list[str] | None, str | None]:
    """Return the columns of a table whose changes a publication sends (None: all), and the condition that its rows fulfil."""
    version = cursor.connection.info.server_version
    named, condition = None, None
    if version >= 150_000:
        cursor.execute(_SENT, [publication, qualified(table)])
        named, condition = cursor.fetchone() or (None, None)  # of a table with parts these are in it, each for itself
    if version < 120_000 or (
        version >= 180_000 and named is not None
    ):  # none is generated, or those are named that are sent
        return named, condition
    cursor.execute(_STORED, [qualified(table)])
    (stored,) = cursor.fetchone()
    return (stored if named is None else [name for name in named if name in stored]), condition


def check_keys(cursor: Any, who: str, publication: str, table: str, keys: Sequence[str]) -> None:
    """Raise SourceError where a publication leaves out a column of the primary key."""
    columns, _ = sent(cursor, publication, table)
    if columns is not None and not set(keys) <= set(columns):
        missing = next(name for name in keys if name not in columns)
        raise SourceError(
            f"{who}: publication {publication!r} leaves out column {missing!r} of {table}, which is of the primary key: name it there, too "
            f"(ALTER PUBLICATION {quoted(publication)} SET TABLE {qualified(table)} (...))"
        )


def check_identity(cursor: Any, who: str, table: str, keys: Sequence[str]) -> None:
    """Raise SourceError where the server does not say the primary key of a row that is removed."""
    cursor.execute(_IDENTITY, [qualified(table)])
    kind, columns = cursor.fetchone()
    if kind == "n" or (kind == "i" and not set(keys) <= set(columns)):
        said = f"has its rows named by {', '.join(columns)}" if columns else "has REPLICA IDENTITY NOTHING"
        raise SourceError(
            f"{who}: table {table} {said}, so that the server does not say whose row was removed: ALTER TABLE {qualified(table)} REPLICA "
            "IDENTITY DEFAULT (or FULL)"
        )


def _left_out(cursor: Any, publication: str, tables: Sequence[str]) -> list[str]:
    cursor.execute(_LEFT_OUT, _asked(publication, tables))
    return [name for (name,) in cursor.fetchall()]


def _asked(publication: str, tables: Sequence[str]) -> dict[str, Any]:
    return {"publication": publication, "tables": [qualified(table) for table in tables], "names": list(tables)}
