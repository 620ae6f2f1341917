"""
What :mod:`logstore.segments.compiled.machine_words` is in compiled code; needs numba.

Each function returns what numba puts in the place of a call.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Neither says what types its functions have.
_numba: Any = import_module("numba")
binding: Any = import_module("llvmlite.binding")
ir: Any = import_module("llvmlite.ir")
types: Any = _numba.types
cgutils: Any = import_module("numba.core.cgutils")
intrinsic: Any = import_module("numba.extending").intrinsic

_BYTE, _LONG = ir.IntType(8), ir.IntType(64)
_LANES = ir.VectorType(_LONG, 2)
#: the polynomial of CRC-32 with its highest power
_POLYNOMIAL = 0x104C11DB7


def can_multiply() -> bool:
    """Tell whether code for this processor may multiply without carries."""
    if _numba.config.CPU_NAME is not None or _numba.config.CPU_FEATURES is not None:
        return False  # somebody wants code for another one
    return bool(binding.get_host_cpu_features().get("pclmul"))


def _place(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    """Return the address of a byte in an array."""
    return builder.gep(cgutils.create_struct_proxy(kind)(context, builder, array).data, [at])


def read_signed(bits: int) -> Any:
    """Return what reads a number of so many bits, the highest byte first."""
    wide = ir.IntType(bits)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _place(context, builder, signature.args[0], *arguments)
        value = builder.bswap(builder.load(builder.bitcast(place, wide.as_pointer()), align=1))
        return value if bits == 64 else builder.sext(value, _LONG)

    def read(typing: Any, source: Any, at: Any) -> Any:
        del typing, at
        return types.int64(source, types.int64), generate

    return intrinsic(read)


def read_word() -> Any:
    """Return what reads eight bytes, the first one lowest."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _place(context, builder, signature.args[0], *arguments)
        return builder.load(builder.bitcast(place, _LONG.as_pointer()), align=1)

    def read(typing: Any, source: Any, at: Any) -> Any:
        del typing, at
        return types.uint64(source, types.int64), generate

    return intrinsic(read)


def write_number(bits: int) -> Any:
    """Return what writes the lowest bits of a number, the highest byte first."""
    wide = ir.IntType(bits)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target, at, value = arguments
        place = _place(context, builder, signature.args[0], target, at)
        value = builder.bswap(value if bits == 64 else builder.trunc(value, wide))
        builder.store(value, builder.bitcast(place, wide.as_pointer()), align=1)
        return context.get_dummy_value()

    def write(typing: Any, target: Any, at: Any, value: Any) -> Any:
        del typing, at, value
        return types.void(target, types.int64, types.int64), generate

    return intrinsic(write)


def copy_bytes() -> Any:
    """Return what copies bytes from one array to another."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, start, size_bytes, target, at = arguments
        place = _place(context, builder, signature.args[0], source, start)
        end = _place(context, builder, signature.args[3], target, at)
        cgutils.raw_memcpy(builder, end, place, size_bytes, 1)
        return context.get_dummy_value()

    def copy(typing: Any, source: Any, start: Any, size_bytes: Any, target: Any, at: Any) -> Any:
        del typing, start, size_bytes, at
        number = types.int64
        return types.void(source, number, number, target, number), generate

    return intrinsic(copy)


def _power(exponent: int) -> int:
    """Return x to a power modulo the polynomial, its bits turned round, as a factor."""
    value = 1
    for _ in range(exponent):
        value <<= 1
        value ^= _POLYNOMIAL if value >> 32 else 0
    return int(f"{value:032b}"[::-1], 2) << 1


class _Folding:
    """The code of a checksum: what came before is multiplied past the bytes that follow."""

    def __init__(self, builder: Any, place: Any) -> None:
        self.builder, self.place = builder, place
        step = ir.FunctionType(_LANES, [_LANES, _LANES, _BYTE])
        self.multiply = cgutils.get_or_insert_function(builder.module, step, "llvm.x86.pclmulqdq")

    def load(self, step: Any) -> Any:
        """Return sixteen bytes."""
        place = self.builder.gep(self.place, [self.builder.mul(step, _LONG(16))])
        return self.builder.load(self.builder.bitcast(place, _LANES.as_pointer()), align=1)

    def fold(self, before: Any, distance: int, following: Any) -> Any:
        """Take sixteen bytes past so many others, onto those that stand there."""
        bits = 128 * distance
        factors = ir.Constant(_LANES, [_power(bits + 32), _power(bits - 32)])
        low = self.builder.call(self.multiply, [before, factors, _BYTE(0x00)])
        high = self.builder.call(self.multiply, [before, factors, _BYTE(0x11)])
        return self.builder.xor(self.builder.xor(low, high), following)

    def loop(self, first: Any, end: Any, states: list[Any], distance: int) -> list[Any]:
        """Fold from step `first` on, as many at once as there are states, before `end`."""
        builder = self.builder
        entry, head = builder.block, builder.append_basic_block("head")
        body, behind = builder.append_basic_block("body"), builder.append_basic_block("behind")
        builder.branch(head)
        builder.position_at_end(head)
        at = builder.phi(_LONG)
        now = [builder.phi(_LANES) for _ in states]
        at.add_incoming(first, entry)
        for one, state in zip(now, states, strict=True):
            one.add_incoming(state, entry)
        following = builder.add(at, _LONG(len(states)))
        builder.cbranch(builder.icmp_signed("<=", following, end), body, behind)
        builder.position_at_end(body)
        for number, one in enumerate(now):
            data = self.load(builder.add(at, _LONG(number)))
            one.add_incoming(self.fold(one, distance, data), body)
        at.add_incoming(following, body)
        builder.branch(head)
        builder.position_at_end(behind)
        return [at, *now]


def fold_crc32() -> Any:
    """Return what folds sixteen times `count` bytes, four times sixteen at least, into sixteen."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, start, count = arguments
        folding = _Folding(builder, _place(context, builder, signature.args[0], source, start))
        states = [folding.load(_LONG(number)) for number in range(4)]
        ones = ir.Constant(_LANES, [0xFFFF_FFFF, 0])
        states[0] = builder.xor(states[0], ones)
        at, *states = folding.loop(_LONG(4), count, states, 4)
        whole = states[0]
        for state in states[1:]:
            whole = folding.fold(whole, 1, state)
        _, whole = folding.loop(at, count, [whole], 1)
        halves = [builder.extract_element(whole, _BYTE(number)) for number in range(2)]
        return context.make_tuple(builder, signature.return_type, halves)

    def fold(typing: Any, source: Any, start: Any, count: Any) -> Any:
        del typing, start, count
        return types.UniTuple(types.uint64, 2)(source, types.int64, types.int64), generate

    return intrinsic(fold)
