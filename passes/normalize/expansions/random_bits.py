"""Expands stablehlo.rng_bit_generator to arithmetic on counters, bit for bit as XLA does on CPUs and GPUs.

The generators are ThreeFry-2x32 with 20 rounds and Philox-4x32 with 10, of Salmon et al., "Parallel random numbers: as
easy as 1, 2, 3" (2011). Which counter makes which element, and what the new state is, is XLA's choice. Every element is
computed on its own, from its block's counter: of the words of a block, it selects one.
"""

from collections.abc import Sequence
from math import prod

from xgpu import ir
from xgpu.dtypes import DType
from xgpu.hlo.source_location import unsupported
from xgpu.hlo.stablehlo_builder import (
    Value,
    broadcast,
    convert,
    hlo,
    leading_part,
    linear_index,
    reshape,
    scalar_at,
    shape_of,
    splat_like,
    tensor,
)
from xgpu.structure import dtype_of, element_of

_THREE_FRY_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_THREE_FRY_PARITY = 0x1BD11BDA
_PHILOX_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_PHILOX_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_PHILOX_ROUNDS = 10


def expand_rng_bit_generator(op: ir.Operation) -> list[Value]:
    """Return the new state and the random bits of a stablehlo.rng_bit_generator."""
    dtype = dtype_of(op.results[1])
    if not dtype.is_integer:
        raise unsupported(op, f"random bits are integers, not {dtype}")
    state = op.operands[0]
    algorithm = str(op.attributes["rng_algorithm"]).removeprefix("#stablehlo<rng_algorithm ").removesuffix(">")
    # What XLA takes for the default on CPUs and GPUs.
    three_fry = algorithm == "THREE_FRY"
    sizes = (2,) if three_fry else (2, 3)
    if str(element_of(state)) != "ui64" or shape_of(state) not in [[size] for size in sizes]:
        expected = " or ".join(f"tensor<{size}xui64>" for size in sizes)
        raise unsupported(op, f"the state of {algorithm} is {expected}, not {state.type}")
    generate = _three_fry if three_fry else _philox
    new_state, bits = generate(state, shape_of(op.results[1]), dtype)
    unsigned = convert(bits, f"ui{dtype.bits}")
    result = unsigned if dtype.is_unsigned else hlo.bitcast_convert(op.results[1].type, unsigned)
    return [new_state, result]


