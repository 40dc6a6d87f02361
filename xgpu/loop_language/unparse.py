"""Writes a program of level ``loops`` or ``mapped`` as a syntax tree, to be printed as text of the language.

Sizes are numbers then, and static loops are written out. Decisions that were made become pragmas where the language has
some. What is used once stands where it is used, unless something is written in between; other values have names.
"""

import functools
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np

from xgpu import ir
from xgpu.dialects.attributes import ACCESS
from xgpu.dialects.nests.accesses import AccumulateOp, FromIndexOp, ReadOp, ToIndexOp, WriteOp
from xgpu.dialects.nests.assembly import AsmOp
from xgpu.dialects.nests.loops import AnchorOp, BarrierOp, LaunchOp, NewOp, ParOp, SeqOp, WhereOp
from xgpu.dtypes import DType, dtype_of_element
from xgpu.errors import SourceLocation, Unsupported
from xgpu.hlo.operations import direction_of
from xgpu.hlo.source_location import source_of, unsupported
from xgpu.indexing.affine import AffineExpr, Dim, Division, FloorDiv
from xgpu.indexing.constraints import Constraint
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.loop_language.functions import BITS, BLOCK_BARRIER, COMBINERS, COMPARISONS, FUNCTIONS, MMA, OPERATORS
from xgpu.loop_language.lexer import KEYWORDS
from xgpu.loop_language.parser import FULLY_PAR
from xgpu.loop_language.syntax import (
    Anchor,
    Asm,
    Assign,
    Binary,
    Call,
    Element,
    Expr,
    Function,
    If,
    Let,
    Loop,
    Name,
    New,
    NumberLiteral,
    Parameter,
    Pragma,
    Statement,
    Unary,
)
from xgpu.nests.structure import access_of, name_of_buffer, operations_of
from xgpu.structure import dtype_of, users_of

_AT = SourceLocation("")
_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_OPERATOR_OF = {operation: operator for operator, operation in OPERATORS.items() if operator not in ("and", "or")}
_FUNCTION_OF = {function.operation: name for name, function in FUNCTIONS.items()}
_COMPARISON_OF = {direction: operator for operator, direction in COMPARISONS.items()}
_COMBINED_OF = {combiner: operator for operator, combiner in COMBINERS.items()}
_WITH_BLOCKS = frozenset(op.OPERATION_NAME for op in (ParOp, SeqOp, WhereOp, LaunchOp))
_CONVERSIONS = ("stablehlo.convert", "stablehlo.bitcast_convert")
_PURE = frozenset((FromIndexOp.OPERATION_NAME, "stablehlo.constant"))


def unparse(function: ir.func.FuncOp) -> Function:
    """Return the syntax tree of a program; raises Unsupported for an operation that the language has no word for."""
    return _Unparser().function(function)


