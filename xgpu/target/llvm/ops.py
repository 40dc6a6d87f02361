"""One function per kind of LLVM or NVVM operation: its LLVM IR text without the result's name.

``INSTRUCTIONS`` maps operation names to these functions. ``LlvmWriter`` is what they may ask of the function being
written: operand and type texts, flags, branch targets and declarations of intrinsics.
"""

import re
from collections.abc import Callable
from functools import partial
from typing import Protocol

from xgpu import ir
from xgpu.dialects.attributes import CONVERGENT
from xgpu.errors import CompilerError
from xgpu.target.llvm.intrinsics import IMMEDIATES, OVERLOADS
from xgpu.target.llvm.types import TypePrinter, Value, quote, symbol

DYNAMIC_INDEX = -(2**31)
ORDERINGS = {1: "unordered", 2: "monotonic", 4: "acquire", 5: "release", 6: "acq_rel", 7: "seq_cst"}
ATOMIC_OPERATIONS = (
    "xchg add sub and nand or xor max min umax umin fadd fsub fmax fmin uinc_wrap udec_wrap usub_cond usub_sat "
    "fmaximum fminimum fmaximumnum fminimumnum"
).split()
INTEGER_PREDICATES = "eq ne slt sle sgt sge ult ule ugt uge".split()
FLOAT_PREDICATES = "false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true".split()


class LlvmWriter(Protocol):
    """State of the enclosing function that writing one operation needs."""

    types: TypePrinter

    def value(self, value: Value) -> str:
        """Return an operand's text without its type: ``%v3`` or a literal."""

    def typed(self, value: Value) -> str:
        """Return an operand's text with its type: ``i32 %v3``."""

    def flags(self, op: ir.Operation) -> str:
        """Return the overflow or no-wrap flags of an operation, each followed by a space."""

    def targets(self) -> list[str]:
        """Return the labels that the current block's terminator branches to, one per successor."""

    def declare(self, name: str, result: str, parameters: list[str]) -> None:
        """Ask for a declaration of an intrinsic in the module."""

    def metadata(self, body: str) -> str:
        """Return the ``!N`` of a metadata node, made on first use."""

    def loop_metadata(self, annotation: ir.Attribute) -> str:
        """Return the ``!N`` of a new ``!llvm.loop`` node for a branch's annotation."""


Instruction = Callable[[LlvmWriter, ir.Operation], str]


def result_type(w: LlvmWriter, op: ir.Operation) -> str:
    """Return the text of an operation's result type, ``void`` if it has none."""
    results = op.results
    return w.types(results[0].type) if len(results) else "void"


def fast_math(op: ir.Operation) -> str:
    """Return the fast-math flags of an operation, each followed by a space."""
    flags = op.attributes.get("fastmathFlags")
    if flags is None:
        return ""
    words = str(flags).removeprefix("#llvm.fastmath<").removesuffix(">")
    return "" if words == "none" else words.replace(",", "") + " "


def _integer(op: ir.Operation, name: str) -> int:
    attribute = op.attributes.get(name)
    return 0 if attribute is None else int(attribute.value)  # type: ignore[attr-defined]


def _plain(opcode: str, w: LlvmWriter, op: ir.Operation) -> str:
    lhs, rhs = op.operands
    return f"{opcode} {w.typed(lhs)}, {w.value(rhs)}"


def _wrapping(opcode: str, w: LlvmWriter, op: ir.Operation) -> str:
    lhs, rhs = op.operands
    return f"{opcode} {w.flags(op)}{w.typed(lhs)}, {w.value(rhs)}"


def _marked(opcode: str, attribute: str, flag: str, w: LlvmWriter, op: ir.Operation) -> str:
    """Write a binary operation that one unit attribute marks: ``exact`` or ``disjoint``."""
    lhs, rhs = op.operands
    mark = f"{flag} " if attribute in op.attributes else ""
    return f"{opcode} {mark}{w.typed(lhs)}, {w.value(rhs)}"


def _float_binary(opcode: str, w: LlvmWriter, op: ir.Operation) -> str:
    lhs, rhs = op.operands
    return f"{opcode} {fast_math(op)}{w.typed(lhs)}, {w.value(rhs)}"


def _fneg(w: LlvmWriter, op: ir.Operation) -> str:
    return f"fneg {fast_math(op)}{w.typed(op.operands[0])}"


