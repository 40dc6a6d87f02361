"""LLVM IR text of function headers, linkage, and parameter and function attributes."""

from xgpu import ir
from xgpu.dialects.attributes import CLUSTER, RESIDENT
from xgpu.errors import CompilerError
from xgpu.target.llvm.ops import calling_convention
from xgpu.target.llvm.types import TypePrinter, quote, symbol

_LINKAGES = (
    "external internal private weak weak_odr linkonce linkonce_odr common appending available_externally extern_weak"
).split()
# LLVM dialect parameter attributes without a value, and their names in LLVM IR.
_PARAMETER_FLAGS = {
    **{f"llvm.{name}": name for name in "noalias readonly writeonly readnone noundef nonnull signext zeroext".split()},
    **{f"llvm.{name}": name for name in "inreg returned immarg nofree noext swiftself nest".split()},
    "llvm.nocapture": "captures(none)",
}
_PARAMETER_SIZES = {"llvm.align": "align {}", "llvm.dereferenceable": "dereferenceable({})"}
_PARAMETER_TYPES = {"llvm.byval": "byval", "llvm.sret": "sret", "llvm.byref": "byref"}
_FUNCTION_FLAGS = {
    "no_inline": "noinline",
    "always_inline": "alwaysinline",
    "inline_hint": "inlinehint",
    "no_unwind": "nounwind",
    "will_return": "willreturn",
    "convergent": "convergent",
    "noreturn": "noreturn",
    "optimize_none": "optnone",
    "hot": "hot",
    "cold": "cold",
}


def linkage(op: ir.Operation) -> str:
    """Return the linkage word of a function or global; an absent attribute is external."""
    attribute = op.attributes.get("linkage")
    if attribute is None:
        return "external"
    word = str(attribute).removeprefix("#llvm.linkage<").removesuffix(">")
    if word not in _LINKAGES:
        raise CompilerError(f"linkage '{word}' is not supported")
    return word


def function_header(op: ir.Operation, types: TypePrinter, is_definition: bool, is_nvptx: bool) -> str:
    """Return a function's text from its linkage to its parameter list; a definition's are ``%arg0``, ``%arg1``..."""
    attributes = op.attributes
    type_ = attributes["function_type"].value  # type: ignore[attr-defined]
    if type_.is_var_arg:
        raise CompilerError("a variadic function is not supported")
    words = [linkage(op), _convention(op, is_nvptx)]
    if words[0] == "external":
        words[0] = ""
    if is_definition and not is_nvptx and "xgpu.kernel" in attributes:
        words[0] = "internal"
    result_attributes = attributes.get("res_attrs")
    if result_attributes is not None:
        words.append(_parameter(result_attributes[0], types))  # type: ignore[index]
    words.append(types(type_.return_type))
    parameter_attributes = attributes.get("arg_attrs")
    parameters = []
    for position, parameter in enumerate(type_.inputs):
        parts = [types(parameter)]
        if parameter_attributes is not None:
            parts.append(_parameter(parameter_attributes[position], types))  # type: ignore[index]
        if is_definition:
            parts.append(f"%arg{position}")
        parameters.append(" ".join(part for part in parts if part))
    name = symbol(attributes["sym_name"].value)  # type: ignore[attr-defined]
    return f"{' '.join(word for word in words if word)} {name}({', '.join(parameters)})"


def _convention(op: ir.Operation, is_nvptx: bool) -> str:
    if is_nvptx and ("xgpu.kernel" in op.attributes or "nvvm.kernel" in op.attributes):
        return "ptx_kernel"
    return calling_convention(op).strip()


def _parameter(attributes: ir.DictAttr, types: TypePrinter) -> str:
    """Return the attributes of one parameter; those of other dialects say nothing to LLVM and are left out."""
    words = []
    for position in range(len(attributes)):
        named = attributes[position]
        name = named.name
        if name in _PARAMETER_FLAGS:
            words.append(_PARAMETER_FLAGS[name])
        elif name in _PARAMETER_SIZES:
            words.append(_PARAMETER_SIZES[name].format(named.attr.value))  # type: ignore[attr-defined]
        elif name in _PARAMETER_TYPES:
            type_ = types(named.attr.value)  # type: ignore[attr-defined]
            words.append(f"{_PARAMETER_TYPES[name]}({type_})")
        elif name == "nvvm.grid_constant":
            words.append('"nvvm.grid_constant"')
        elif name.startswith("llvm."):
            raise CompilerError(f"parameter attribute '{name}' is not supported")
    return " ".join(words)


def function_attributes(op: ir.Operation, is_nvptx: bool) -> str:
    """Return a function's attributes, each with a space before it."""
    attributes = op.attributes
    words = [word for name, word in _FUNCTION_FLAGS.items() if name in attributes]
    for extra in attributes.get("passthrough") or []:  # type: ignore[union-attr]
        if isinstance(extra, ir.ArrayAttr):
            key, value = (each.value for each in extra)  # type: ignore[attr-defined]
            words.append(f"{quote(key)}={quote(value)}")
        else:
            words.append(extra.value)
    memory = attributes.get("memory_effects")
    if memory is not None:
        words.append(_memory(str(memory)))
    if is_nvptx:
        words += _nvvm_attributes(op)
    elif "xgpu.kernel" in attributes:
        words.append("alwaysinline")
    return "".join(f" {word}" for word in dict.fromkeys(words))


def _nvvm_attributes(op: ir.Operation) -> list[str]:
    """Return launch bounds: the kernel's block size, and any ``nvvm.*`` attribute as LLVM's string attribute."""
    words = []
    block = op.attributes.get("xgpu.block")
    if "xgpu.kernel" in op.attributes and block is not None:
        # The required size rather than the largest: a kernel is right for this block size only.
        words.append(f'"nvvm.reqntid"="{_numbers(block)}"')
        if CLUSTER in op.attributes:
            words.append(f'"nvvm.cluster_dim"="{_numbers(op.attributes[CLUSTER])}"')
        if RESIDENT in op.attributes:
            words.append(f'"nvvm.minctasm"="{_numbers(op.attributes[RESIDENT])}"')
    for name, value in op.attributes.items():
        if name.startswith("nvvm.") and name != "nvvm.kernel":
            words.append(f'"{name}"="{_numbers(value)}"')
    return words


def _numbers(attribute: ir.Attribute) -> str:
    if isinstance(attribute, ir.IntegerAttr):
        return str(attribute.value)
    if isinstance(attribute, (ir.DenseI32ArrayAttr, ir.DenseI64ArrayAttr)):
        return ",".join(str(number) for number in attribute)
    raise CompilerError(f"expected an integer or an array of integers, found {attribute}")


def _memory(attribute: str) -> str:
    """Return ``#llvm.memory_effects<other = none, argMem = read, ...>`` as ``memory(argmem: read)``."""
    body = attribute.removeprefix("#llvm.memory_effects<").removesuffix(">")
    effects = dict(item.split(" = ") for item in body.split(", "))
    default = effects.pop("other")
    names = {"argMem": "argmem", "inaccessibleMem": "inaccessiblemem", "errnoMem": "errnomem"}
    listed = [default]
    for key, effect in effects.items():
        if effect != default:
            if key not in names:
                raise CompilerError(f"memory effect '{key} = {effect}' is not supported")
            listed.append(f"{names[key]}: {effect}")
    return f"memory({', '.join(listed)})"
