"""Numbers of 64 bits with which Arrow reckons as Python does, to the type and the last bit."""

from __future__ import annotations

from operator import countOf
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ADDENDS", "MOST", "known_numbers", "numbers_of"]

#: as many ints from -MOST to MOST have a sum that fits into 64 bits
ADDENDS = 1 << 18
MOST = (1 << 63) // ADDENDS - 1
#: -0.0, as an int of 64 bits
_MINUS_ZERO = -(1 << 63)


def numbers_of(parts: list[Any], summed: bool = False) -> pa.Array | None:
    """These as numbers of 64 bits with which Arrow reckons as Python does; None where it does not."""
    import pyarrow as pa

    kind = type(parts[0])
    if kind not in (int, float) or countOf(map(type, parts), kind) != len(parts):
        return None
    if kind is float:
        return known_numbers(pa.array(parts, pa.float64()))
    try:
        numbers = pa.array(parts, pa.int64())
    except (OverflowError, pa.ArrowInvalid):
        return None
    return known_numbers(numbers, summed)


def known_numbers(column: pa.Array | None, summed: bool = False) -> pa.Array | None:
    """A column as numbers of 64 bits with which Arrow reckons as Python does; None where it does not, or it has other items."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column is None or column.null_count or not len(column):
        return None
    if pa.types.is_floating(column.type):
        numbers = column.cast(pa.float64())
        odd = pc.any(pc.is_nan(numbers)).as_py() or pc.min(numbers.view(pa.int64())).as_py() == _MINUS_ZERO
        return None if odd else numbers
    if not pa.types.is_integer(column.type):
        return None
    try:
        numbers = column.cast(pa.int64())
    except pa.ArrowInvalid:
        return None
    if summed:
        bounds = pc.min_max(numbers)
        if bounds["min"].as_py() < -MOST or bounds["max"].as_py() > MOST:
            return None
    return numbers
