"""Native functions around kernels, in LLVM's language, that Python calls without Numba.

The function of a kernel has the signature of a built-in function (``METH_FASTCALL``). It checks each argument by
itself, reads the address and shape of arrays from NumPy's public structure, calls the kernel, and makes Python objects
of its results. An argument of any other type, a view with strides, another byte order, a read-only array that the
kernel writes to: for all these, it calls `self`, which is the `Kernel` that Numba compiles.

Functions of Python's C API are called through a table of addresses in the object itself (`interpreter.py`), so an
object has no symbols to resolve but those of the C library.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.np import arrayobj
from numba.np.numpy_support import as_dtype

from coprlake.native.argument_types import UnsupportedSignatureError
from coprlake.native.interpreter import (
    ALIGNED,
    ARRAY_DATA,
    ARRAY_FLAGS,
    ARRAY_NDIM,
    ARRAY_SHAPE,
    ARRAY_TYPE,
    C_CONTIGUOUS,
    IS_TUPLE,
    OBJECT_TYPE,
    SCALAR_VALUE,
    SLOTS,
    TYPE_BYTE_ORDER,
    TYPE_NUMBER,
    WRITEABLE,
)

_BYTE: Final = ir.IntType(8)
_I32: Final = ir.IntType(32)
_I64: Final = ir.IntType(64)
_DOUBLE: Final = ir.DoubleType()
_PLACE: Final = _BYTE.as_pointer()
_NATIVE: Final = tuple(b"=|")
"""The byte orders of a type that is this machine's own, or has none."""


@dataclass(frozen=True)
class Variant:
    """A compiled form of a kernel: Numba's result, and whether it may write to each array, in order of the arrays."""

    compiled: Any
    writes: tuple[bool, ...]


