"""The pass lower-to-llvm."""

from collections.abc import Sequence
from typing import ClassVar

from xgpu import ir
from xgpu.dialects.attributes import BLOCK, CLUSTER, GRID, INDEX_BITS, KERNEL, int_array_of, int_of
from xgpu.dialects.xgpu import FUNCTIONS
from xgpu.passes.framework.base import Pass, function_name, functions
from xgpu.passes.framework.call_copies import copied_functions
from xgpu.passes.llvm.block import block_lowerings, check_cluster
from xgpu.passes.llvm.builder import LlvmBuilder, Lowering
from xgpu.passes.llvm.scalars import SCALAR_LOWERINGS
from xgpu.passes.llvm.threads import THREAD_LOWERINGS, declare_functions
from xgpu.passes.llvm.vectors import VECTOR_LOWERINGS
from xgpu.passes.support.refusals import refuse
from xgpu.passes.support.shared_tiles import join_tiles
from xgpu.records import dataclass
from xgpu.structure import walk
from xgpu.target_machine import DEFAULT_MACHINE, LATEST, TargetMachine, TargetName, create_call

_DIMENSIONS = {"x": 0, "y": 1, "z": 2}
_LAUNCH_SIZES = {"gpu.thread_id": BLOCK, "gpu.block_dim": BLOCK, "gpu.block_id": GRID, "gpu.grid_dim": GRID}
# Thread x, y, z, block x, y, z: a kernel's parameters after its buffers where the machine has no registers for them.
_LAUNCH_PARAMETERS = 6


@dataclass(frozen=True)
class LowerToLlvm(Pass):
    """Replaces arith, math, cf, func, vector and gpu operations by those of the LLVM and NVVM dialects.

    Needs lower-scf and lower-tensors to have run. ``index`` becomes the integer type of ``xgpu.index_bits``. On the
    GPU, thread and block numbers are special registers. For the host they are six more i32 parameters of the kernel
    (thread x, y, z, block x, y, z), every pointer is in address space 0, and barriers and shuffles are calls of
    ``@xgpu_host_barrier``, ``@xgpu_host_shuffle_xor`` and ``@xgpu_host_shuffle_idx``.

    ```mlir
    func.func @k(%p: !llvm.ptr<1>) attributes {xgpu.kernel, xgpu.index_bits = 32 : i64} {
      %t = gpu.thread_id x upper_bound 128
      %u = arith.addi %t, %t overflow<nsw> : index
      ...
    // becomes
    llvm.func @k(%p: !llvm.ptr<1>) attributes {xgpu.kernel, xgpu.index_bits = 32 : i64} {
      %t = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32
      %u = llvm.add %t, %t {xgpu.flags = "nsw"} : i32
      ...
    ```
    """

    NAME: ClassVar[str] = "lower-to-llvm"
    target: TargetName = DEFAULT_MACHINE
    """The machine to lower for."""
    capability: int = LATEST
    """The compute capability of a GPU times ten."""
    specific: bool = True
    """Whether the GPU has the instructions that only those of its capability or family have (``sm_90a``)."""

    def apply(self, module: ir.Module) -> None:
        copied = copied_functions(module)
        machine = self.target.machine(self.capability, self.specific)
        if machine.has_address_spaces:
            join_tiles(module)
        for op in module.body.operations:
            if op.operation.name == "llvm.mlir.global" and not machine.has_address_spaces:
                op.operation.attributes["addr_space"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 0)
        for function in functions(module):
            _FunctionLowering(machine, function, function_name(function) in copied).run()
        declare_functions(module, machine)


