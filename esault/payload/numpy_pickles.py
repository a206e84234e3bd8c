"""Ways in which pickles write what is NumPy's: as dtypes, shapes and bytes, which `rebuild` makes arrays of."""

from __future__ import annotations

from typing import Any

from esault.errors import PayloadError
from esault.payload import rebuild

__all__ = ["array", "dtype", "scalar", "view"]


def _dtype_name(dtype: Any) -> Any:
    if dtype.hasobject:
        raise PayloadError(
            "a NumPy array with objects among the fields of its dtype cannot travel; use a list of tuples"
        )
    if dtype.subdtype is not None:
        raise PayloadError("a dtype that is an array itself cannot travel; use an array of more dimensions")
    if dtype.names is None:
        name = dtype.str
        if not rebuild._SIMPLE.fullmatch(name):
            raise PayloadError(f"a NumPy array of dtype {dtype} cannot travel; use .tolist()")
        return name
    if dtype.isalignedstruct or dtype.itemsize != sum(field[0].itemsize for field in dtype.fields.values()):
        raise PayloadError(
            "a dtype with gaps between its fields cannot travel; use numpy.lib.recfunctions.repack_fields"
        )
    return tuple(
        [
            (name, _dtype_name(field.base), field.shape)
            for name, field in ((name, dtype.fields[name][0]) for name in dtype.names)
        ]
    )


def dtype(thing: Any) -> Any:
    """Return the way to write a dtype. Raises PayloadError, as all here do."""
    return (rebuild.dtype_of, (_dtype_name(thing),))


def array(thing: Any) -> Any:
    """Return the way to write an array by itself."""
    if thing.dtype == object:
        return rebuild.object_array, (thing.shape, thing.ravel().tolist())
    fortran = thing.flags.f_contiguous and not thing.flags.c_contiguous
    order = "F" if fortran else "C"
    return rebuild.array, (_dtype_name(thing.dtype), thing.shape, order, thing.tobytes(order=order))


def view(thing: Any, attributes: dict[str, Any]) -> Any:
    """Return the way to write an array that shares its memory with another attribute, so that it does so where it is read; None: it shares none.

    What they share is written once. It may be no attribute itself, as behind `zeros(6).reshape(2, 3)`; then it is written where it is
    not much more than what is seen of it.
    """
    base = thing.base
    if type(base) is not type(thing) or base.base is not None or thing.dtype.hasobject or base.dtype.hasobject:
        return None
    arrays = [each for each in attributes.values() if type(each) is type(base)]
    if not any(each is base for each in arrays):
        views = [each for each in arrays if each.base is base]
        if len(views) < 2 or base.nbytes > 2 * sum(each.nbytes for each in views):
            return None
    if not base.flags.c_contiguous:
        return None
    first, at = (each.__array_interface__["data"][0] for each in (base, thing))
    return rebuild.array_view, (base, _dtype_name(thing.dtype), thing.shape, thing.strides, at - first)


def scalar(thing: Any) -> Any:
    """Return the way to write a scalar."""
    return rebuild.scalar, (_dtype_name(thing.dtype), thing.tobytes())
