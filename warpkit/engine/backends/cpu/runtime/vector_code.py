"""Code written instruction by instruction, for kernels on vectors of sixteen numbers.

Numba has no such vectors, and takes seconds to infer types that are known here. So the functions
that write a kernel run once, when it is compiled: a `Value` stands for a number or a vector that
the kernel will hold, and Python's operators on it append instructions. Python's own numbers, loops
and conditions are decided on the spot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from warpkit.engine.backends.cpu.runtime.vector_values import (
    BIT,
    DOUBLE,
    FLOAT,
    INDEX,
    INT,
    Memory,
    Value,
    Variable,
    element_of,
    vector,
)


class Code:
    """Where instructions are appended."""

    def __init__(self, context: Any, builder: Any) -> None:
        self.context, self.builder = context, builder

    def constant(self, kind: Any, value: Any) -> Value:
        """A Python number as one of a type; a number of the kernel as a vector of it."""
        count = kind.count if isinstance(kind, ir.VectorType) else 1
        if not isinstance(value, Value):
            raw = element_of(kind)(value)
            return Value(self, ir.Constant(kind, [raw] * count) if count > 1 else raw)
        if count == 1 or isinstance(value.raw.type, ir.VectorType):
            return value
        lanes = self.builder.insert_element(ir.Constant(kind, ir.Undefined), value.raw, INT(0))
        return Value(
            self,
            self.builder.shuffle_vector(lanes, lanes, ir.Constant(vector(INT, count), [0] * count)),
        )

    def to(self, element: Any, value: Value) -> Value:
        """A number or a vector in another type; floating ones are cut to whole ones."""
        old = element_of(value.raw.type)
        if old == element:
            return value
        kind = value.raw.type
        kind = vector(element, kind.count) if isinstance(kind, ir.VectorType) else element
        floats = (FLOAT, DOUBLE)
        if old in floats and element in floats:
            name = "fpext" if element == DOUBLE else "fptrunc"
        elif element in floats:
            name = "sitofp"
        elif old in floats:
            name = "fptosi"
        else:
            name = "trunc" if element.width < old.width else "zext" if old == BIT else "sext"
        return Value(self, getattr(self.builder, name)(value.raw, kind))

    def call(self, name: str, kind: Any, suffix: str, *raw: Any, returns: Any = None) -> Any:
        """One of LLVM's own functions, by the type that its name ends with."""
        count = f"v{kind.count}" if isinstance(kind, ir.VectorType) else ""
        element = element_of(kind)
        short = element.intrinsic_name if element in (FLOAT, DOUBLE) else f"i{element.width}"
        signature = ir.FunctionType(returns or kind, [value.type for value in raw])
        name = f"{name}.{count}{short}{suffix}"
        function = cgutils.get_or_insert_function(self.builder.module, signature, name)
        return self.builder.call(function, raw)

    def select(self, condition: Value, a: Any, b: Any) -> Value:
        """One of two, number by number."""
        kind = (a if isinstance(a, Value) else b).raw.type
        a, b = self.constant(kind, a), self.constant(kind, b)
        return Value(self, self.builder.select(condition.raw, a.raw, b.raw))

    def smaller(self, a: Value, b: Any) -> Value:
        """The smaller of two whole numbers."""
        return self.select(a < b, a, b)

    def larger(self, a: Value, b: Any) -> Value:
        """The larger one."""
        return self.select(a > b, a, b)

    def count_up(self, element: Any, count: int) -> Value:
        """0, 1, 2, ... as a vector."""
        return Value(self, ir.Constant(vector(element, count), [element(n) for n in range(count)]))

    def first(self, some: Value, count: int) -> Any:
        """The mask of the first `some` of `count` numbers."""
        return (
            self.count_up(INT, count) < self.constant(vector(INT, count), self.to(INT, some))
        ).raw

    def shuffle(self, a: Value, b: Value, order: Sequence[int]) -> Value:
        """The numbers of two vectors, counted through, in an order."""
        mask = ir.Constant(vector(INT, len(order)), list(order))
        return Value(self, self.builder.shuffle_vector(a.raw, b.raw, mask))

    def collect(self, numbers: Sequence[Value]) -> Value:
        """Single numbers, as many as a power of two, as a vector."""
        runs = []
        for begin in range(0, len(numbers), 4):  # in one chain each would pass through a register
            run = numbers[begin : begin + 4]
            raw = ir.Constant(vector(run[0].raw.type, len(run)), ir.Undefined)
            for n, number in enumerate(run):
                raw = self.builder.insert_element(raw, number.raw, INT(n))
            runs.append(Value(self, raw))
        return self.join(runs)

    def join(self, parts: Sequence[Value]) -> Value:
        """Vectors, as many as a power of two, behind each other."""
        parts = list(parts)
        while len(parts) > 1:
            count = parts[0].raw.type.count
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [self.shuffle(a, b, range(2 * count)) for a, b in pairs]
        return parts[0]

    def variable(self, value: Value) -> Variable:
        """One that begins as `value`."""
        return Variable(self, value)

    def memory(self, address: Value, element: Any, size: Value | int) -> Memory:
        """The memory at an address."""
        pointer = self.builder.inttoptr(address.raw, element.as_pointer())
        return Memory(self, pointer, element, size)

    def pick(self, condition: Value, a: Memory, b: Memory) -> Memory:
        """One of two memories of a type."""
        pointer = self.builder.select(condition.raw, a.pointer, b.pointer)
        return Memory(self, pointer, a.element, self.select(condition, a.size, b.size))

    @contextmanager
    def loop(self, begin: Any, end: Any, step: int = 1) -> Iterator[Value]:
        """for index in range(begin, end, step)."""
        builder = self.builder
        at = self.variable(self.constant(INDEX, begin))
        head, body, after = (builder.append_basic_block(n) for n in ("head", "body", "after"))
        builder.branch(head)
        builder.position_at_end(head)
        more = at.get() < self.constant(INDEX, end)
        builder.cbranch(more.raw, body, after)
        builder.position_at_end(body)
        index = at.get()
        yield index
        at.set(index + step)
        builder.branch(head)
        builder.position_at_end(after)

    @contextmanager
    def when(self, condition: Value) -> Iterator[None]:
        """if condition."""
        with self.builder.if_then(condition.raw):
            yield

    @contextmanager
    def either(self, condition: Value) -> Iterator[tuple[Any, Any]]:
        """if condition, and else: the two are context managers."""
        with self.builder.if_else(condition.raw) as branches:
            yield branches

    def write_row(self, out: Memory, to: Value, found: Value, left: Value) -> None:
        """Write what is `left` of a row, a vector at most."""
        with self.either(left >= found.raw.type.count) as (whole, part):
            with whole:
                out.store(to, found)
            with part:
                out.store_first(to, found, left)

    def fail_if(self, condition: Value) -> None:
        """An error of bounds."""
        with self.builder.if_then(condition.raw, likely=False):
            message = ("index out of bounds",)
            self.context.call_conv.return_user_exc(self.builder, IndexError, message)


