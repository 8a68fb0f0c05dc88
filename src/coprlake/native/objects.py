"""Objects of kernels: compiled by Numba, with the function that Python calls around them."""

from collections.abc import Iterator
from types import BuiltinFunctionType
from typing import Any, Final

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import compiler
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.cpu import CPUContext
from numba.core.dispatcher import Dispatcher

from coprlake.native.argument_types import signatures_of
from coprlake.native.interpreter import SLOTS
from coprlake.native.linking import TABLE, UnsupportedObjectError
from coprlake.native.numba_kernels import compile_for_objects, flags_for_objects
from coprlake.native.wrapping import Variant, Wrapper

_DATA_OF_ARRAY: Final = 4  # of Numba's arguments for an array: the address of its elements
_OTHERS_OF_ARRAY: Final = 5


class ObjectWriter:
    """Makes objects; Numba's results are kept, since kernels contain each other."""

    def __init__(self, written: dict[tuple[str, str], set[int]]) -> None:
        """`written` says which parameters a kernel may write to, by module and name."""
        self._written = written
        compile_for_objects()
        _make_no_machine_code()

    def object_of(self, function: Any, symbol: str) -> bytes:
        """An object with the native function of a kernel.

        Raises:
            UnsupportedSignatureError: it takes or returns what no native function can check.
            UnsupportedObjectError: it depends on addresses of this process.
        """
        kernel: Any = function.__self__ if isinstance(function, BuiltinFunctionType) else function
        with global_compiler_lock:
            variants = [self._variant(kernel, signature) for signature in signatures_of(kernel.function)]
            return self._linked(variants, symbol, releases_lock=bool(kernel.options.get("nogil")))

    def _variant(self, kernel: Any, signature: tuple[Any, ...]) -> Variant:
        dispatcher = kernel.dispatcher
        target = dispatcher.targetdescr
        flags = compiler.Flags()
        target.options.parse_as_flags(flags, dispatcher.targetoptions)
        flags = flags_for_objects(flags)
        made = compiler.compile_extra(
            target.typing_context, target.target_context, kernel.function,
            args=signature, return_type=None, flags=flags, locals={},
        )  # fmt: skip
        written = self._written[kernel.function.__module__, kernel.function.__name__]
        return Variant(made, tuple(_writes(made, written)))

    def _linked(self, variants: list[Variant], symbol: str, *, releases_lock: bool) -> bytes:
        target = variants[0].compiled.target_context
        codegen = target.codegen()
        library = codegen.create_library(symbol)
        module = library.create_ir_module(symbol)
        table = ir.GlobalVariable(module, ir.ArrayType(ir.IntType(8).as_pointer(), len(SLOTS)), TABLE)
        Wrapper(target, module, table, symbol).write(variants, releases_lock=releases_lock)
        library.add_ir_module(module)
        final = library._final_module
        for made in {id(variant.compiled.library): variant.compiled.library for variant in variants}.values():
            final.link_in(made._get_module_for_linking(), preserve=True)
        library._optimize_final_module()
        for variable in final.global_variables:
            if variable.name.startswith("numba.dynamic.globals"):
                raise UnsupportedObjectError("an array too large to be a constant")
            if variable.name == TABLE:
                variable.visibility = "hidden"  # addressed relative to the code
        final.verify()
        return bytes(_machine(codegen).emit_object(final))


def _make_no_machine_code() -> None:
    """Nothing is run in this process: Numba only types kernels and makes LLVM's code of them.

    Machine code of each kernel alone, which the others contain, would take half of the time of a build.
    """

    def add_overload(dispatcher: Any, made: Any) -> None:
        dispatcher.overloads[tuple(made.signature.args)] = made

    JITCodeLibrary._finalize_specific = lambda _library: None
    CPUContext.get_executable = lambda *_: object()  # by which its callers know it
    setattr(Dispatcher, "add_overload", add_overload)  # noqa: B010  # mypy takes no other method


def _machine(codegen: Any) -> Any:
    """Position-independent code for the processor that Numba compiles for."""
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=codegen._get_host_cpu_name(),
        features=codegen._get_host_cpu_features(),
        opt=3,
        reloc="pic",
        codemodel="small",
    )


def _writes(compiled: Any, written: set[int]) -> Iterator[bool]:
    """For each array, in order, whether the kernel may write to it: the source says so, and LLVM cannot disprove it."""
    function = compiled.library._final_module.get_function(compiled.fndesc.llvm_func_name)
    known = [set(argument.attributes) for argument in function.arguments][2:]  # after the results
    position = 0

    def walk(kind: Any, is_written: bool) -> Iterator[bool]:
        nonlocal position
        if isinstance(kind, types.BaseTuple):
            for member in kind.types:
                yield from walk(member, is_written)
        elif isinstance(kind, types.Array):
            yield is_written and not known[position + _DATA_OF_ARRAY] & {b"readonly", b"readnone"}
            position += _OTHERS_OF_ARRAY + 2 * kind.ndim
        else:
            position += 1

    for number, kind in enumerate(compiled.signature.args):
        yield from walk(kind, number in written)
    if position != len(known):
        raise UnsupportedObjectError("arguments are not passed as expected")