class _FunctionLowering:
    def __init__(self, machine: TargetMachine, function: ir.func.FuncOp, is_copied: bool):
        attributes = function.operation.attributes
        bits = int_of(attributes[INDEX_BITS]) if INDEX_BITS in attributes else 64
        self._function = function.operation
        self._is_kernel = KERNEL in attributes
        self._is_copied = is_copied
        self._builder = LlvmBuilder(machine, bits)
        self._entry = self._function.regions[0].blocks[0]
        self._launch_arguments: list[ir.Value] = []
        self._lowerings: dict[str, Lowering] = {
            **SCALAR_LOWERINGS,
            **VECTOR_LOWERINGS,
            **THREAD_LOWERINGS,
            **block_lowerings(machine),
            "cf.br": self._branch,
            "cf.cond_br": self._branch,
            "cf.switch": self._branch,
            "func.return": self._return,
            "func.call": self._call,
            "gpu.thread_id": self._launch_index,
            "gpu.block_id": self._launch_index,
            "gpu.block_dim": self._launch_size,
            "gpu.grid_dim": self._launch_size,
            "llvm.addrspacecast": self._address_space_cast,
        }

    def run(self) -> None:
        if CLUSTER in self._function.attributes:
            check_cluster(self._builder.machine, self._function)
        # What encloses others comes first: if it is not lowered, that is what is wrong, not what is in it.
        operations = [op for op in walk(self._function, post_order=False) if op != self._function]
        self._convert_types(operations)
        if self._is_kernel and not self._builder.machine.registers:
            i32 = self._builder.i32
            arguments = [self._entry.add_argument(i32, self._function.location) for _ in range(_LAUNCH_PARAMETERS)]
            self._launch_arguments = list(arguments)
        for op in operations:
            name = op.name
            lowering = self._lowerings.get(name)
            if lowering is not None:
                self._replace(op, lowering)
            elif not name.startswith(("llvm.", "nvvm.")):
                refuse(LowerToLlvm.NAME, op, f"has no lowering; expected {_advice(name)}")
        self._make_function()

    def _convert_types(self, operations: list[ir.Operation]) -> None:
        """Give every value its type at the llvm level; operations that do not fit it any more are replaced next."""
        convert = self._builder.type
        for block in self._function.regions[0].blocks:
            for argument in block.arguments:
                argument.set_type(convert(argument.type))
        for op in operations:
            for result in op.results:
                type_ = result.type
                new = convert(type_)
                if new is not type_:
                    result.set_type(new)

    def _replace(self, op: ir.Operation, lowering: Lowering) -> None:
        with ir.InsertionPoint(op), op.location:
            values = lowering(self._builder, op)
        for old, new in zip(op.results, values, strict=True):
            old.replace_all_uses_with(new)
        op.erase()

    def _branch(self, b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
        """Branches have the same operands and attributes in both dialects."""
        ir.Operation.create(
            op.name.replace("cf.", "llvm."),
            operands=list(op.operands),
            attributes=dict(op.attributes.items()),
            successors=list(op.successors),
        )
        return []

    def _return(self, b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
        """Several results are returned as one struct."""
        values = list(op.operands)
        if len(values) > 1:
            type_ = _result_type([value.type for value in values])
            struct = b.op("mlir.poison", [], type_)
            for position, value in enumerate(values):
                where = {"position": ir.DenseI64ArrayAttr.get([position])}
                struct = b.op("insertvalue", [struct, value], type_, where)
            values = [struct]
        ir.Operation.create("llvm.return", operands=values)
        return []

    def _call(self, b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
        types = [value.type for value in op.results]
        callee = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
        call = create_call(callee, list(op.operands), [_result_type(types)] if types else [])
        if len(types) < 2:
            return list(call.results)
        return [
            b.op("extractvalue", [call.results[0]], type_, {"position": ir.DenseI64ArrayAttr.get([position])})
            for position, type_ in enumerate(types)
        ]

    def _launch_dimension(self, op: ir.Operation) -> tuple[str, int, int | None]:
        """Return the dimension's letter and number, and the launch size in it as far as it is known."""
        letter = str(op.attributes["dimension"]).removeprefix("#gpu<dim ").removeprefix("#gpu.dim<").removesuffix(">")
        attribute = self._function.attributes.get(_LAUNCH_SIZES[op.name])
        number = _DIMENSIONS[letter]
        return letter, number, None if attribute is None else int_array_of(attribute)[number]

    def _launch_index(self, b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
        letter, number, size = self._launch_dimension(op)
        if "upper_bound" in op.attributes:
            size = int_of(op.attributes["upper_bound"])
        if size == 1:
            return [b.constant(0, b.index)]
        if b.machine.registers:
            attributes: dict[str, ir.Attribute] = {}
            if size is not None:
                attributes["range"] = ir.Attribute.parse(f"#llvm.constant_range<i32, 0, {size}>")
            name = f"{b.machine.registers[op.name]}.{letter}"
            value: ir.Value = ir.Operation.create(name, results=[b.i32], attributes=attributes).results[0]
        elif self._is_kernel:
            value = self._launch_arguments[number + (3 if op.name == "gpu.block_id" else 0)]
        else:
            refuse(
                LowerToLlvm.NAME, op, f"expected to be in a kernel: no other function knows it on the {b.machine.name}"
            )
        return [value if b.index == b.i32 else b.op("zext", [value], b.index, {"nonNeg": ir.UnitAttr.get()})]

    def _launch_size(self, b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
        letter, _, size = self._launch_dimension(op)
        if size is None:
            where = f"attribute '{_LAUNCH_SIZES[op.name]}'"
            refuse(LowerToLlvm.NAME, op, f"dimension {letter} needs {where} on its function")
        return [b.constant(size, b.index)]

    def _address_space_cast(self, b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
        source, type_ = op.operands[0], op.results[0].type
        return [source if source.type == type_ else b.op("addrspacecast", [source], type_)]

    def _make_function(self) -> None:
        """Move the body into an llvm.func: internal unless a kernel, and inlined always or never."""
        old = self._function
        convert = self._builder.type
        results = [
            convert(type_) for type_ in ir.FunctionType(ir.TypeAttr(old.attributes["function_type"]).value).results
        ]
        inputs = [argument.type for argument in self._entry.arguments]
        type_ = ir.llvm.FunctionType.get(_result_type(results), inputs)
        attributes = {name: value for name, value in old.attributes.items() if name.startswith("xgpu.")}
        attributes["sym_name"] = old.attributes["sym_name"]
        attributes["function_type"] = ir.TypeAttr.get(type_)
        given = list(ir.ArrayAttr(old.attributes["arg_attrs"])) if "arg_attrs" in old.attributes else []
        if given:
            missing = len(inputs) - len(given)
            attributes["arg_attrs"] = ir.ArrayAttr.get([*given, *[ir.DictAttr.get({})] * missing])
        if not self._is_kernel:
            attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<internal>")
            attributes["always_inline" if self._is_copied else "no_inline"] = ir.UnitAttr.get()
        new = ir.Operation.create(
            "llvm.func", attributes=attributes, regions=1, loc=old.location, ip=ir.InsertionPoint(old)
        )
        for block in list(old.regions[0].blocks):
            block.append_to(new.regions[0])
        old.erase()


def _result_type(types: Sequence[ir.Type]) -> ir.Type:
    if not types:
        return ir.Type.parse("!llvm.void")
    return types[0] if len(types) == 1 else ir.llvm.StructType.get_literal(list(types))


def _advice(name: str) -> str:
    """Say which pass should have removed an operation."""
    passes = {"scf": "lower-scf", "tensor": "lower-tensors", "xgpu": "lower-indexing", "math": "expand-math"}
    earlier = "expand-math" if name in FUNCTIONS else passes.get(name.partition(".")[0])
    return f"{earlier} to have run before" if earlier else "arith, cf, func, gpu, index, math and vector operations"
