"""The pass `expand-complex`."""

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import ClassVar

from xgpu import ir
from xgpu.dialects.attributes import ELEMENT_TYPE
from xgpu.dialects.threads import AllocateSharedOp, AtomicRmwOp, PredicatedExtractOp, PredicatedInsertOp
from xgpu.dialects.traits import traits_of
from xgpu.dialects.xgpu import YieldOp
from xgpu.passes.framework.base import Pass
from xgpu.passes.support.refusals import refuse, refuse_type
from xgpu.records import dataclass
from xgpu.structure import arguments_of, blocks_of, element_of, walk

_Parts = tuple[ir.Value, ir.Value]


@dataclass(frozen=True)
class ExpandComplex(Pass):
    """Replaces every complex scalar by two real ones, and the elements of complex tensors by integers.

    A complex number in memory is the integer of its bits, the real part lowest: i64 for two f32, i128 for two f64. So
    a number is read and written in one access, and accesses to neighbours become vectors as those of other types do.
    (The bits are taken apart by `llvm.bitcast`, as LLVM does not see through the one-element vectors that
    `vector.bitcast` would need.)
    What loops, conditionals, calls and functions hand on is two values for each complex one. A parameter whose
    elements change keeps their type as the attribute ``xgpu.element``, for who takes up its arguments from this text.
    Takes `complex.create`, `complex.re`, `complex.im`, `complex.constant`, `arith.select` and accesses to tensors;
    emission writes all other operations on complex numbers as operations on their parts.
    Needs: nothing. The other passes know no complex numbers.

    ```mlir
    %z = tensor.extract %t[%i] : tensor<8xcomplex<f32>>
    %x = complex.re %z : complex<f32>
    ```
    becomes
    ```mlir
    %bits = tensor.extract %t[%i] : tensor<8xi64>
    %parts = llvm.bitcast %bits : i64 to vector<2xf32>
    %x = vector.extract %parts[0] : f32 from vector<2xf32>
    ```
    """

    NAME: ClassVar[str] = "expand-complex"

    def apply(self, module: ir.Module) -> None:
        """Expand all complex numbers of ``module``. Raises `CompilerError` for other operations on them."""
        operations = walk(module.operation, post_order=False)
        if any(_brings_complex(op) for op in operations):
            _Expander().expand(operations)


def _part_of(type_: ir.Type) -> ir.Type | None:
    """Return the type of the parts of a complex scalar, None for another type."""
    return ir.ComplexType(type_).element_type if isinstance(type_, ir.ComplexType) else None


def _is_complex(value: ir.Value) -> bool:
    return isinstance(value.type, ir.ComplexType)


def _stored(type_: ir.Type) -> ir.Type:
    """Return a tensor type with complex elements replaced by integers; any other type is unchanged."""
    if not isinstance(type_, ir.RankedTensorType) or not isinstance(type_.element_type, ir.ComplexType):
        return type_
    return ir.RankedTensorType.get(type_.shape, _stored_scalar(type_.element_type))


def _stored_scalar(type_: ir.Type) -> ir.Type:
    """Return the type in memory of a complex type."""
    return ir.IntegerType.get_signless(2 * ir.FloatType(ir.ComplexType(type_).element_type).width)


def _brings_complex(op: ir.Operation) -> bool:
    """Tell whether ``op`` makes complex numbers or a tensor of them, or is a function that takes them."""
    name = op.name
    if name == "func.func":
        return any(_stored(each.type) != each.type or _is_complex(each) for each in arguments_of(op))
    if name in ("arith.constant", AllocateSharedOp.OPERATION_NAME):
        return _stored(op.results[0].type) != op.results[0].type
    return name.startswith("complex.")