def _three_fry(state: Value, shape: list[int], dtype: DType) -> tuple[Value, Value]:
    """Two words make a 64-bit element, or two narrower ones: neighbours along the dimension that is split."""
    blocks = list(shape)
    if dtype.bits == 64:
        positions = linear_index(shape, "ui64")
    elif not shape:
        positions = linear_index([], "ui64")
    else:
        split = _split_dimension(shape)
        blocks[split] = -(-shape[split] // 2)
        positions = _spread_blocks(blocks, split, 2, shape)
    start = scalar_at(state, 1)
    counter = hlo.add(broadcast(start, shape), positions)
    key = [broadcast(word, shape) for word in _words(scalar_at(state, 0))]
    low, high = _three_fry_rounds(_words(counter), key)
    advanced = hlo.add(start, splat_like(prod(blocks), start))
    new_state = hlo.concatenate([hlo.slice(state, [0], [1], [1]), reshape(advanced, [1])], 0)
    if dtype.bits == 64:
        return new_state, _join(low, high)
    if not shape:
        return new_state, low
    number = hlo.iota(tensor(shape, "ui64"), split)
    is_first = _equals(hlo.and_(number, splat_like(1, number)), 0)
    return new_state, hlo.select(is_first, low, high)


def _split_dimension(shape: Sequence[int]) -> int:
    """Return the dimension along which two words of a block are neighbours: the first even one, else the largest."""
    even = [i for i, size in enumerate(shape) if size % 2 == 0]
    return even[0] if even else shape.index(max(shape))


def _spread_blocks(blocks: Sequence[int], dimension: int, words: int, shape: Sequence[int]) -> Value:
    """Return each element's block: blocks are numbered in row-major order and hold ``words`` neighbours each."""
    inner = [*blocks[: dimension + 1], words, *blocks[dimension + 1 :]]
    kept = [i for i in range(len(inner)) if i != dimension + 1]
    repeated = broadcast(linear_index(blocks, "ui64"), inner, kept)
    whole = [size * words if i == dimension else size for i, size in enumerate(blocks)]
    return leading_part(reshape(repeated, whole), shape)


def _three_fry_rounds(counter: Sequence[Value], key: Sequence[Value]) -> tuple[Value, Value]:
    parity = hlo.xor(hlo.xor(key[0], splat_like(_THREE_FRY_PARITY, key[0])), key[1])
    keys = (*key, parity)
    left, right = hlo.add(counter[0], keys[0]), hlo.add(counter[1], keys[1])
    for group in range(5):
        for rotation in _THREE_FRY_ROTATIONS[group % 2]:
            left = hlo.add(left, right)
            right = hlo.xor(left, _rotate_left(right, rotation))
        left = hlo.add(left, keys[(group + 1) % 3])
        right = hlo.add(hlo.add(right, keys[(group + 2) % 3]), splat_like(group + 1, right))
    return left, right


def _rotate_left(value: Value, distance: int) -> Value:
    left = hlo.shift_left(value, splat_like(distance, value))
    return hlo.or_(left, hlo.shift_right_logical(value, splat_like(32 - distance, value)))


def _philox(state: Value, shape: list[int], dtype: DType) -> tuple[Value, Value]:
    """Four words make two 64-bit elements, or four narrower ones, one after the other in row-major order."""
    per_block = 2 if dtype.bits == 64 else 4
    elements = prod(shape)
    blocks = -(-elements // per_block)
    # A state of three words has the counter's after the key's; in one of two, the key's is the upper word of both.
    is_long = shape_of(state)[0] == 3
    key, low, high = (scalar_at(state, i) for i in ((0, 1, 2) if is_long else (0, 1, 0)))
    positions = reshape(_spread_blocks([blocks], 0, per_block, [elements]), shape)
    counter = _add_wide([broadcast(low, shape), broadcast(high, shape)], positions)
    words = [word for part in counter for word in _words(part)]
    words = _philox_rounds(words, [broadcast(word, shape) for word in _words(key)])
    advanced = _add_wide([low, high], splat_like(blocks, low))
    kept = [key, *advanced] if is_long else [key, advanced[0]]
    new_state = hlo.concatenate([reshape(word, [1]) for word in kept], 0)
    number = linear_index(shape, "ui64")
    lane = hlo.and_(number, splat_like(per_block - 1, number))
    candidates = words if per_block == 4 else [_join(words[0], words[1]), _join(words[2], words[3])]
    chosen = candidates[-1]
    for i, candidate in reversed(list(enumerate(candidates[:-1]))):
        chosen = hlo.select(_equals(lane, i), candidate, chosen)
    return new_state, chosen


def _add_wide(pair: Sequence[Value], amount: Value) -> list[Value]:
    """Return a 128-bit number, its lower half first, plus a 64-bit one."""
    low, high = pair
    total = hlo.add(low, amount)
    carried = hlo.compare(total, low, hlo.ComparisonDirectionAttr.get("LT"))
    return [total, hlo.select(carried, hlo.add(high, splat_like(1, high)), high)]


def _philox_rounds(counter: Sequence[Value], key: Sequence[Value]) -> list[Value]:
    words, keys = list(counter), list(key)
    for turn in range(_PHILOX_ROUNDS):
        if turn:
            keys = [hlo.add(each, splat_like(step, each)) for each, step in zip(keys, _PHILOX_KEY_STEPS, strict=True)]
        (low0, high0), (low1, high1) = (
            _words(hlo.multiply(convert(word, "ui64"), splat_like(factor, convert(word, "ui64"))))
            for word, factor in zip((words[0], words[2]), _PHILOX_MULTIPLIERS, strict=True)
        )
        words = [hlo.xor(hlo.xor(high1, words[1]), keys[0]), low1, hlo.xor(hlo.xor(high0, words[3]), keys[1]), low0]
    return words


def _words(value: Value) -> tuple[Value, Value]:
    """Return the lower and the upper 32 bits of 64-bit integers."""
    upper = hlo.shift_right_logical(value, splat_like(32, value))
    return convert(value, "ui32"), convert(upper, "ui32")


def _join(low: Value, high: Value) -> Value:
    wide = convert(high, "ui64")
    return hlo.or_(convert(low, "ui64"), hlo.shift_left(wide, splat_like(32, wide)))


def _equals(value: Value, number: int) -> Value:
    return hlo.compare(value, splat_like(number, value), hlo.ComparisonDirectionAttr.get("EQ"))
