"""The numbers, vectors and arrays of a kernel that `vector_code` writes.

Loads and stores are checked where Numba checks bounds.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, config

INT, INDEX, BIT = ir.IntType(32), ir.IntType(64), ir.IntType(1)
BYTE = ir.IntType(8)
FLOAT, DOUBLE = ir.FloatType(), ir.DoubleType()


def vector(element: Any, count: int) -> Any:
    """The type of so many numbers side by side."""
    return ir.VectorType(element, count)


def element_of(kind: Any) -> Any:
    """The type of a vector's numbers, or the type itself."""
    return kind.element if isinstance(kind, ir.VectorType) else kind


def size_of(element: Any) -> int:
    """Bytes of a number."""
    return {FLOAT: 4, DOUBLE: 8}.get(element) or element.width // 8


class Value:
    """A number or a vector of the kernel; `raw` is LLVM's name for it."""

    __slots__ = ("code", "raw")

    def __init__(self, code: Any, raw: Any) -> None:
        self.code, self.raw = code, raw

    def _both(
        self, other: Any, float_name: str, int_name: str, *sign: str, turn: bool = False
    ) -> Value:
        other = self.code.constant(self.raw.type, other)
        a, b = (other, self) if turn else (self, other)
        floating = element_of(self.raw.type) in (FLOAT, DOUBLE)
        build = getattr(self.code.builder, float_name if floating else int_name)
        return Value(self.code, build(*sign, a.raw, b.raw))

    def __add__(self, other: Any) -> Value:
        return self._both(other, "fadd", "add")

    def __radd__(self, other: Any) -> Value:
        return self._both(other, "fadd", "add")

    def __sub__(self, other: Any) -> Value:
        return self._both(other, "fsub", "sub")

    def __rsub__(self, other: Any) -> Value:
        return self._both(other, "fsub", "sub", turn=True)

    def __mul__(self, other: Any) -> Value:
        return self._both(other, "fmul", "mul")

    def __rmul__(self, other: Any) -> Value:
        return self._both(other, "fmul", "mul")

    def __truediv__(self, other: Any) -> Value:
        return self._both(other, "fdiv", "sdiv")

    def __floordiv__(self, other: Any) -> Value:
        """Of whole numbers, towards 0."""
        return self._both(other, "fdiv", "sdiv")

    def __mod__(self, other: Any) -> Value:
        """What `//` leaves."""
        return self._both(other, "frem", "srem")

    def __and__(self, other: Any) -> Value:
        return self._both(other, "", "and_")

    def __or__(self, other: Any) -> Value:
        return self._both(other, "", "or_")

    def __rshift__(self, other: Any) -> Value:
        """Of whole numbers, the sign kept."""
        return self._both(other, "", "ashr")

    def __invert__(self) -> Value:
        return Value(self.code, self.code.builder.not_(self.raw))

    def __lt__(self, other: Any) -> Value:
        return self._both(other, "fcmp_ordered", "icmp_signed", "<")

    def __le__(self, other: Any) -> Value:
        return self._both(other, "fcmp_ordered", "icmp_signed", "<=")

    def __gt__(self, other: Any) -> Value:
        return self._both(other, "fcmp_ordered", "icmp_signed", ">")

    def __ge__(self, other: Any) -> Value:
        return self._both(other, "fcmp_ordered", "icmp_signed", ">=")

    def __eq__(self, other: Any) -> Value:  # pyright: ignore
        return self._both(other, "fcmp_ordered", "icmp_signed", "==")

    def __ne__(self, other: Any) -> Value:  # pyright: ignore
        return self._both(other, "fcmp_unordered", "icmp_signed", "!=")

    __hash__ = None  # pyright: ignore


class Variable:
    """A number or a vector that changes."""

    def __init__(self, code: Any, value: Value) -> None:
        self.code = code
        self.place = cgutils.alloca_once(code.builder, value.raw.type)
        self.set(value)

    def get(self) -> Value:
        """Its value now."""
        return Value(self.code, self.code.builder.load(self.place))

    def set(self, value: Value) -> None:
        """Give it another."""
        self.code.builder.store(value.raw, self.place)


class Memory:
    """Numbers of one type that lie one after the other."""

    def __init__(self, code: Any, pointer: Any, element: Any, size: Value | int) -> None:
        self.code, self.pointer, self.element = code, pointer, element
        self.size = code.constant(INDEX, size)

    def _place(self, index: Value, kind: Any, count: int, check: bool) -> tuple[Any, int]:
        code = self.code
        index = code.to(INDEX, index)
        if check and config.BOUNDSCHECK:  # pyright: ignore
            code.fail_if((index < 0) | (index + count > self.size))
        place = code.builder.gep(self.pointer, [index.raw])
        return code.builder.bitcast(place, kind.as_pointer()), size_of(self.element)

    def since(self, index: Value) -> Memory:
        """The numbers from an index on."""
        pointer = self.code.builder.gep(self.pointer, [index.raw])
        return Memory(self.code, pointer, self.element, self.size - index)

    def load(self, index: Any, count: int = 1) -> Value:
        """The number at an index, or a vector of the `count` from there on."""
        kind = vector(self.element, count) if count > 1 else self.element
        place, align = self._place(self.code.constant(INDEX, index), kind, count, True)
        return Value(self.code, self.code.builder.load(place, align=align))

    def load_word(self, index: Any) -> Value:
        """Four bytes of memory of bytes, the first one lowest."""
        place, _ = self._place(self.code.constant(INDEX, index), INT, 4, True)
        return Value(self.code, self.code.builder.load(place, align=1))

    def store(self, index: Any, value: Value) -> None:
        """Write a number or a vector."""
        kind, code = value.raw.type, self.code
        count = kind.count if isinstance(kind, ir.VectorType) else 1
        place, align = self._place(code.constant(INDEX, index), kind, count, True)
        code.builder.store(value.raw, place, align=align)

    def load_first(self, index: Value, count: int, some: Value) -> Value:
        """The first `some` (at least 1) of a vector; the others are 0, and not read."""
        code, kind = self.code, vector(self.element, count)
        if config.BOUNDSCHECK:  # pyright: ignore
            code.fail_if((index < 0) | (index + code.smaller(some, count) > self.size))
        place, align = self._place(index, kind, count, False)
        zero = ir.Constant(kind, None)
        raw = code.call(
            "llvm.masked.load", kind, ".p0", place, INT(align), code.first(some, count), zero
        )
        return Value(code, raw)

    def store_first(self, index: Value, value: Value, some: Value) -> None:
        """Write the first `some` (at least 1) of a vector."""
        code, kind = self.code, value.raw.type
        if config.BOUNDSCHECK:  # pyright: ignore
            code.fail_if((index < 0) | (index + code.smaller(some, kind.count) > self.size))
        place, align = self._place(index, kind, kind.count, False)
        code.call("llvm.masked.store", kind, ".p0", value.raw, place, INT(align),
                  code.first(some, kind.count), returns=ir.VoidType())  # fmt: skip