def _cast(opcode: str, w: LlvmWriter, op: ir.Operation) -> str:
    mark = "nneg " if "nonNeg" in op.attributes else ""
    return f"{opcode} {mark}{w.typed(op.operands[0])} to {result_type(w, op)}"


def _truncate(w: LlvmWriter, op: ir.Operation) -> str:
    return f"trunc {w.flags(op)}{w.typed(op.operands[0])} to {result_type(w, op)}"


def _float_cast(opcode: str, w: LlvmWriter, op: ir.Operation) -> str:
    return f"{opcode} {fast_math(op)}{w.typed(op.operands[0])} to {result_type(w, op)}"


def _icmp(w: LlvmWriter, op: ir.Operation) -> str:
    lhs, rhs = op.operands
    return f"icmp {INTEGER_PREDICATES[_integer(op, 'predicate')]} {w.typed(lhs)}, {w.value(rhs)}"


def _fcmp(w: LlvmWriter, op: ir.Operation) -> str:
    lhs, rhs = op.operands
    predicate = FLOAT_PREDICATES[_integer(op, "predicate")]
    return f"fcmp {fast_math(op)}{predicate} {w.typed(lhs)}, {w.value(rhs)}"


def _select(w: LlvmWriter, op: ir.Operation) -> str:
    condition, on_true, on_false = op.operands
    return f"select {fast_math(op)}{w.typed(condition)}, {w.typed(on_true)}, {w.typed(on_false)}"


def _freeze(w: LlvmWriter, op: ir.Operation) -> str:
    return f"freeze {w.typed(op.operands[0])}"


def _element_pointer(w: LlvmWriter, op: ir.Operation) -> str:
    base, *dynamic = op.operands
    attributes = op.attributes
    rest = iter(dynamic)
    indices = [
        w.typed(next(rest)) if index == DYNAMIC_INDEX else f"i32 {index}"
        for index in attributes["rawConstantIndices"]  # type: ignore[attr-defined]
    ]
    element = w.types(attributes["elem_type"].value)  # type: ignore[attr-defined]
    return f"getelementptr {w.flags(op)}{element}, {w.typed(base)}, {', '.join(indices)}"


def _scope_and_order(op: ir.Operation, *orderings: str) -> str:
    scope = op.attributes.get("syncscope")
    words = [ORDERINGS[_integer(op, name)] for name in orderings]
    if scope is not None:
        words.insert(0, f"syncscope({quote(scope.value)})")  # type: ignore[attr-defined]
    return " " + " ".join(words)


def _memory_suffix(w: LlvmWriter, op: ir.Operation) -> str:
    """Return what follows the pointer of a load or store: ordering, alignment and metadata."""
    attributes = op.attributes
    text = _scope_and_order(op, "ordering") if _integer(op, "ordering") else ""
    if "alignment" in attributes:
        text += f", align {_integer(op, 'alignment')}"
    if "nontemporal" in attributes:
        text += f", !nontemporal {w.metadata('i32 1')}"
    if "invariant" in attributes:
        text += f", !invariant.load {w.metadata('')}"
    return text


def _memory_prefix(op: ir.Operation) -> str:
    atomic = "atomic " if _integer(op, "ordering") else ""
    return atomic + ("volatile " if "volatile_" in op.attributes else "")


def _load(w: LlvmWriter, op: ir.Operation) -> str:
    return f"load {_memory_prefix(op)}{result_type(w, op)}, {w.typed(op.operands[0])}{_memory_suffix(w, op)}"


def _store(w: LlvmWriter, op: ir.Operation) -> str:
    value, pointer = op.operands
    return f"store {_memory_prefix(op)}{w.typed(value)}, {w.typed(pointer)}{_memory_suffix(w, op)}"


def _atomic_update(w: LlvmWriter, op: ir.Operation) -> str:
    pointer, value = op.operands
    operation = ATOMIC_OPERATIONS[_integer(op, "bin_op")]
    volatile = "volatile " if "volatile_" in op.attributes else ""
    alignment = f", align {_integer(op, 'alignment')}" if "alignment" in op.attributes else ""
    order = _scope_and_order(op, "ordering")
    return f"atomicrmw {volatile}{operation} {w.typed(pointer)}, {w.typed(value)}{order}{alignment}"


