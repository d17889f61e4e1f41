"""Neighbouring bytes as one word: an 8-bit pixel is read and written at once.

Loads and stores are checked where Numba checks bounds.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from warpkit.engine.backends.cpu.runtime.simd import address, instruction


def _pointer(context: Any, builder: Any, signature: Any, args: Any, size: int) -> Any:
    """The address of the bytes array[index : index + size] as a pointer to one word."""
    place = address(context, builder, signature, args, size)
    return builder.bitcast(place, ir.IntType(8 * size).as_pointer())


def _load(kind: Any, size: int, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        # an empty instruction that keeps loops scalar: gathers are slower than loads
        builder.asm(ir.FunctionType(ir.VoidType(), []), "", "", [], side_effect=True)
        return builder.load(_pointer(context, builder, signature, args, size), align=1)

    return kind(array, index), generate


@instruction
def load_word2(typing: Any, array: Any, index: Any) -> Any:
    """Two bytes from array[index] on, the first one lowest."""
    return _load(types.uint16, 2, array, index)


@instruction
def load_word8(typing: Any, array: Any, index: Any) -> Any:
    """Eight bytes from array[index] on, the first one lowest."""
    return _load(types.uint64, 8, array, index)


@instruction
def store_word4(typing: Any, array: Any, index: Any, word: Any) -> Any:
    """Write four bytes from array[index] on, the lowest one first."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, signature, args, 4)
        word = context.cast(builder, args[2], signature.args[2], types.uint32)
        builder.store(word, pointer, align=1)
        return context.get_dummy_value()

    return types.void(array, index, word), generate


@instruction
def fma(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """a b + c in float32 with one rounding."""
    kind = types.float32

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        single = ir.FloatType()
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(single, [single] * 3), "llvm.fma.f32"
        )
        return builder.call(function, args)

    return kind(kind, kind, kind), generate
