"""Builds the operations of level ``loops`` from a syntax tree: names resolved, types checked, bounds proved."""

from collections.abc import Mapping, Sequence
from typing import Any

from xgpu import ir
from xgpu.device import DEVICES
from xgpu.dialects import attributes
from xgpu.dialects.nests.accesses import MAX_EXTENT, AccumulateOp, WriteOp
from xgpu.dialects.nests.assembly import REGISTER_TYPES, AsmOp, text_problem
from xgpu.dialects.nests.loops import (
    ASKED_MEMORIES,
    BANDS,
    MAX_STAGES,
    SIDES,
    AnchorOp,
    NewOp,
    ParOp,
    SeqOp,
    WhereOp,
    is_side_by_side,
)
from xgpu.dialects.threads import TILE_ALIGNMENT
from xgpu.dialects.xgpu import YieldOp
from xgpu.errors import InvalidInput, SourceLocation, did_you_mean
from xgpu.frontend.signature import ArgumentSpec, Source
from xgpu.indexing.affine import AffineExpr
from xgpu.indexing.constraints import Constraint
from xgpu.indexing.interval import Interval
from xgpu.loop_language.functions import BLOCK_BARRIER, COMBINERS, MMA
from xgpu.loop_language.parser import FULLY_PAR
from xgpu.loop_language.scope import Buffer, ScopedNames, Value
from xgpu.loop_language.sizes import Spec, dtype_at, names_in, shape_of, sizes_of, spec_of_parameter, whole_number
from xgpu.loop_language.syntax import (
    Anchor,
    Asm,
    Assign,
    Element,
    Function,
    If,
    Let,
    Loop,
    Name,
    New,
    Parameter,
    Pragma,
    Statement,
)
from xgpu.loop_language.values import Expressions, element_type, location_of, named
from xgpu.nests.assembly import place_problem
from xgpu.structure import dtype_of

LEVEL = "loops"
_NUMBERS = {"threads": 1024, "vector": 64, "together": 64, "group": 1024, "tile": 1024}
"""The pragmas of a ``par`` that take a number, and the largest that it may be."""
MAX_STATEMENTS = 10_000
"""The most statements that a program may have once its static loops are written out."""


def build(function: Function, given: Sequence[Spec] = ()) -> Source:
    """Return a program of level ``loops`` for arrays of the types and shapes that are ``given``, or by its defaults.

    Raises InvalidInput, with line and column, for whatever is wrong in it.
    """
    sizes = sizes_of(function, given)
    specs = [_spec(parameter, sizes) for parameter in function.parameters]
    with ir.make_context(), location_of(function.at):
        module = ir.Module.create()
        module.operation.attributes[attributes.LEVEL] = ir.StringAttr.get(LEVEL)
        with ir.InsertionPoint(module.body):
            _Builder(function, sizes).build(specs)
    pairs = list(zip(function.parameters, specs, strict=True))
    arguments = tuple(spec for parameter, spec in pairs if parameter.access != "out")
    results = tuple(spec for parameter, spec in pairs if parameter.access != "in")
    if not results:
        raise InvalidInput(f"'{function.name}' has no out or inout array: it does nothing", function.at)
    return Source(module, function.name, arguments, results)


