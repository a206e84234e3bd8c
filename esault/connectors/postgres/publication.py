"""The publication that a slot is read by: it must send all tables that are read, or changes are missing without a word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from esault.connectors.postgres.client import qualified, quoted
from esault.errors import SourceError

__all__ = ["check_publication", "make_publication"]

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


def _left_out(cursor: Any, publication: str, tables: Sequence[str]) -> list[str]:
    cursor.execute(_LEFT_OUT, _asked(publication, tables))
    return [name for (name,) in cursor.fetchall()]


def _asked(publication: str, tables: Sequence[str]) -> dict[str, Any]:
    return {"publication": publication, "tables": [qualified(table) for table in tables], "names": list(tables)}