def _compare_exchange(w: LlvmWriter, op: ir.Operation) -> str:
    pointer, expected, new = op.operands
    marks = ("weak " if "weak" in op.attributes else "") + ("volatile " if "volatile_" in op.attributes else "")
    alignment = f", align {_integer(op, 'alignment')}" if "alignment" in op.attributes else ""
    order = _scope_and_order(op, "success_ordering", "failure_ordering")
    return f"cmpxchg {marks}{w.typed(pointer)}, {w.typed(expected)}, {w.typed(new)}{order}{alignment}"


def _fence(w: LlvmWriter, op: ir.Operation) -> str:
    return "fence" + _scope_and_order(op, "ordering")


def _alloca(w: LlvmWriter, op: ir.Operation) -> str:
    element = w.types(op.attributes["elem_type"].value)  # type: ignore[attr-defined]
    alignment = f", align {_integer(op, 'alignment')}" if _integer(op, "alignment") else ""
    pointer = op.results[0].type
    assert isinstance(pointer, ir.llvm.PointerType)
    space = f", addrspace({pointer.address_space})" if pointer.address_space else ""
    return f"alloca {element}, {w.typed(op.operands[0])}{alignment}{space}"


def _positions(op: ir.Operation) -> str:
    return "".join(f", {index}" for index in op.attributes["position"])  # type: ignore[attr-defined]


def _extract_value(w: LlvmWriter, op: ir.Operation) -> str:
    return f"extractvalue {w.typed(op.operands[0])}{_positions(op)}"


def _insert_value(w: LlvmWriter, op: ir.Operation) -> str:
    container, value = op.operands
    return f"insertvalue {w.typed(container)}, {w.typed(value)}{_positions(op)}"


def _extract_element(w: LlvmWriter, op: ir.Operation) -> str:
    vector, position = op.operands
    return f"extractelement {w.typed(vector)}, {w.typed(position)}"


def _insert_element(w: LlvmWriter, op: ir.Operation) -> str:
    vector, value, position = op.operands
    return f"insertelement {w.typed(vector)}, {w.typed(value)}, {w.typed(position)}"


def _shuffle_vector(w: LlvmWriter, op: ir.Operation) -> str:
    first, second = op.operands
    mask = list(op.attributes["mask"])  # type: ignore[call-overload]
    lanes = ", ".join("i32 poison" if lane < 0 else f"i32 {lane}" for lane in mask)
    return f"shufflevector {w.typed(first)}, {w.typed(second)}, <{len(mask)} x i32> <{lanes}>"


def _branch(w: LlvmWriter, op: ir.Operation) -> str:
    return f"br label %{w.targets()[0]}{_branch_metadata(w, op)}"


def _conditional_branch(w: LlvmWriter, op: ir.Operation) -> str:
    on_true, on_false = w.targets()
    condition = w.value(op.operands[0])
    return f"br i1 {condition}, label %{on_true}, label %{on_false}{_branch_metadata(w, op)}"


def _branch_metadata(w: LlvmWriter, op: ir.Operation) -> str:
    text = ""
    annotation = op.attributes.get("loop_annotation")
    if annotation is not None:
        text += f", !llvm.loop {w.loop_metadata(annotation)}"
    weights = op.attributes.get("branch_weights")
    if weights is not None:
        counts = "".join(f", i32 {weight}" for weight in weights)  # type: ignore[attr-defined]
        text += f", !prof {w.metadata(f'!"branch_weights"{counts}')}"
    return text


def _switch(w: LlvmWriter, op: ir.Operation) -> str:
    default, *cases = w.targets()
    value = op.operands[0]
    type_ = w.types(value.type)
    attribute = op.attributes.get("case_values")
    numbers = [int(number) for number in attribute] if attribute is not None else []  # type: ignore[attr-defined]
    arms = " ".join(f"{type_} {number}, label %{label}" for number, label in zip(numbers, cases, strict=True))
    return f"switch {w.typed(value)}, label %{default} [ {arms} ]{_branch_metadata(w, op)}"


def _return(w: LlvmWriter, op: ir.Operation) -> str:
    return f"ret {w.typed(op.operands[0])}" if len(op.operands) else "ret void"


def _unreachable(w: LlvmWriter, op: ir.Operation) -> str:
    return "unreachable"


def _arguments(w: LlvmWriter, op: ir.Operation, values: list[Value]) -> str:
    """Return a call's argument list; operand bundles (a second operand group) are refused."""
    bundles = op.attributes.get("op_bundle_sizes")
    if bundles is not None and len(bundles):  # type: ignore[arg-type]
        raise CompilerError(f"operand bundles on '{op.name}' are not supported")
    return ", ".join(w.typed(value) for value in values)