class Wrapper:
    """Writes the function of one kernel into a module."""

    def __init__(self, context: Any, module: Any, table: Any, symbol: str) -> None:
        """`table` is the module's variable with the addresses of `SLOTS`."""
        self.context = context
        self.module = module
        self.table = table
        kind = ir.FunctionType(_PLACE, [_PLACE, _PLACE.as_pointer(), _I64])
        self.function = ir.Function(module, kind, symbol)
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.fallback = self.function.append_basic_block("fallback")
        self.refused = self.fallback
        self.overflow = self.builder.alloca(_I32)

    def write(self, variants: list[Variant], *, releases_lock: bool) -> None:
        """The whole function: the first variant that the arguments fit is called, or else the fallback."""
        builder = self.builder
        count = len(variants[0].compiled.signature.args)
        first = self.function.append_basic_block("variant")
        builder.cbranch(builder.icmp_signed("==", self.function.args[2], _I64(count)), first, self.fallback)
        for number, variant in enumerate(variants):
            builder.position_at_end(first)
            last = number + 1 == len(variants)
            first = self.fallback if last else self.function.append_basic_block("variant")
            self.refused = first
            self._write_variant(variant, releases_lock)
        builder.position_at_end(self.fallback)
        own, arguments, given = self.function.args
        kind = ir.FunctionType(_PLACE, [_PLACE, _PLACE.as_pointer(), _I64, _PLACE])
        builder.ret(builder.call(self._slot("PyObject_Vectorcall", kind), [own, arguments, given, _PLACE(None)]))

    def _write_variant(self, variant: Variant, releases_lock: bool) -> None:
        builder = self.builder
        signature = variant.compiled.signature
        writes = iter(variant.writes)
        values = []
        for number, kind in enumerate(signature.args):
            place = builder.load(builder.gep(self.function.args[1], [_I64(number)]))
            values.append(self._unpacked(place, kind, writes))
        called = self.context.declare_function(self.module, variant.compiled.fndesc)
        thread = self._call("PyEval_SaveThread", _PLACE) if releases_lock else None
        convention = self.context.call_conv
        status, result = convention.call_function(builder, called, signature.return_type, signature.args, values)
        if releases_lock:
            self._call("PyEval_RestoreThread", ir.VoidType(), thread)
        with builder.if_then(status.is_error, likely=False):
            builder.branch(self.fallback)  # compiled by Numba, it says what was wrong
        builder.ret(self._boxed(result, signature.return_type))

    # Arguments

    def _unpacked(self, place: Any, kind: Any, writes: Any) -> Any:
        """The value of a Python object as the kernel takes it; leaves for `refused` if it is not of this kind."""
        if isinstance(kind, types.Array):
            return self._array(place, kind, next(writes))
        if isinstance(kind, types.BaseTuple):
            return self._tuple(place, kind, writes)
        if isinstance(kind, types.Boolean):
            is_true = self._is(place, "True")
            self._demand(self.builder.or_(is_true, self._is(place, "False")))
            return is_true
        if kind == types.int64:
            return self._signed(place)
        if kind == types.float64:
            self._demand(self._is_a(place, "float"))
            return self._field(place, SCALAR_VALUE, _DOUBLE)
        name = str(kind)
        if name not in ("uint8", "uint16", "uint32", "uint64", "int32"):
            raise UnsupportedSignatureError(f"no arguments of type {kind}")
        self._demand(self._is_a(place, name))
        return self._field(place, SCALAR_VALUE, ir.IntType(kind.bitwidth))

    def _signed(self, place: Any) -> Any:
        """An `int` that fits 64 bits, or an `np.int64`."""
        builder = self.builder
        of_python = self.function.append_basic_block("int")
        of_numpy = self.function.append_basic_block("int64")
        joined = self.function.append_basic_block("number")
        builder.cbranch(self._is_a(place, "int"), of_python, of_numpy)
        builder.position_at_end(of_python)
        pointer = self.overflow
        number = self._call("PyLong_AsLongLongAndOverflow", _I64, place, pointer)
        self._demand(builder.icmp_signed("==", builder.load(pointer), _I32(0)))
        of_python = builder.block
        builder.branch(joined)
        builder.position_at_end(of_numpy)
        self._demand(self._is_a(place, "int64"))
        scalar = self._field(place, SCALAR_VALUE, _I64)
        of_numpy = builder.block
        builder.branch(joined)
        builder.position_at_end(joined)
        value = builder.phi(_I64)
        value.add_incoming(number, of_python)
        value.add_incoming(scalar, of_numpy)
        return value

    def _tuple(self, place: Any, kind: Any, writes: Any) -> Any:
        """A tuple, also a named one, of the right length."""
        builder = self.builder
        flags = self._call("PyType_GetFlags", _I64, self._field(place, OBJECT_TYPE, _PLACE))
        self._demand(builder.icmp_signed("!=", builder.and_(flags, _I64(IS_TUPLE)), _I64(0)))
        self._demand(builder.icmp_signed("==", self._call("PyTuple_Size", _I64, place), _I64(len(kind.types))))
        values = []
        for number, member in enumerate(kind.types):
            values.append(self._unpacked(self._call("PyTuple_GetItem", _PLACE, place, _I64(number)), member, writes))
        return self.context.make_tuple(builder, kind, values)

    def _array(self, place: Any, kind: Any, is_written: bool) -> Any:
        """An array of exactly this type in one piece, in the byte order of this machine."""
        builder = self.builder
        self._demand(self._is_a(place, "ndarray"))
        self._demand(builder.icmp_signed("==", self._field(place, ARRAY_NDIM, _I32), _I32(kind.ndim)))
        flags = _I32(C_CONTIGUOUS | ALIGNED | (WRITEABLE if is_written else 0))
        found = builder.and_(self._field(place, ARRAY_FLAGS, _I32), flags)
        self._demand(builder.icmp_signed("==", found, flags))
        described = self._field(place, ARRAY_TYPE, _PLACE)
        dtype = np.dtype(as_dtype(kind.dtype))
        number = self._field(described, TYPE_NUMBER, _I32)
        self._demand(builder.icmp_signed("==", number, _I32(dtype.num)))
        order = self._field(described, TYPE_BYTE_ORDER, _BYTE)
        is_native = [builder.icmp_signed("==", order, _BYTE(byte)) for byte in _NATIVE]
        self._demand(builder.or_(*is_native))
        lengths = self._field(place, ARRAY_SHAPE, _I64.as_pointer())
        shape = [builder.load(builder.gep(lengths, [_I64(axis)])) for axis in range(kind.ndim)]
        strides = [_I64(dtype.itemsize)]
        for length in reversed(shape[1:]):
            strides.insert(0, builder.mul(strides[0], length))
        array = arrayobj.make_array(kind)(self.context, builder)
        data = builder.bitcast(self._field(place, ARRAY_DATA, _PLACE), array.data.type)
        size = _I64(dtype.itemsize)
        arrayobj.populate_array(array, data=data, shape=shape, strides=strides, itemsize=size, meminfo=None)
        return array._getvalue()

    # Results

    def _boxed(self, value: Any, kind: Any) -> Any:
        """A Python object with the value, as Numba makes it."""
        builder = self.builder
        if isinstance(kind, types.NoneType):
            return self._shared(self._slot("None", _BYTE))
        if isinstance(kind, types.Boolean):
            return self._shared(builder.select(value, self._slot("True", _BYTE), self._slot("False", _BYTE)))
        if isinstance(kind, types.Integer) and kind.signed:
            return self._call("PyLong_FromLongLong", _PLACE, self.context.cast(builder, value, kind, types.int64))
        if isinstance(kind, types.Integer):
            wide = self.context.cast(builder, value, kind, types.uint64)
            return self._call("PyLong_FromUnsignedLongLong", _PLACE, wide)
        if kind == types.float64:
            return self._call("PyFloat_FromDouble", _PLACE, value)
        if isinstance(kind, types.UniTuple | types.Tuple):
            members = [self._boxed(builder.extract_value(value, n), of) for n, of in enumerate(kind.types)]
            made = self._call("PyTuple_New", _PLACE, _I64(len(members)))
            for number, member in enumerate(members):
                self._call("PyTuple_SetItem", _I32, made, _I64(number), member)  # which takes the reference
            return made
        raise UnsupportedSignatureError(f"no results of type {kind}")

    def _shared(self, place: Any) -> Any:
        self._call("Py_IncRef", ir.VoidType(), place)
        return place

    # Building blocks

    def _demand(self, condition: Any) -> None:
        """Go on if it holds, else leave for the next variant or the fallback."""
        fits = self.function.append_basic_block("fits")
        self.builder.cbranch(condition, fits, self.refused)
        self.builder.position_at_end(fits)

    def _field(self, place: Any, offset: int, kind: Any) -> Any:
        """What a structure has at an offset."""
        field = self.builder.gep(place, [_I64(offset)])
        return self.builder.load(self.builder.bitcast(field, kind.as_pointer()))

    def _slot(self, name: str, kind: Any) -> Any:
        """An address of the table, as a pointer to `kind`."""
        place = cgutils.gep_inbounds(self.builder, self.table, 0, SLOTS.index(name))
        return self.builder.bitcast(self.builder.load(place), kind.as_pointer())

    def _is(self, place: Any, name: str) -> Any:
        return self.builder.icmp_unsigned("==", place, self._slot(name, _BYTE))

    def _is_a(self, place: Any, name: str) -> Any:
        return self._is(self._field(place, OBJECT_TYPE, _PLACE), name)

    def _call(self, name: str, result: Any, *arguments: Any) -> Any:
        kind = ir.FunctionType(result, [argument.type for argument in arguments])
        return self.builder.call(self._slot(name, kind), list(arguments))
