"""The parts of a block program that JAX lowers: what is computed from tiles between operations of level ``tiles``."""

import io
from collections.abc import Sequence
from typing import Any

import jax
from jax import jit as jax_jit

from xgpu import ir
from xgpu.block_language.captured import constant_value, line_of
from xgpu.block_language.program import Body, is_cut, steps_p
from xgpu.errors import Unsupported
from xgpu.frontend.callbacks import refuse_callbacks
from xgpu.frontend.jax_function import LIBRARY_PREFIXES, lower
from xgpu.hlo.constants import splat_of
from xgpu.hlo.operations import OPERATIONS
from xgpu.hlo.source_location import unsupported
from xgpu.jax_internals import core
from xgpu.records import dataclass
from xgpu.structure import nested

_INSTEAD = {
    "dynamic_slice": "read a tile of an array at numbers of blocks and steps",
    "gather": "read a tile of an array at numbers of blocks and steps",
    "dynamic_update_slice": "select elements by block.index",
    "scatter": "store tiles of an output at numbers of blocks",
    "while": "block.steps has the steps of a block, whose tiles are in one place",
    "case": "select elements by jnp.where",
    "reverse": "read the tile by its elements, in the other order",
    "convolution": "read tiles at offsets, and add up their products",
    "custom_call": "kernels and libraries compute whole arrays, outside of kernels",
}
_REFUSED = frozenset(
    (
        "stablehlo.convolution",
        "stablehlo.dynamic_slice",
        "stablehlo.dynamic_update_slice",
        "stablehlo.gather",
        "stablehlo.map",
        "stablehlo.reduce_window",
        "stablehlo.reverse",
        "xgpu.scan",
    )
)
"""Operations of other kernels that there are none of on tiles."""


@dataclass(frozen=True)
class BodyParts:
    """The operations of a body: ``cuts`` are those of level ``tiles``, ``block`` has all others, as StableHLO.

    The block's arguments are the body's, then what each cut makes. It returns what each cut takes, then what the body
    does. ``inner`` are the parts of steps, by the number of the cut.
    """

    cuts: Sequence[Any]
    module: ir.Module
    inner: dict[int, "BodyParts"]

    @property
    def block(self) -> ir.Block:
        """The operations on tiles."""
        (function,) = self.module.body.operations
        block: ir.Block = function.operation.regions[0].blocks[0]
        return block


def part_of(body: Body, name: str, context: ir.Context) -> BodyParts:
    """Return the operations of a body, lowered in a context. Raises Unsupported for what tiles have no code for."""
    cuts = [each for each in body.equations if is_cut(each)]
    rest = [each for each in body.equations if not is_cut(each)]
    for each in rest:
        _refuse_cuts_inside(each)
    given = [*body.arguments, *(value for each in cuts for value in each.outvars)]
    wanted = [*(value for each in cuts for value in each.invars), *body.results]
    effects = core.join_effects(*(each.effects for each in rest))
    debug_info = body.debug_info.with_unknown_names()
    pure = core.Jaxpr((), [*body.constants, *given], wanted, rest, effects, debug_info)

    refuse_callbacks(pure, LIBRARY_PREFIXES, f"kernel {name}: no operation on tiles calls Python")

    def compute(*values: Any) -> list[Any]:
        constants = [constant_value(value) for value in body.constants.values()]
        return list(core.eval_jaxpr(pure, (), *constants, *values))

    types = [jax.ShapeDtypeStruct(each.aval.shape, each.aval.dtype) for each in given]  # type: ignore[no-untyped-call]
    traced = jax_jit(compute, keep_unused=True).trace(*types)
    source = lower(traced, name, "cuda", bool(jax.config.jax_enable_x64))
    _check_operations(source.module, name)
    bytecode = io.BytesIO()
    source.module.operation.write_bytecode(bytecode)
    module = ir.Module.parse(bytecode.getvalue(), context)
    inner = {
        number: part_of(each.params["body"], name, context)
        for number, each in enumerate(cuts)
        if each.primitive is steps_p
    }
    return BodyParts(cuts, module, inner)


def _refuse_cuts_inside(equation: Any) -> None:
    for inner in core.jaxprs_in_params(equation.params):
        for each in inner.eqns:
            if is_cut(each):
                name = equation.primitive.name
                raise Unsupported(f"tiles are read and steps are made outside of {name}", line_of(each))
            _refuse_cuts_inside(each)


def _check_operations(module: ir.Module, name: str) -> None:
    """Raise Unsupported for operations that there are none of on tiles."""
    (function,) = module.body.operations
    for op in nested(function.operation):
        parent = op.parent
        if op.name in ("func.return", "stablehlo.return") or parent is None or parent.name != "func.func":
            continue
        if op.name not in OPERATIONS or op.name in _REFUSED:
            instead = _INSTEAD.get(op.name.removeprefix("stablehlo."))
            raise unsupported(op, f"kernel {name}: no operation on tiles{f'; {instead}' if instead else ''}")
        if op.name == "stablehlo.reduce" and len(op.results) != 1:
            raise unsupported(op, f"kernel {name}: reductions on tiles are of one operand")
        if op.name == "stablehlo.constant" and splat_of(op) is None:
            what = "an array of several numbers is no part of a kernel: make it an argument, or compute it"
            raise unsupported(op, f"kernel {name}: {what}")