def _call(w: LlvmWriter, op: ir.Operation) -> str:
    operands = list(op.operands)
    callee = op.attributes.get("callee")
    target = w.value(operands.pop(0)) if callee is None else symbol(callee.value)  # type: ignore[attr-defined]
    if "var_callee_type" in op.attributes:
        raise CompilerError(f"a call of the variadic function {target} is not supported")
    convention = calling_convention(op)
    arguments = _arguments(w, op, operands)
    return f"call {fast_math(op)}{convention}{result_type(w, op)} {target}({arguments})"


def calling_convention(op: ir.Operation) -> str:
    """Return the calling convention of a function or call followed by a space, nothing for C's."""
    attribute = op.attributes.get("CConv")
    name = "ccc" if attribute is None else str(attribute).removeprefix("#llvm.cconv<").removesuffix(">")
    names = {"ccc": "", "fastcc": "fastcc ", "coldcc": "coldcc ", "ptx_kernelcc": "ptx_kernel "}
    if name not in names:
        raise CompilerError(f"calling convention '{name}' of '{op.name}' is not supported")
    return names[name]


def intrinsic_call(w: LlvmWriter, op: ir.Operation, name: str, extra: tuple[str, ...] = ()) -> str:
    """Write ``op`` as a call of the intrinsic ``name`` on its operands and then ``extra`` typed constants."""
    result = result_type(w, op)
    operands = list(op.operands)
    arguments = [w.typed(operand) for operand in operands] + list(extra)
    parameters = [w.types(operand.type) for operand in operands] + [text.split(" ", 1)[0] for text in extra]
    w.declare(name, result, parameters)
    range_ = op.attributes.get("range")
    prefix = _range(range_) if range_ is not None else fast_math(op)
    return f"call {prefix}{result} {symbol(name)}({', '.join(arguments)})"


def _range(attribute: ir.Attribute) -> str:
    """Return ``#llvm.constant_range<i32, 0, 128>`` as the return attribute ``range(i32 0, 128)``."""
    match = re.fullmatch(r"#llvm\.constant_range<(i\d+), (-?\d+), (-?\d+)>", str(attribute))
    if match is None:
        raise CompilerError(f"unexpected range attribute {attribute}")
    return f"range({match[1]} {match[2]}, {match[3]}) "


def overloaded_name(w: LlvmWriter, op: ir.Operation, base: str) -> str:
    """Return the full name of the intrinsic ``base`` (without ``llvm.``) for the types that ``op`` calls it on."""
    parts = [f"llvm.{base}"]
    for position in OVERLOADS[base]:
        value = op.results[0] if position == "r" else op.operands[int(position)]
        parts.append(w.types.suffix(value.type))
    return ".".join(parts)


def intrinsic(w: LlvmWriter, op: ir.Operation) -> str:
    """Write any ``llvm.intr.*`` operation whose overloading is known."""
    base = op.name.removeprefix("llvm.intr.")
    extra: tuple[str, ...] = ()
    if base in IMMEDIATES:
        attribute, type_ = IMMEDIATES[base]
        extra = (f"{type_} {_integer(op, attribute)}",)
    return intrinsic_call(w, op, overloaded_name(w, op, base), extra)


def _call_intrinsic(w: LlvmWriter, op: ir.Operation) -> str:
    name: str = op.attributes["intrin"].value  # type: ignore[attr-defined]
    base = name.removeprefix("llvm.")
    _arguments(w, op, [])
    return intrinsic_call(w, op, overloaded_name(w, op, base) if base in OVERLOADS else name)


def _inline_asm(w: LlvmWriter, op: ir.Operation) -> str:
    attributes = op.attributes
    marks = "sideeffect " if "has_side_effects" in attributes else ""
    marks += "alignstack " if "is_align_stack" in attributes else ""
    marks += "inteldialect " if _integer(op, "asm_dialect") else ""
    code = quote(attributes["asm_string"].value)  # type: ignore[attr-defined]
    constraints = quote(attributes["constraints"].value)  # type: ignore[attr-defined]
    arguments = ", ".join(w.typed(value) for value in op.operands)
    convergent = " convergent" if CONVERGENT in attributes else ""
    return f"call {result_type(w, op)} asm {marks}{code}, {constraints}({arguments}){convergent}"


def special_register(w: LlvmWriter, op: ir.Operation) -> str:
    """Write a read of an NVVM special register, whose operation and intrinsic have one name."""
    return intrinsic_call(w, op, f"llvm.{op.name}")