class _Expander:
    """Goes through the operations in program order, so that the parts of what an operation takes are known."""

    def __init__(self) -> None:
        self._parts: dict[ir.Value, _Parts] = {}
        self._replaced: list[ir.Operation] = []
        self._arguments: list[ir.BlockArgument] = []

    def expand(self, operations: Sequence[ir.Operation]) -> None:
        """Expand ``operations``, which are all of a module."""
        for op in operations:
            self._store_tensors(op)
        for op in operations:
            if op.name == "func.func":
                _expand_signature(op)
                self._expand_arguments(op)
            elif op.name == AtomicRmwOp.OPERATION_NAME:
                self._unpack_old(op)
            elif any(map(_is_complex, op.results)) or any(map(_is_complex, op.operands)):
                self._expand(op)
            elif traits_of(op.name).passes_on:
                self._expand_arguments(op)
        for op in reversed(self._replaced):
            op.erase()
        for argument in reversed(self._arguments):
            argument.owner.erase_argument(argument.arg_number)

    def _store_tensors(self, op: ir.Operation) -> None:
        """Change the types of complex tensors."""
        for value in (*op.results, *arguments_of(op)):
            type_ = _stored(value.type)
            if type_ != value.type:
                if op.name == "arith.constant":
                    refuse_type(op, "constant tensors", value.type)
                value.set_type(type_)

    def _unpack_old(self, op: ir.Operation) -> None:
        """Let the body of an atomic update take the integer that its element is in memory."""
        body = op.regions[0].blocks[0]
        old = body.arguments[0]
        if not _is_complex(old):
            return
        stored = element_of(op.operands[0])
        with ir.InsertionPoint.at_block_begin(body), op.location:
            self._parts[old] = _unpack(body.add_argument(stored, op.location), old.type)
        self._arguments.append(old)

    def _expand(self, op: ir.Operation) -> None:
        if op.name == YieldOp.OPERATION_NAME and _updates_atomically(op.parent):
            with ir.InsertionPoint(op), op.location:
                op.operands[0] = self._pack(op.operands[0])
            return
        if traits_of(op.name).passes_on:
            self._expand_structural(op)
            return
        rewrite = _REWRITES.get(op.name)
        if rewrite is None:
            refuse("expand-complex", op, "expected an operation on the parts of complex numbers")
        with ir.InsertionPoint(op), op.location:
            rewrite(self, op)

    def _expand_arguments(self, op: ir.Operation) -> None:
        """Put two arguments in place of each complex argument of the blocks of ``op``."""
        for block in blocks_of(op):
            arguments = list(block.arguments)
            first = next((i for i, argument in enumerate(arguments) if _is_complex(argument)), len(arguments))
            # Arguments can only be added at the end.
            for argument in arguments[first:]:
                types = _expand_types([argument.type])
                self._map(argument, [block.add_argument(type_, op.location) for type_ in types])
            self._arguments += arguments[first:]

    def _map(self, old: ir.Value, new: Sequence[ir.Value]) -> None:
        """Let a value be replaced by one of its type, or by its parts."""
        if len(new) == 2:
            self._parts[old] = (new[0], new[1])
        else:
            old.replace_all_uses_with(new[0])

    def _expand_values(self, values: Sequence[ir.Value]) -> list[ir.Value]:
        return [part for value in values for part in self._parts.get(value, (value,))]

    def _expand_structural(self, op: ir.Operation) -> None:
        """Make ``op`` again with two values for each complex one, and its regions."""
        new = ir.Operation.create(
            op.name,
            results=_expand_types([value.type for value in op.results]),
            operands=self._expand_values(list(op.operands)),
            attributes=dict(op.attributes.items()),
            regions=len(op.regions),
            loc=op.location,
            ip=ir.InsertionPoint(op),
        )
        results = iter(new.results)
        for old in op.results:
            self._map(old, list(islice(results, 1 + _is_complex(old))))
        for old_region, new_region in zip(op.regions, new.regions, strict=True):
            for block in list(old_region.blocks):
                block.append_to(new_region)
        self._expand_arguments(new)
        self._replaced.append(op)

    def replace(self, op: ir.Operation, parts: _Parts) -> None:
        """Let ``op`` be replaced by the parts of its result."""
        self._parts[op.results[0]] = parts
        self._replaced.append(op)

    def take(self, op: ir.Operation, part: int) -> None:
        """Replace an operation that takes one part of its operand."""
        op.results[0].replace_all_uses_with(self._parts[op.operands[0]][part])
        self._replaced.append(op)

    def select(self, op: ir.Operation) -> None:
        """Replace `arith.select` by one for each part."""
        condition, then, otherwise = op.operands
        pairs = zip(self._parts[then], self._parts[otherwise], strict=True)
        re, im = (ir.arith.select(condition, a, b) for a, b in pairs)
        self.replace(op, (re, im))

    def extract(self, op: ir.Operation) -> None:
        """Take the parts of an element that is read."""
        stored = element_of(op.operands[0])
        read = _create(op.name, list(op.operands), stored)
        self.replace(op, _unpack(read, op.results[0].type))

    def extract_predicated(self, op: ir.Operation) -> None:
        """Take the parts of an element that is read, or of the fallback."""
        condition, fallback, *rest = op.operands
        packed = self._pack(fallback)
        read = _create(op.name, [condition, packed, *rest], packed.type)
        self.replace(op, _unpack(read, op.results[0].type))

    def insert(self, op: ir.Operation) -> None:
        """Join the parts of an element that is written."""
        op.operands[0] = self._pack(op.operands[0])

    def insert_predicated(self, op: ir.Operation) -> None:
        """Join the parts of an element that may be written."""
        op.operands[1] = self._pack(op.operands[1])

    def _pack(self, value: ir.Value) -> ir.Value:
        """Return a complex number as it is in memory."""
        re, im = self._parts[value]
        parts = _create("vector.from_elements", [re, im], ir.VectorType.get([2], re.type))
        return _create("llvm.bitcast", [parts], _stored_scalar(value.type))