class _Unparser:
    def __init__(self) -> None:
        self._names: dict[ir.Value, str] = {}
        self._used: set[str] = set()
        self._inlined: dict[ir.Value, Expr] = {}
        self._waiting: dict[ir.Value, Expr] = {}

    def function(self, function: ir.func.FuncOp) -> Function:
        """Write a whole program."""
        parameters = []
        described = ir.ArrayAttr(function.operation.attributes["arg_attrs"])
        for value, attributes in zip(function.entry_block.arguments, described, strict=True):
            access = ir.StringAttr(ir.DictAttr(attributes)[ACCESS]).value
            name = self._name(value, name_of_buffer(value))
            parameters.append(Parameter(access, name, *_type(value), _AT))
        body = tuple(self._block(function.entry_block))
        name = ir.StringAttr(function.operation.attributes["sym_name"]).value
        return Function(_identifier(name), (), tuple(parameters), body, _AT)

    def _name(self, value: ir.Value, wanted: str) -> str:
        """Give a value a name that nothing else has."""
        base = _identifier(wanted)
        numbered = (f"{base}_{number}" for number in itertools.count(2))
        name = next(each for each in itertools.chain((base,), numbered) if each not in self._used)
        self._used.add(name)
        self._names[value] = name
        return name

    def _block(self, block: ir.Block) -> Iterator[Statement]:
        used = set(self._used)
        for op in operations_of(block):
            if op.name != "func.return":
                yield from self._statement(op)
        yield from self._flush()
        self._used = used

    def _statement(self, op: ir.Operation) -> Iterator[Statement]:
        view = op.opview
        if op.name in _WITH_BLOCKS or isinstance(view, NewOp | BarrierOp):
            yield from self._flush()
        else:
            yield from self._settle(op)
        match view:
            case ParOp() | SeqOp():
                yield self._loop(view)
            case LaunchOp():
                yield from self._block(view.body)
            case WhereOp():
                condition = self._condition(view)
                yield If(condition, tuple(self._block(view.then)), tuple(self._block(view.otherwise)), _AT)
            case NewOp():
                dtype, shape = _type(view.buffer)
                yield New(self._name(view.buffer, view.called), dtype, shape, _new_pragmas(view), _AT)
            case WriteOp():
                yield Assign(self._target(op), "=", self._value(view.value, typed=False), (), _AT)
            case AccumulateOp():
                pragmas = (Pragma("atomic", (), _AT),) if view.atomic else ()
                value = self._value(view.value, typed=False)
                yield Assign(self._target(op), _COMBINED_OF[view.combiner], value, pragmas, _AT)
            case AsmOp():
                operands = tuple(self._value(operand) for operand in op.operands)
                results = tuple((self._name(each, "v"), dtype_of(each).hlo) for each in op.results)
                yield Asm(view.text, operands, results, _AT)
            case AnchorOp():
                yield Anchor(self._value(view.value), _AT)
            case BarrierOp():
                # The language has none: they follow from what is said.
                return
            case _:
                yield from self._computed(op)

    def _loop(self, view: ParOp | SeqOp) -> Loop:
        used = set(self._used)
        name = self._name(view.variable, view.called)
        pragmas = _loop_pragmas(view) if isinstance(view, ParOp) else _seq_pragmas(view)
        body = tuple(self._block(view.body))
        self._used = used
        return Loop(_kind(view), _number(view.extent), name, pragmas, body, _AT)

    def _settle(self, op: ir.Operation) -> Iterator[Statement]:
        """Have values that wait stand in an operation if it takes the last ones, in their order; else give all names.

        So a program is computed in the order of its text.
        """
        taken = [operand for operand in op.operands if operand in self._waiting]
        waiting = list(self._waiting)
        ends = bool(op.results) and not isinstance(op.opview, AsmOp)
        if waiting[len(waiting) - len(taken) :] == taken and (ends or len(taken) == len(waiting)):
            for value in taken:
                self._inlined[value] = self._waiting.pop(value)
            return
        yield from self._flush()

    def _flush(self) -> Iterator[Statement]:
        """Give names to all values that wait to be used."""
        for value in list(self._waiting):
            expr = self._waiting.pop(value)
            if isinstance(value.type, ir.IndexType):
                self._inlined[value] = expr
            else:
                yield Let(self._name(value, "v"), expr, _AT)

    def _computed(self, op: ir.Operation) -> Iterator[Statement]:
        """Have a value wait for its use; one with several gets a name, and a constant stands where it is used."""
        (result,) = op.results
        expr = self._value(op.opview.value) if isinstance(op.opview, ToIndexOp) else self._expression(op)
        if op.name in _PURE:
            self._inlined[result] = expr
            return
        uses = len(users_of(result))
        if uses:
            self._waiting[result] = expr
        if uses > 1:
            yield from self._flush()

    def _target(self, op: ir.Operation) -> Name | Element:
        access = access_of(op)
        name = self._names[access.buffer]
        return Element(name, self._indices(access.map, access.variables), _AT) if access.shape else Name(name, _AT)

    def _indices(self, map_: IndexingMap, variables: Sequence[ir.Value]) -> tuple[Expr, ...]:
        return tuple(self._index(result, variables) for result in map_.results)

    def _index(self, expr: AffineExpr, variables: Sequence[ir.Value]) -> Expr:
        """Write an index expression."""
        positive = [(atom, c) for atom, c in expr.terms if c > 0]
        negative = [(atom, c) for atom, c in expr.terms if c < 0]
        parts = [(self._atom(atom, variables), c) for atom, c in (*positive, *negative)]
        if not parts:
            return _number(expr.constant)
        found: Expr | None = None
        for part, factor in parts:
            scaled = part if abs(factor) == 1 else Binary("*", part, _number(abs(factor)), _AT)
            if found is None:
                found = scaled if factor > 0 else Unary("-", scaled, _AT)
            else:
                found = Binary("+" if factor > 0 else "-", found, scaled, _AT)
        assert found is not None
        if not expr.constant:
            return found
        return Binary("+" if expr.constant > 0 else "-", found, _number(abs(expr.constant)), _AT)

    def _atom(self, atom: Any, variables: Sequence[ir.Value]) -> Expr:
        if isinstance(atom, Dim):
            value = variables[atom.index]
            return self._inlined[value] if value in self._inlined else Name(self._names[value], _AT)
        assert isinstance(atom, Division)
        operator = "//" if isinstance(atom, FloorDiv) else "%"
        return Binary(operator, self._index(atom.expr, variables), _number(atom.divisor), _AT)

    def _condition(self, where: WhereOp) -> Expr:
        tests = [test for each in where.map.constraints for test in self._tests(each, where)]
        return functools.reduce(lambda left, right: Binary("and", left, right, _AT), tests)

    def _tests(self, constraint: Constraint, where: WhereOp) -> Iterator[Expr]:
        expr, interval = constraint
        known = expr.interval(where.map.dims)
        left = self._index(expr, where.variables)
        if interval.is_point:
            yield Binary("==", left, _number(interval.lower), _AT)
            return
        if interval.lower > known.lower:
            yield Binary(">=", left, _number(interval.lower), _AT)
        if interval.upper < known.upper or interval.lower <= known.lower:
            yield Binary("<=", left, _number(interval.upper), _AT)

    def _value(self, value: ir.Value, typed: bool = True) -> Expr:
        """Write a value; a constant with its type if nothing else says it."""
        if value in self._names:
            return Name(self._names[value], _AT)
        owner = cast(ir.OpView, value.owner).operation
        if typed and owner.name == "stablehlo.constant":
            return self._typed_constant(owner)
        return self._inlined[value]

    def _typed_constant(self, op: ir.Operation) -> Expr:
        return Call(dtype_of(op.results[0]).hlo, (_constant(op),), _AT)

    def _expression(self, op: ir.Operation) -> Expr:
        if op.name == "stablehlo.constant":
            return _constant(op)
        if isinstance(op.opview, ReadOp):
            return self._target(op)
        if isinstance(op.opview, FromIndexOp):
            (result,) = op.opview.map.results
            return Call("s32", (self._index(result, op.opview.variables),), _AT)
        operands = self._operands(op)
        match op.name:
            case "stablehlo.compare":
                direction = direction_of(op)
                return Binary(_COMPARISON_OF[direction], operands[0], operands[1], _AT)
            case "stablehlo.convert":
                return Call(dtype_of(op.results[0]).hlo, tuple(operands), _AT)
            case "stablehlo.bitcast_convert":
                return Call(f"{BITS}{dtype_of(op.results[0]).hlo}", tuple(operands), _AT)
            case "stablehlo.select":
                return Call("select", tuple(operands), _AT)
            case "stablehlo.negate":
                return Unary("-", operands[0], _AT)
            case "stablehlo.not":
                return Unary("~", operands[0], _AT)
            case "stablehlo.shift_right_logical" | "stablehlo.shift_right_arithmetic":
                return Binary(">>", operands[0], operands[1], _AT)
        if op.name in _OPERATOR_OF:
            return Binary(_OPERATOR_OF[op.name], operands[0], operands[1], _AT)
        if op.name in _FUNCTION_OF:
            return Call(_FUNCTION_OF[op.name], tuple(operands), _AT)
        raise unsupported(op, "the loop language has no word for it")

    def _operands(self, op: ir.Operation) -> list[Expr]:
        """Write what an operation takes; constants without their types if another operand says it."""
        values = list(op.operands)
        start = 1 if op.name == "stablehlo.select" else 0
        says = [not _is_constant(value) for value in values[start:]]
        alone = op.name in _CONVERSIONS or not any(says)
        return [self._value(value, typed=alone or number < start) for number, value in enumerate(values)]