def _barrier(w: LlvmWriter, op: ir.Operation) -> str:
    if op.attributes.get("reductionOp") is not None or len(op.results):
        raise CompilerError("a barrier with a reduction is not supported")
    aligned = op.attributes.get("aligned")
    middle = "" if aligned is not None and not aligned.value else "aligned."  # type: ignore[attr-defined]
    if len(op.operands) == 2:
        return intrinsic_call(w, op, f"llvm.nvvm.barrier.cta.sync.{middle}count")
    extra = () if len(op.operands) else ("i32 0",)
    return intrinsic_call(w, op, f"llvm.nvvm.barrier.cta.sync.{middle}all", extra)


def _kind(op: ir.Operation) -> str:
    return str(op.attributes["kind"]).split("<", 1)[1].removesuffix(">").strip()


def _shuffle(w: LlvmWriter, op: ir.Operation) -> str:
    suffix = w.types.suffix(op.operands[1].type)
    suffix += "p" if "return_value_and_is_valid" in op.attributes else ""
    return intrinsic_call(w, op, f"llvm.nvvm.shfl.sync.{_kind(op)}.{suffix}")


def _vote(w: LlvmWriter, op: ir.Operation) -> str:
    return intrinsic_call(w, op, f"llvm.nvvm.vote.{_kind(op)}.sync")


def _warp_reduction(w: LlvmWriter, op: ir.Operation) -> str:
    return intrinsic_call(w, op, f"llvm.nvvm.redux.sync.{_kind(op)}")


def _warp_barrier(w: LlvmWriter, op: ir.Operation) -> str:
    return intrinsic_call(w, op, "llvm.nvvm.bar.warp.sync")


INSTRUCTIONS: dict[str, Instruction] = {
    **{f"llvm.{name}": partial(_wrapping, name) for name in ("add", "sub", "mul", "shl")},
    **{f"llvm.{name}": partial(_plain, name) for name in ("urem", "srem", "and", "xor")},
    **{f"llvm.{name}": partial(_marked, name, "isExact", "exact") for name in ("udiv", "sdiv", "lshr", "ashr")},
    "llvm.or": partial(_marked, "or", "isDisjoint", "disjoint"),
    **{f"llvm.{name}": partial(_float_binary, name) for name in ("fadd", "fsub", "fmul", "fdiv", "frem")},
    **{
        f"llvm.{name}": partial(_cast, name)
        for name in "zext sext uitofp sitofp fptoui fptosi bitcast ptrtoint inttoptr addrspacecast".split()
    },
    **{f"llvm.{name}": partial(_float_cast, name) for name in ("fpext", "fptrunc")},
    "llvm.fneg": _fneg,
    "llvm.trunc": _truncate,
    "llvm.icmp": _icmp,
    "llvm.fcmp": _fcmp,
    "llvm.select": _select,
    "llvm.freeze": _freeze,
    "llvm.getelementptr": _element_pointer,
    "llvm.load": _load,
    "llvm.store": _store,
    "llvm.atomicrmw": _atomic_update,
    "llvm.cmpxchg": _compare_exchange,
    "llvm.fence": _fence,
    "llvm.alloca": _alloca,
    "llvm.extractvalue": _extract_value,
    "llvm.insertvalue": _insert_value,
    "llvm.extractelement": _extract_element,
    "llvm.insertelement": _insert_element,
    "llvm.shufflevector": _shuffle_vector,
    "llvm.br": _branch,
    "llvm.cond_br": _conditional_branch,
    "llvm.switch": _switch,
    "llvm.return": _return,
    "llvm.unreachable": _unreachable,
    "llvm.call": _call,
    "llvm.call_intrinsic": _call_intrinsic,
    "llvm.inline_asm": _inline_asm,
    **{f"llvm.intr.{base}": intrinsic for base in OVERLOADS},
    "nvvm.barrier": _barrier,
    "nvvm.shfl.sync": _shuffle,
    "nvvm.vote.sync": _vote,
    "nvvm.redux.sync": _warp_reduction,
    "nvvm.bar.warp.sync": _warp_barrier,
}


def instruction_for(name: str) -> Instruction | None:
    """Return the function that writes operations of this name, None if there is none."""
    if name.startswith("nvvm.read.ptx.sreg."):
        return special_register
    return INSTRUCTIONS.get(name)