def _updates_atomically(op: ir.Operation | ir.OpView | None) -> bool:
    return op is not None and op.name == AtomicRmwOp.OPERATION_NAME


def _unpack(stored: ir.Value, type_: ir.Type) -> _Parts:
    """Return the parts of a number of complex ``type_`` from what is in memory."""
    parts = _create("llvm.bitcast", [stored], ir.VectorType.get([2], ir.ComplexType(type_).element_type))
    re, im = (_element(parts, position) for position in range(2))
    return re, im


def _create(name: str, operands: Sequence[ir.Value], type_: ir.Type) -> ir.Value:
    return ir.Operation.create(name, results=[type_], operands=list(operands)).results[0]


def _element(vector: ir.Value, position: int) -> ir.Value:
    return ir.Operation.create(
        "vector.extract",
        results=[ir.VectorType(vector.type).element_type],
        operands=[vector],
        attributes={"static_position": ir.DenseI64ArrayAttr.get([position])},
    ).results[0]


def _constant(expander: _Expander, op: ir.Operation) -> None:
    values = ir.ArrayAttr(op.attributes["value"])
    re, im = (
        ir.Operation.create("arith.constant", results=[values[i].type], attributes={"value": values[i]}).results[0]
        for i in range(2)
    )
    expander.replace(op, (re, im))


_REWRITES: Mapping[str, Callable[[_Expander, ir.Operation], None]] = {
    "arith.select": _Expander.select,
    "complex.constant": _constant,
    "complex.create": lambda expander, op: expander.replace(op, (op.operands[0], op.operands[1])),
    "complex.im": lambda expander, op: expander.take(op, 1),
    "complex.re": lambda expander, op: expander.take(op, 0),
    "tensor.extract": _Expander.extract,
    "tensor.insert": _Expander.insert,
    PredicatedExtractOp.OPERATION_NAME: _Expander.extract_predicated,
    PredicatedInsertOp.OPERATION_NAME: _Expander.insert_predicated,
}


def _expand_types(types: Sequence[ir.Type]) -> list[ir.Type]:
    expanded = []
    for type_ in types:
        part = _part_of(type_)
        expanded += [_stored(type_)] if part is None else [part, part]
    return expanded


def _expand_signature(function: ir.Operation) -> None:
    """Give a function the types and the attributes of its expanded arguments and results."""
    attributes = function.attributes
    type_ = ir.FunctionType(ir.TypeAttr(attributes["function_type"]).value)
    expanded = ir.FunctionType.get(_expand_types(type_.inputs), _expand_types(type_.results))
    if expanded == type_:
        return
    attributes["function_type"] = ir.TypeAttr.get(expanded)
    given = list(ir.ArrayAttr(attributes["arg_attrs"])) if "arg_attrs" in attributes else []
    given += [ir.DictAttr.get({})] * (len(type_.inputs) - len(given))
    arguments = zip(type_.inputs, given, strict=True)
    attributes["arg_attrs"] = ir.ArrayAttr.get([new for each, old in arguments for new in _described(each, old)])
    if "res_attrs" in attributes:
        results = zip(type_.results, ir.ArrayAttr(attributes["res_attrs"]), strict=True)
        attributes["res_attrs"] = ir.ArrayAttr.get([entry for each, entry in results for _ in _expand_types([each])])


def _described(type_: ir.Type, given: ir.Attribute) -> list[ir.Attribute]:
    """Return the attributes of what an argument of ``type_`` becomes."""
    if isinstance(type_, ir.ComplexType):
        return [given, given]
    if _stored(type_) == type_:
        return [given]
    entries = ir.DictAttr(given)
    element = ir.TypeAttr.get(ir.RankedTensorType(type_).element_type)
    named = {entries[i].name: entries[i].attr for i in range(len(entries))}
    return [ir.DictAttr.get(named | {ELEMENT_TYPE: element})]