def _is_constant(value: ir.Value) -> bool:
    owner = value.owner
    return not isinstance(owner, ir.Block) and owner.operation.name == "stablehlo.constant"


def _identifier(name: str) -> str:
    """Return a name that the language takes, as like another one as can be."""
    clean = re.sub(r"[^A-Za-z_0-9]", "_", name)
    clean = clean if _NAME.fullmatch(clean) else f"_{clean}"
    return f"{clean}_" if clean in KEYWORDS else clean


def _number(value: int) -> Expr:
    return NumberLiteral(value, _AT) if value >= 0 else Unary("-", NumberLiteral(-value, _AT), _AT)


def _type(buffer: ir.Value) -> tuple[str, tuple[Expr, ...]]:
    type_ = ir.MemRefType(buffer.type)
    return dtype_of_element(type_.element_type).hlo, tuple(_number(size) for size in type_.shape)


def _kind(loop: ParOp | SeqOp) -> str:
    if isinstance(loop, SeqOp):
        return "seq"
    return "par" if loop.align is None else FULLY_PAR


def _loop_pragmas(par: ParOp) -> tuple[Pragma, ...]:
    names = ("align", "group", "threads", "vector", "together", "tile")
    numbers = [(name, getattr(par, name)) for name in names]
    # Who runs iterations that run at once follows from the loops around.
    found = [Pragma(par.band, (), _AT)] if par.band is not None and par.align is None else []
    if par.mma is not None:
        found.append(Pragma(next(name for name, asked in MMA.items() if asked == par.mma), (), _AT))
    if par.block_barrier:
        found.append(Pragma(BLOCK_BARRIER, (), _AT))
    return (*found, *(Pragma(name, (_number(value),), _AT) for name, value in numbers if value is not None))


