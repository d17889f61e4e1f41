"""Vectors of VECTOR numbers: a weighted sum kept in registers, and a square of them turned.

What LLVM does not find by itself in loops over arrays. Products and sums are rounded one by one.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from warpkit.engine.backends.cpu.runtime import simd
from warpkit.engine.backends.cpu.runtime.simd import instruction

VECTOR = 16
"""Numbers of a vector, and rows that are turned on their side together."""

INDEX = ir.IntType(32)


def _pointer(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> tuple[Any, int]:
    """The address of array[index : index + VECTOR] as one of a vector, and an element's size."""
    signature = types.void(kind, types.intp)
    place = simd.address(context, builder, signature, (array, index), VECTOR)
    element = context.get_value_type(kind.dtype)
    pointer = builder.bitcast(place, ir.VectorType(element, VECTOR).as_pointer())
    return pointer, context.get_abi_sizeof(element)


def _load(context: Any, builder: Any, kind: Any, array: Any, index: Any, wanted: types.Type) -> Any:
    """array[index : index + VECTOR] as numbers of the type `wanted`."""
    pointer, align = _pointer(context, builder, kind, array, index)
    values, source = builder.load(pointer, align=align), kind.dtype
    target = ir.VectorType(context.get_value_type(wanted), VECTOR)
    if source == wanted:
        return values
    if isinstance(wanted, types.Integer):
        return (builder.sext if source.signed else builder.zext)(values, target)
    if isinstance(source, types.Integer):
        return (builder.sitofp if source.signed else builder.uitofp)(values, target)  # pyright: ignore
    narrow = source == types.float32  # the other one is float64
    return (builder.fpext if narrow else builder.fptrunc)(values, target)


def _element(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    made = context.make_array(kind)(context, builder, array)
    return builder.load(builder.gep(made.data, [index]))


@instruction
def weigh(
    typing: Any, source: Any, base: Any, stride: Any, pixel: Any, weight: Any,
    begin: Any, end: Any, out: Any, at: Any,
) -> Any:  # fmt: skip
    """out[at : at + VECTOR] = sum of weight[k] * source[base + pixel[k] * stride : ...].

    k from begin to end, in this order; 0 where there is none.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source, base, stride, pixel, weight, begin, end, out, at = args
        kinds = signature.args
        whole = [context.cast(builder, args[n], kinds[n], types.intp) for n in (1, 2, 5, 6, 8)]
        base, stride, begin, end, at = whole
        wanted = kinds[4].dtype
        element = context.get_value_type(wanted)
        vector, fixed = (
            ir.VectorType(element, VECTOR),
            isinstance(wanted, types.Integer),
        )
        if fixed:
            initial = ir.Constant(vector, [0] * VECTOR)
        else:  # -0 + x is x, of either sign; and 0 where nothing is added
            zero, minus = (ir.Constant(vector, [z] * VECTOR) for z in (0.0, -0.0))
            initial = builder.select(builder.icmp_signed("<", begin, end), minus, zero)
        total = cgutils.alloca_once(builder, vector)
        builder.store(initial, total)
        with cgutils.for_range(builder, end, start=begin) as loop:
            k = loop.index
            column = _element(context, builder, kinds[3], pixel, k)
            column = context.cast(builder, column, kinds[3].dtype, types.intp)
            place = builder.add(base, builder.mul(column, stride))
            values = _load(context, builder, kinds[0], source, place, wanted)
            by = simd.splat(builder, _element(context, builder, kinds[4], weight, k), VECTOR)
            before = builder.load(total)
            if fixed:
                builder.store(builder.add(before, builder.mul(values, by)), total)
            else:
                builder.store(builder.fadd(before, builder.fmul(values, by)), total)
        pointer, align = _pointer(context, builder, kinds[7], out, at)
        builder.store(builder.load(total), pointer, align=align)
        return context.get_dummy_value()

    args = (source, base, stride, pixel, weight, begin, end, out, at)
    return types.void(*args), generate


@instruction
def turn_square(
    typing: Any, source: Any, base: Any, line: Any, rows: Any, first: Any, out: Any, at: Any
) -> Any:
    """out[at + VECTOR * e + r] = source[base + line * rows[first + r] + e], VECTOR of r and of e.

    Zipping the upper half of the rows with the lower one, four times, transposes 16 of them.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kinds = signature.args
        base, line, first, at = (
            context.cast(builder, args[n], kinds[n], types.intp) for n in (1, 2, 4, 6)
        )
        vectors = []
        for r in range(VECTOR):
            number = builder.add(first, ir.Constant(first.type, r))
            row = _element(context, builder, kinds[3], args[3], number)
            row = context.cast(builder, row, kinds[3].dtype, types.intp)
            place = builder.add(base, builder.mul(line, row))
            vectors.append(_load(context, builder, kinds[0], args[0], place, kinds[5].dtype))
        half = VECTOR // 2
        lower = [n // 2 + VECTOR * (n % 2) for n in range(VECTOR)]
        masks = [
            ir.Constant(ir.VectorType(INDEX, VECTOR), [n + shift for n in lower])
            for shift in (0, half)
        ]
        for _ in range(4):
            vectors = [
                builder.shuffle_vector(vectors[n], vectors[n + half], mask)
                for n in range(half)
                for mask in masks
            ]
        for e, vector in enumerate(vectors):
            place = builder.add(at, ir.Constant(at.type, VECTOR * e))
            pointer, align = _pointer(context, builder, kinds[5], args[5], place)
            builder.store(vector, pointer, align=align)
        return context.get_dummy_value()

    return types.void(source, base, line, rows, first, out, at), generate
