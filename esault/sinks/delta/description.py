"""The facts about a Delta table that a writer must know, and whether the library is one that can write it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deltalake import DeltaTable

__all__ = ["check_version", "described"]

#: properties of a table that ask more of a writer than this one does -> what they are
_TOO_MUCH = {
    "delta.enableRowTracking": "row tracking",
    "delta.enableIcebergCompatV1": "Iceberg compatibility",
    "delta.enableIcebergCompatV2": "Iceberg compatibility",
    "delta.enableInCommitTimestamps": "in-commit timestamps",
}
#: the same, of a column
_TOO_MUCH_OF_A_COLUMN = {
    "delta.generationExpression": "is generated",
    "delta.identity.start": "is an identity column",
    "delta.invariants": "has an invariant",
}


def described(table: DeltaTable) -> dict[str, Any]:
    """The columns of a table and what else it asks for, as plain values."""
    properties = dict(table.metadata().configuration)
    columns, trouble = [], []
    for field in table.schema().fields:
        columns.append([field.name, getattr(field.type, "type", None) or str(field.type), field.nullable])
        trouble += [
            f"column {field.name!r} {what}" for key, what in _TOO_MUCH_OF_A_COLUMN.items() if key in field.metadata
        ]
    trouble += [f"it has {what}" for key, what in _TOO_MUCH.items() if properties.get(key, "").lower() == "true"]
    if properties.get("delta.columnMapping.mode", "none").lower() != "none":
        trouble.append("its columns are mapped (delta.columnMapping.mode)")
    trouble += [
        f"it has a constraint ({key.removeprefix('delta.constraints.')})"
        for key in properties
        if key.startswith("delta.constraints.")
    ]
    return {
        "version": table.version(),
        "columns": columns,
        "partition_by": list(table.metadata().partition_columns),
        "rows": table.get_add_actions().num_rows > 0,
        "trouble": trouble,
        "append_only": properties.get("delta.appendOnly", "").lower() == "true",
    }


def check_version() -> None:
    """Raise ImportError where the library is too old: before 1.6 it leaves transactions out of what it commits."""
    import deltalake

    if tuple(map(int, deltalake.__version__.split(".")[:2])) < (1, 6):
        raise ImportError(f"version {deltalake.__version__} is installed, which keeps no transactions of applications")
