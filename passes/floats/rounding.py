"""Rounding f32 to narrower floats, and back at once, by one instruction."""

from xgpu import ir
from xgpu.passes.llvm.call import call_intrinsic
from xgpu.passes.support import arith_builder as b
from xgpu.structure import is_result_of, is_used, producer, replace_op, users_of, walk

_TRUNCATE, _EXTEND = "arith.truncf", "arith.extf"
_TAKE_APART, _PUT_TOGETHER = "vector.to_elements", "vector.from_elements"


def round_in_f32(module: ir.Module, intrinsic: str) -> None:
    """Round f32 to bf16 without leaving f32, where nothing needs the bf16: its bits are the upper ones of an f32.

    ``intrinsic`` rounds two numbers to a pair, the first to the upper half. The compiler of machine code takes an
    instruction for single numbers else, which has a quarter of the rate, and another one to move the bits up.
    """
    extended = dict.fromkeys(op.operands[0] for op in walk(module.operation, _EXTEND))
    # Not what is extended from f32 to f64: it may be the result of an operation that is replaced here.
    for value in [value for value in extended if isinstance(value.type, ir.BF16Type)]:
        source, users = _rounded(value), users_of(value)
        if source is None or any(user.name != _EXTEND or not _is_f32(user.results[0]) for user in users):
            continue
        made = producer(value)
        with ir.InsertionPoint(made), made.location:
            pair = call_intrinsic(intrinsic, ir.VectorType.get([2], value.type), [source, b.constant(0.0, source.type)])
            bits = ir.Operation.create("llvm.bitcast", results=[b.integer_type(32)], operands=[pair]).results[0]
            rounded = b.bitcast(bits, source.type)
        for user in users:
            replace_op(user, [rounded])
        _erase_unused(made)


def _is_f32(value: ir.Value) -> bool:
    return isinstance(value.type, ir.F32Type)


def _rounded(value: ir.Value) -> ir.Value | None:
    """Return the f32 that is rounded to a bf16, by itself or in a vector; None of another value."""
    if is_result_of(value, _TRUNCATE):
        (source,) = producer(value).operands
        return source if _is_f32(source) else None
    vector = producer(value).operands[0] if is_result_of(value, _TAKE_APART) else None
    if vector is None or not is_result_of(vector, _TRUNCATE):
        return None
    (wide,) = producer(vector).operands
    if not is_result_of(wide, _PUT_TOGETHER):
        return None
    pairs = zip(producer(value).results, producer(wide).operands, strict=True)
    return next((source for result, source in pairs if result == value and _is_f32(source)), None)


def _erase_unused(op: ir.Operation) -> None:
    """Erase an operation without users, and what only it used of what makes vectors and rounds them."""
    while not any(map(is_used, op.results)):
        operands = list(op.operands)
        op.erase()
        if not is_result_of(operands[0], _TRUNCATE, _PUT_TOGETHER):
            return
        op = producer(operands[0])
