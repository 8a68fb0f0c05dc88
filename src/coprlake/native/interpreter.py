"""The interpreter and NumPy as native code sees them: addresses of functions, and offsets in structures.

The offsets are those of the public structures of CPython with an interpreter lock and of NumPy 2. `is_as_expected`
compares them with real objects before anything relies on them.
"""

import ctypes
import sys
from typing import Any, Final

import numpy as np

OBJECT_TYPE: Final = 8
SCALAR_VALUE: Final = 16  # of NumPy's scalars, and of `float`
ARRAY_DATA: Final = 16
ARRAY_NDIM: Final = 24
ARRAY_SHAPE: Final = 32
ARRAY_TYPE: Final = 56
ARRAY_FLAGS: Final = 64
TYPE_BYTE_ORDER: Final = 26
TYPE_NUMBER: Final = 28

C_CONTIGUOUS: Final = 0x1
ALIGNED: Final = 0x100
WRITEABLE: Final = 0x400
IS_TUPLE: Final = 1 << 26  # in the flags of a class

_FUNCTIONS: Final = (
    "PyEval_RestoreThread",
    "PyEval_SaveThread",
    "PyFloat_FromDouble",
    "PyLong_AsLongLongAndOverflow",
    "PyLong_FromLongLong",
    "PyLong_FromUnsignedLongLong",
    "PyObject_Vectorcall",
    "PyTuple_GetItem",
    "PyTuple_New",
    "PyTuple_SetItem",
    "PyTuple_Size",
    "PyType_GetFlags",
    "Py_IncRef",
)
_OBJECTS: Final[dict[str, Any]] = {
    "None": None,
    "True": True,
    "False": False,
    "int": int,
    "float": float,
    "ndarray": np.ndarray,
    "int32": np.int32,
    "int64": np.int64,
    "uint8": np.uint8,
    "uint16": np.uint16,
    "uint32": np.uint32,
    "uint64": np.uint64,
}
SLOTS: Final = (*_FUNCTIONS, *_OBJECTS)
"""What the table of each object contains, in order."""


def addresses() -> "ctypes.Array[ctypes.c_void_p]":
    """The addresses of `SLOTS` in this process."""
    functions = [ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in _FUNCTIONS]
    return (ctypes.c_void_p * len(SLOTS))(*functions, *(id(value) for value in _OBJECTS.values()))


def is_as_expected() -> bool:
    """Whether the objects of this interpreter and of this NumPy are laid out as native code expects."""
    if sys.implementation.name != "cpython" or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return False
    array = np.arange(6, dtype=np.int64).reshape(2, 3)
    frozen = np.frombuffer(b"\x01\x02\x03", np.uint8)
    swapped = np.zeros(2, np.dtype(np.uint32).newbyteorder())
    return (
        all(_is_array_as_expected(each) for each in (array, frozen, swapped, array[:, 1], np.zeros(1, np.bool_)))
        and all(_at(kind(7), SCALAR_VALUE, np.dtype(kind).itemsize) == 7 for kind in _scalars())
        and _at(2.5, SCALAR_VALUE, 8) == np.float64(2.5).view(np.int64)
        and _flags_of_class(tuple) & IS_TUPLE != 0
        and _flags_of_class(int) & IS_TUPLE == 0
    )


def _scalars() -> list[Any]:
    return [value for name, value in _OBJECTS.items() if name.startswith(("int3", "int6", "uint"))]


def _is_array_as_expected(array: Any) -> bool:
    flags = array.flags
    expected = C_CONTIGUOUS * flags.c_contiguous | ALIGNED * flags.aligned | WRITEABLE * flags.writeable
    described, shape = _at(array, ARRAY_TYPE, 8), _at(array, ARRAY_SHAPE, 8)
    lengths = (ctypes.c_ssize_t * array.ndim).from_address(shape)
    return (
        _at(array, OBJECT_TYPE, 8) == id(np.ndarray)
        and _at(array, ARRAY_DATA, 8) == array.ctypes.data
        and _at(array, ARRAY_NDIM, 4) == array.ndim
        and tuple(lengths) == array.shape
        and described == id(array.dtype)
        and _at(array, ARRAY_FLAGS, 4) & (C_CONTIGUOUS | ALIGNED | WRITEABLE) == expected
        and _at(array.dtype, TYPE_NUMBER, 4) == array.dtype.num
        and chr(_at(array.dtype, TYPE_BYTE_ORDER, 1)) == array.dtype.byteorder
    )


def _at(value: Any, offset: int, byte_count: int) -> int:
    return int.from_bytes(ctypes.string_at(id(value) + offset, byte_count), sys.byteorder)


def _flags_of_class(kind: type) -> int:
    return kind.__flags__