def _seq_pragmas(seq: SeqOp) -> tuple[Pragma, ...]:
    numbers = {"stages": seq.stages, "tile": seq.tile}
    return tuple(Pragma(name, (_number(value),), _AT) for name, value in numbers.items() if value is not None)


def _new_pragmas(new: NewOp) -> tuple[Pragma, ...]:
    # A program asks for registers in one way, whoever has them.
    memory = "register" if new.memory == "threads" else new.memory
    found = [Pragma(memory, (), _AT)] if memory is not None else []
    if new.offset is not None:
        found = [Pragma("offset", (_number(new.offset),), _AT)]
    return (*found, *([Pragma("pad", (_number(new.pad),), _AT)] if new.pad else []))


def _constant(op: ir.Operation) -> Expr:
    dtype = dtype_of(op.results[0])
    if dtype.kind == "complex":
        raise Unsupported("the loop language has no literals of complex numbers", source_of(op))
    dense = ir.DenseElementsAttr(op.attributes["value"])
    if dtype.kind == "bool":
        return Name("true" if "true" in str(dense) else "false", _AT)
    if dtype.is_integer:
        text = str(dense).partition("<")[2].partition(">")[0]
        return _number(int(text, 0))
    return _float(_bits_of(dense, dtype), dtype)


def _bits_of(dense: ir.DenseElementsAttr, dtype: DType) -> Any:
    """Return the number of a constant, exactly."""
    text = str(dense).partition("<")[2].partition(">")[0]
    if text.startswith("0x"):
        size = max(1, dtype.bits // 8)
        return np.frombuffer(int(text, 16).to_bytes(size, "little"), dtype.numpy)[0]
    return np.asarray(float(text), np.float64).astype(dtype.numpy)[()]


def _float(value: Any, dtype: DType) -> Expr:
    number = float(value)
    if not np.isfinite(number):
        literal: Expr = NumberLiteral(abs(number), _AT)
    else:
        # As few digits as say which one of the type it is.
        texts = (f"{abs(number):.{digits}g}" for digits in range(1, 18))
        short = next(t for t in texts if np.asarray(float(t), np.float64).astype(dtype.numpy) == abs(value))
        literal = NumberLiteral(float(short), _AT)
    return Unary("-", literal, _AT) if np.signbit(number) and not np.isnan(number) else literal