class _Builder:
    def __init__(self, function: Function, sizes: Mapping[str, int]):
        self._function = function
        self._scope = ScopedNames()
        self._expressions = Expressions(self._scope)
        self._statements = 0
        self._at_once: Loop | None = None
        for name, size in sizes.items():
            self._scope.define(name, Value(size), function.at)

    def build(self, specs: Sequence[ArgumentSpec]) -> None:
        """Write the function at the current insertion point."""
        parameters = self._function.parameters
        types = [_buffer_type(spec.dtype.mlir, spec.shape) for spec in specs]
        function = ir.func.FuncOp(self._function.name, ir.FunctionType.get(types, []))
        described = [
            ir.DictAttr.get(
                {
                    attributes.CALLED: ir.StringAttr.get(parameter.name),
                    attributes.ACCESS: ir.StringAttr.get(parameter.access),
                }
            )
            for parameter in parameters
        ]
        function.operation.attributes["arg_attrs"] = ir.ArrayAttr.get(described)
        block = function.add_entry_block([location_of(parameter.at) for parameter in parameters])
        for parameter, spec, value in zip(parameters, specs, block.arguments, strict=True):
            self._define_parameter(parameter, spec, value)
        with ir.InsertionPoint(block):
            self._block(self._function.body)
            ir.func.return_([])
        for parameter in parameters:
            if parameter.access == "out" and parameter.name not in self._scope.written:
                raise InvalidInput(f"nothing is assigned to '{parameter.name}'", parameter.at)

    def _define_parameter(self, parameter: Parameter, spec: ArgumentSpec, value: ir.Value) -> None:
        if spec.dtype.is_packed and parameter.access != "in":
            raise InvalidInput(
                f"'{parameter.name}': elements of {spec.dtype} share bytes, which several threads cannot write",
                parameter.at,
            )
        buffer = Buffer(parameter.name, value, spec.dtype, spec.shape, parameter.access)
        self._scope.define(parameter.name, buffer, parameter.at)

    def _block(self, statements: Sequence[Statement]) -> None:
        for statement in statements:
            self._statement(statement)

    def _count(self, statement: Statement) -> None:
        self._statements += 1
        if self._statements > MAX_STATEMENTS:
            raise InvalidInput(f"static loops make more than {MAX_STATEMENTS} statements", statement.at)

    def _statement(self, statement: Statement) -> None:
        self._count(statement)
        match statement:
            case Loop(kind="static"):
                self._static(statement)
            case Loop():
                self._loop(statement)
            case If():
                self._if(statement)
            case New():
                self._new(statement)
            case Let():
                value = self._expressions.operand(statement.value)
                self._scope.define(statement.name, named(value), statement.at)
            case Assign():
                self._assign(statement)
            case Anchor():
                AnchorOp.build(self._expressions.value(statement.value), location_of(statement.at))
            case Asm():
                self._asm(statement)

    def _extent(self, loop: Loop) -> int:
        moving = next((each for each in names_in(loop.extent) if self._is_index(each.name)), None)
        if moving is not None:
            raise InvalidInput(
                f"the extent of '{loop.variable}': expected sizes and whole numbers, got the index '{moving.name}';"
                f" say how many iterations there are at most, and put what is done under 'if {loop.variable} < ...'",
                moving.at,
            )
        extent = whole_number(loop.extent, self._visible_constants(), f"the extent of '{loop.variable}'")
        if not 0 <= extent <= MAX_EXTENT:
            raise InvalidInput(
                f"the extent of '{loop.variable}': expected 0 to {MAX_EXTENT}, got {extent}", loop.extent.at
            )
        return extent

    def _is_index(self, name: str) -> bool:
        """Whether a name means an index that loops' variables decide."""
        meaning = self._scope.meaning(name)
        return isinstance(meaning, Value) and isinstance(meaning.value, AffineExpr)

    def _visible_constants(self) -> dict[str, int]:
        meanings = {name: self._scope.meaning(name) for name in self._scope.names}
        return {n: m.value for n, m in meanings.items() if isinstance(m, Value) and isinstance(m.value, int)}

    def _static(self, loop: Loop) -> None:
        if loop.pragmas:
            raise InvalidInput("a static loop takes no pragmas", loop.pragmas[0].at)
        for number in range(self._extent(loop)):
            self._count(loop)
            with self._scope.block():
                self._scope.define(loop.variable, Value(number), loop.at)
                self._block(loop.body)

    def _loop(self, loop: Loop) -> None:
        extent = self._extent(loop)
        if not extent:
            return
        if loop.kind != "seq" and self._at_once is not None:
            raise InvalidInput(f"no par loop stands inside of 'fully par {self._at_once.variable}'", loop.at)
        at = location_of(loop.at)
        if loop.kind == FULLY_PAR:
            op: ParOp | SeqOp = ParOp.build(extent, loop.variable, self._side_by_side(loop, extent), at)
        elif loop.kind == "par":
            op = ParOp.build(extent, loop.variable, self._loop_pragmas(loop.pragmas), at)
        else:
            op = SeqOp.build(extent, loop.variable, self._seq_pragmas(loop), at)
        self._at_once = loop if loop.kind == FULLY_PAR else self._at_once
        with self._scope.block(), ir.InsertionPoint(op.body):
            variable = self._scope.new_variable(op.variable, extent)
            self._scope.define(loop.variable, Value(variable), loop.at)
            self._block(loop.body)
            YieldOp.build([], at)
        self._at_once = None if loop.kind == FULLY_PAR else self._at_once

    def _loop_pragmas(self, pragmas: Sequence[Pragma]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for pragma in pragmas:
            name = pragma.name
            value: str | int | bool = pragma.name
            if pragma.name in MMA:
                self._no_values(pragma)
                name, value = "mma", MMA[pragma.name]
            elif pragma.name == BLOCK_BARRIER:
                self._no_values(pragma)
                value = True
            elif pragma.name in BANDS:
                self._no_values(pragma)
                name = "band"
            elif pragma.name in _NUMBERS:
                value = self._number_of(pragma, _NUMBERS[pragma.name])
                if name == "vector" and value & (value - 1):
                    raise InvalidInput(f"pragma '#vector': expected a power of two, got {value}", pragma.at)
                if name == "group" and not is_side_by_side(value):
                    raise InvalidInput(f"pragma '#group': expected {SIDES}, got {value}", pragma.at)
            else:
                raise InvalidInput(
                    f"'par' has no pragma '#{pragma.name}'; it has #grid, #block, #thread, #threads(n), #vector(n),"
                    " #together(n), #group(n), #tile(n), #mma, #no_mma, #block_barrier",
                    pragma.at,
                )
            if name in found:
                raise InvalidInput(f"pragma '#{pragma.name}' says again what another one says", pragma.at)
            found[name] = value
        if "group" in found and found.get("band") == "block":
            raise InvalidInput("'#group' and '#block': groups of a block's threads have the iterations", pragmas[0].at)
        return found

    def _seq_pragmas(self, loop: Loop) -> dict[str, Any]:
        """Return what the pragmas of a ``seq`` say."""
        found: dict[str, Any] = {}
        for pragma in loop.pragmas:
            if pragma.name not in ("stages", "tile"):
                raise InvalidInput(f"'seq' has no pragma '#{pragma.name}'; it has #stages(n), #tile(n)", pragma.at)
            if found:
                raise InvalidInput(f"'seq' takes one pragma, got '#{pragma.name}', too", pragma.at)
            most, least = (MAX_STAGES, 2) if pragma.name == "stages" else (1024, 0)
            found[pragma.name] = self._number_of(pragma, most, least)
        return found

    def _side_by_side(self, loop: Loop, extent: int) -> dict[str, Any]:
        """Return what the pragmas of a ``fully par`` say."""
        if not is_side_by_side(extent):
            raise InvalidInput(f"the extent of 'fully par': expected {SIDES}, got {extent}", loop.extent.at)
        found: dict[str, Any] = {"align": extent}
        for pragma in loop.pragmas:
            if pragma.name == "align":
                found["align"] = self._number_of(pragma, 1024)
                if not is_side_by_side(found["align"]):
                    raise InvalidInput(f"pragma '#align': expected {SIDES}, got {found['align']}", pragma.at)
            elif pragma.name == "threads":
                found["threads"] = self._number_of(pragma, 1024)
            elif pragma.name == BLOCK_BARRIER:
                self._no_values(pragma)
                found[BLOCK_BARRIER] = True
            elif pragma.name == "block":
                # They are threads of one block in any case.
                self._no_values(pragma)
            else:
                raise InvalidInput(
                    f"'fully par' has no pragma '#{pragma.name}'; it has #align(n), #block, #threads(n),"
                    " #block_barrier",
                    pragma.at,
                )
        return found

    def _no_values(self, pragma: Pragma) -> None:
        if pragma.values:
            near = did_you_mean(pragma.name, (*_NUMBERS, "align", "pad"))
            raise InvalidInput(f"pragma '#{pragma.name}' takes no numbers{near}", pragma.at)

    def _number_of(self, pragma: Pragma, most: int, least: int = 1) -> int:
        if len(pragma.values) != 1:
            raise InvalidInput(f"pragma '#{pragma.name}' takes one number, got {len(pragma.values)}", pragma.at)
        value = whole_number(pragma.values[0], self._visible_constants(), f"pragma '#{pragma.name}'")
        if not least <= value <= most:
            raise InvalidInput(f"pragma '#{pragma.name}': expected {least} to {most}, got {value}", pragma.at)
        return value

    def _offset_of(self, pragma: Pragma) -> int:
        value = self._number_of(pragma, max(each.shared_bytes_optin for each in DEVICES.values()), 0)
        if value % TILE_ALIGNMENT:
            raise InvalidInput(f"pragma '#offset': expected a multiple of {TILE_ALIGNMENT}, got {value}", pragma.at)
        return value

    def _if(self, statement: If) -> None:
        constraints = self._expressions.condition(statement.condition)
        map_, variables = self._scope.map_of([], constraints, implied=False)
        at = location_of(statement.at)
        with self._scope.block(constraints):
            never = self._scope.is_unreachable()
        negated = _negated(constraints, self._scope)
        with self._scope.block(negated):
            always = not map_.constraints or (bool(negated) and self._scope.is_unreachable())
        if never or always:
            with self._scope.block(negated if never else constraints):
                self._block(statement.otherwise if never else statement.then)
            return
        op = WhereOp.build(map_, variables, at)
        for block, statements, facts in (
            (op.then, statement.then, constraints),
            (op.otherwise, statement.otherwise, negated),
        ):
            with self._scope.block(facts), ir.InsertionPoint(block):
                self._block(statements)
                YieldOp.build([], at)

    def _new(self, statement: New) -> None:
        dtype = dtype_at(statement.dtype, statement.at)
        shape = shape_of(statement.shape, self._visible_constants(), f"'{statement.name}'")
        if dtype.is_packed:
            raise InvalidInput(f"'{statement.name}': elements of {dtype} share bytes; use s8 or u8", statement.at)
        found: dict[str, Any] = {}
        for pragma in statement.pragmas:
            if pragma.name in ASKED_MEMORIES:
                self._no_values(pragma)
                found["memory"] = pragma.name
            elif pragma.name == "pad" and shape:
                found["pad"] = self._number_of(pragma, 32)
            elif pragma.name == "offset":
                found["offset"] = self._offset_of(pragma)
            else:
                raise InvalidInput(
                    f"'new' has no pragma '#{pragma.name}'; it has #register, #shared, #scratch, #offset(n) for bytes"
                    " of shared memory, and #pad(n) for rows",
                    pragma.at,
                )
        if "offset" in found and found.setdefault("memory", "shared") != "shared":
            raise InvalidInput(
                f"'{statement.name}': '#offset' is a place in shared memory, got #{found['memory']} too", statement.at
            )
        type_ = _buffer_type(dtype.mlir, shape)
        value = NewOp.build(type_, statement.name, found, location_of(statement.at))
        self._scope.define(statement.name, Buffer(statement.name, value, dtype, shape, "new"), statement.at)
        self._scope.written.discard(statement.name)

    def _asm(self, statement: Asm) -> None:
        operands = [self._expressions.value(operand) for operand in statement.operands]
        dtypes = [dtype_at(name, statement.at) for _, name in statement.results]
        for dtype in (*map(dtype_of, operands), *dtypes):
            if dtype.hlo not in REGISTER_TYPES:
                raise InvalidInput(f"'asm' takes and gives {', '.join(REGISTER_TYPES)}; got {dtype}", statement.at)
        problem = text_problem(statement.text, len(dtypes), len(operands))
        if problem is not None:
            raise InvalidInput(f"'asm': {problem}", statement.at)
        types = [element_type(dtype) for dtype in dtypes]
        asm = AsmOp.create(operands, types, {"text": statement.text}, location_of(statement.at))
        if (misplaced := place_problem(asm.operation)) is not None:
            raise InvalidInput(misplaced, statement.at)
        for (name, _), result in zip(statement.results, asm.operation.results, strict=True):
            self._scope.define(name, named(result), statement.at)

    def _assign(self, statement: Assign) -> None:
        target = statement.target
        element = Element(target.name, (), target.at) if isinstance(target, Name) else target
        atomic = False
        for pragma in statement.pragmas:
            if pragma.name != "atomic" or statement.operator == "=":
                raise InvalidInput(f"'{statement.operator}' has no pragma '#{pragma.name}'", pragma.at)
            self._no_values(pragma)
            atomic = True
        buffer, indices = self._expressions.place(element)
        if buffer.access == "in":
            raise InvalidInput(f"'{buffer.name}' is an input; declare it out or inout to assign to it", statement.at)
        value = self._expressions.value(statement.value, buffer.dtype)
        at = location_of(statement.at)
        place = self._scope.map_of(indices)
        if statement.operator == "=":
            WriteOp.build(value, buffer.value, *place, at)
            self._scope.written.add(buffer.name)
            return
        if buffer.access != "inout" and buffer.name not in self._scope.written:
            raise InvalidInput(f"'{buffer.name}' has no value yet to combine with: assign to it first", statement.at)
        _check_combines(statement.operator, buffer, statement.at)
        AccumulateOp.build(value, buffer.value, *place, COMBINERS[statement.operator], atomic, at)


def _spec(parameter: Parameter, sizes: Mapping[str, int]) -> ArgumentSpec:
    dtype, shape = spec_of_parameter(parameter, sizes)
    return ArgumentSpec(parameter.name, shape, dtype)


def _check_combines(operator: str, buffer: Buffer, at: SourceLocation) -> None:
    kind = buffer.dtype.kind
    if operator in ("&=", "|=", "^=") and kind in ("float", "complex"):
        raise InvalidInput(f"'{operator}' combines integers and truth values, got {buffer.dtype}", at)


def _negated(constraints: Sequence[Constraint], scope: ScopedNames) -> list[Constraint]:
    """Return what holds where one constraint does not, if that is one constraint again."""
    if len(constraints) != 1:
        return []
    ((expr, interval),) = constraints
    found = scope.interval(expr)
    if interval.lower <= found.lower:
        return [(expr, Interval(interval.upper + 1, max(found.upper, interval.upper + 1)))]
    if interval.upper >= found.upper:
        return [(expr, Interval(min(found.lower, interval.lower - 1), interval.lower - 1))]
    return []


def _buffer_type(element: str, shape: Sequence[int]) -> ir.Type:
    return ir.MemRefType.get(list(shape), ir.Type.parse(element))
