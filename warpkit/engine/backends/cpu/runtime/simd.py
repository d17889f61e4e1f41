"""Four lanes: the channels of one pixel as one vector register.

A gather instruction fetches one value a cycle at best, and on some CPUs a third of that; four
channels that lie side by side come in one load. So windows keep four channels a pixel, and these
are the operations on them. Loads and stores are checked where Numba checks bounds.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic, models, register_model

CHANNELS_PER_VECTOR = 4

instruction: Any = intrinsic
"""For type checkers: the functions below are called without their first argument."""


class Lanes(types.Type):
    """Four values of one floating type."""

    def __init__(self, dtype: types.Type) -> None:
        self.dtype = dtype
        super().__init__(name=f"Lanes({dtype})")


@register_model(Lanes)
class LanesModel(models.PrimitiveModel):
    """An LLVM vector."""

    def __init__(self, manager: Any, kind: Lanes) -> None:
        element = manager.lookup(kind.dtype).get_value_type()
        super().__init__(manager, kind, ir.VectorType(element, CHANNELS_PER_VECTOR))


def address(context: Any, builder: Any, signature: Any, args: Any, count: int) -> Any:
    """The address of array[index : index + count]; the array and the index are the first `args`."""
    array = context.make_array(signature.args[0])(context, builder, args[0])
    index = context.cast(builder, args[1], signature.args[1], types.intp)
    if config.BOUNDSCHECK:  # pyright: ignore
        end = builder.extract_value(array.shape, 0)
        after = builder.add(index, ir.Constant(index.type, count))
        bad = builder.or_(
            builder.icmp_signed("<", index, ir.Constant(index.type, 0)),
            builder.icmp_signed(">", after, end),
        )
        with builder.if_then(bad, likely=False):
            message = ("index out of bounds",)
            context.call_conv.return_user_exc(builder, IndexError, message)
    return builder.gep(array.data, [index])


def _pointer(context: Any, builder: Any, signature: Any, args: Any) -> tuple[Any, Any]:
    """The address of array[index] as a pointer to lanes, and the alignment of one element."""
    element = context.get_value_type(signature.args[0].dtype)
    lanes = ir.VectorType(element, CHANNELS_PER_VECTOR).as_pointer()
    place = address(context, builder, signature, args, CHANNELS_PER_VECTOR)
    return builder.bitcast(place, lanes), context.get_abi_sizeof(element)


@instruction
def load4(typing: Any, array: Any, index: Any) -> Any:
    """array[index : index + 4] as lanes."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer, align = _pointer(context, builder, signature, args)
        return builder.load(pointer, align=align)

    return Lanes(array.dtype)(array, index), generate


@instruction
def store4(typing: Any, array: Any, index: Any, lanes: Any) -> Any:
    """array[index : index + 4] = lanes."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer, align = _pointer(context, builder, signature, args)
        builder.store(args[2], pointer, align=align)
        return context.get_dummy_value()

    return types.void(array, index, lanes), generate


@instruction
def pack4(typing: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """Four values of one type as lanes."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lanes = ir.Constant(context.get_value_type(signature.return_type), ir.Undefined)
        for n, value in enumerate(args):
            lanes = builder.insert_element(lanes, value, ir.Constant(ir.IntType(32), n))
        return lanes

    return Lanes(a)(a, a, a, a), generate


def splat(builder: Any, value: Any, count: int = CHANNELS_PER_VECTOR) -> Any:
    """A vector of one value."""
    kind, index = ir.VectorType(value.type, count), ir.IntType(32)
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.Constant(index, 0))
    zeros = ir.Constant(ir.VectorType(index, count), [0] * count)
    return builder.shuffle_vector(first, first, zeros)


def _fmuladd(builder: Any, a: Any, b: Any, c: Any) -> Any:
    name = f"llvm.fmuladd.v{CHANNELS_PER_VECTOR}{a.type.element.intrinsic_name}"
    signature = ir.FunctionType(a.type, [a.type] * 3)
    function = cgutils.get_or_insert_function(builder.module, signature, name)
    return builder.call(function, [a, b, c])


@instruction
def add4(typing: Any, weight: Any, lanes: Any, total: Any) -> Any:
    """total + weight * lanes, rounded once where the CPU can."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _fmuladd(builder, splat(builder, args[0]), args[1], args[2])

    return lanes(lanes.dtype, lanes, lanes), generate


@instruction
def prefetch(typing: Any, array: Any, index: Any) -> Any:
    """Ask for the cache line of array[index], which may lie anywhere."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        address = builder.bitcast(builder.gep(data, [args[1]]), byte)
        read, near, data_cache = (ir.Constant(word, n) for n in (0, 3, 1))
        builder.call(function, [address, read, near, data_cache])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


def _choose(typing: Any, a: Any, b: Any, sign: str) -> Any:
    kind = typing.unify_types(types.unliteral(a), types.unliteral(b))

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x, y = (
            context.cast(builder, value, value_type, kind)
            for value, value_type in zip(args, signature.args, strict=True)
        )
        compare = builder.fcmp_ordered if isinstance(kind, types.Float) else builder.icmp_signed
        return builder.select(compare(sign, x, y), x, y)

    return kind(a, b), generate


@instruction
def min_signed(typing: Any, a: Any, b: Any) -> Any:
    """The smaller of two signed numbers; b where one is NaN."""
    return _choose(typing, a, b, "<")


@instruction
def max_signed(typing: Any, a: Any, b: Any) -> Any:
    """The larger of two signed numbers; b where one is NaN."""
    return _choose(typing, a, b, ">")