class Parameters:
    """A call's numbers, in an array of int64, by their names."""

    def __init__(self, code: Code, numbers: Memory, names: Sequence[str]) -> None:
        self._code, self._numbers, self._names = code, numbers, names
        self._read: dict[str, Value] = {}

    def read_all(self) -> None:
        """Where the kernel begins, so that they are at hand everywhere."""
        for n, name in enumerate(self._names):
            self._read[name] = self._numbers.load(n)

    def __getattr__(self, name: str) -> Value:
        return self._read[name]


def written(write: Callable[..., None]) -> Any:
    """An intrinsic of Numba, called with (variant, parameters, begin, end), that is `write`.

    write(code, variant, numbers, begin, end): variant is an int known when the kernel is compiled;
    numbers the array of parameters, int64; begin, end the units to be done.
    """

    def declare(typing: Any, variant: Any, parameters: Any, begin: Any, end: Any) -> Any:
        if not isinstance(variant, types.Literal):
            return None

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            code = Code(context, builder)
            array = context.make_array(signature.args[1])(context, builder, args[1])
            numbers = Memory(
                code, array.data, INDEX, Value(code, builder.extract_value(array.shape, 0))
            )
            write(code, variant.literal_value, numbers, Value(code, args[2]), Value(code, args[3]))
            return context.get_dummy_value()

        return types.void(variant, parameters, types.intp, types.intp), generate

    declare.__name__ = declare.__qualname__ = write.__name__
    declare.__doc__ = write.__doc__
    return intrinsic(prefer_literal=True)(declare)
