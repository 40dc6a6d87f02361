"""The operations that passes act on, so that no pass is imported for a program that has none of them.

The classes say it; ``python -m xgpu.tools.make_docs`` writes it down here. A pass that is not here acts on any module.
"""

import functools
import re
from collections.abc import Callable, Iterable
from functools import cached_property

from xgpu import ir
from xgpu.hlo.contents import Contents
from xgpu.passes.framework.base import Pass, text_of
from xgpu.records import dataclass

_TABLE = """
assign-bands
  xgpu.par
assign-layouts
  xgpu.blocks
assign-products{target=sm_90a}
  xgpu.blocks
chain-tiles
  xgpu.blocks
check-independence
  xgpu.par
choose-convolution-layouts{target=sm_90a}
  stablehlo.convolution
choose-product-layouts
  stablehlo.dot_general
close-window-gaps
  stablehlo.reduce_window
concatenate-pads
  stablehlo.dynamic_update_slice
  stablehlo.pad
convert-chlo-scans
  chlo.scan
copy-scatter-operands
  stablehlo.scatter
count-loops{runs=launches}
  stablehlo.case
  stablehlo.if
  stablehlo.optimization_barrier
  stablehlo.while
distribute-loops
  xgpu.par
divide-weights{target=sm_90a find=true}
  stablehlo.dot_general
double-buffer-loops{runs=xla}
  stablehlo.while
drop-empty-scatters
  stablehlo.scatter
drop-empty-windows
  stablehlo.convolution
  stablehlo.reduce_window
  stablehlo.select_and_scatter
drop-unused-state{runs=launches}
  stablehlo.while
expand-convolutions{runs=launches}
  stablehlo.convolution
expand-operations
  stablehlo.batch_norm_grad
  stablehlo.batch_norm_inference
  stablehlo.batch_norm_training
  stablehlo.get_dimension_size
  stablehlo.rng_bit_generator
  stablehlo.select_and_scatter
expand-powers
  stablehlo.power
expand-ragged-products{target=sm_90a products=auto}
  chlo.ragged_dot
expand-short-scans
  xgpu.scan
expand-small-solves
  stablehlo.cholesky
  stablehlo.custom_call
  stablehlo.triangular_solve
expand-solves{runs=launches}
  stablehlo.cholesky
  stablehlo.custom_call
  stablehlo.triangular_solve
expand-sorts{runs=launches}
  chlo.top_k
  stablehlo.sort
expand-transforms{runs=launches}
  stablehlo.fft
find-chains{target=sm_90a find=true gradients=false}
  stablehlo.dot_general
find-matrix-products{target=sm_90a}
  xgpu.launch
find-prefix-scans
  stablehlo.reduce_window
find-recursive-scans
  stablehlo.pad
find-scan-gradients
  xgpu.scan
fix-sizes
  stablehlo.dynamic_broadcast_in_dim
  stablehlo.dynamic_conv
  stablehlo.dynamic_gather
  stablehlo.dynamic_iota
  stablehlo.dynamic_pad
  stablehlo.dynamic_reshape
  stablehlo.real_dynamic_slice
flatten-concatenations
  stablehlo.concatenate
fold-constants
  stablehlo.case
  stablehlo.dynamic_slice
  stablehlo.dynamic_update_slice
  stablehlo.gather
  stablehlo.if
  stablehlo.reduce
  stablehlo.scatter
  stablehlo.select
  stablehlo.sort
  xgpu.scan
forward-barriers{keep=false}
  stablehlo.optimization_barrier
hoist-invariants{target=sm_90a}
  stablehlo.while
hold-buffers
  xgpu.new
hold-elements
  xgpu.seq
invert-divisors
  stablehlo.divide
leave-constants{products=auto}
  stablehlo.constant
leave-epilogues
  chlo.ragged_dot
  stablehlo.convolution
  stablehlo.dot_general
legalize-chlo
  chlo.*
  stablehlo.composite
  stablehlo.custom_call
  xgpu.bessel_i0e
legalize-deprecated
  stablehlo.broadcast
  stablehlo.create_token
  stablehlo.cross-replica-sum
  stablehlo.dot
  stablehlo.einsum
  stablehlo.map
  stablehlo.torch_index_select
  stablehlo.unary_einsum
legalize-mhlo
  mhlo.*
lower-predicated
  xgpu.predicated_extract
  xgpu.predicated_insert
lower-scf
  scf.*
lower-shuffles{max-ops=64}
  xgpu.shuffle
  xgpu.shuffle_reduce
map-threads{target=sm_90a}
  xgpu.launch
mark-held-rows
  stablehlo.reduce
mark-products{target=sm_90a products=auto choices=}
  chlo.ragged_dot
  stablehlo.dot_general
mark-recurrences{target=sm_90a}
  stablehlo.while
mark-update-chains
  stablehlo.dynamic_update_slice
merge-conditionals
  scf.if
merge-counters{runs=xla}
  stablehlo.while
merge-products{target=sm_90a products=auto choices=}
  stablehlo.dot_general
merge-rows{target=sm_90a}
  xgpu.chain
merge-scatters
  stablehlo.scatter
move-transposes{least-bytes=262144}
  stablehlo.broadcast_in_dim
  stablehlo.transpose
multicast-tiles
  xgpu.blocks
multiply-bytes{target=sm_90a products=auto always=false}
  stablehlo.dot_general
order-extremes
  stablehlo.reduce
order-pairs{target=sm_90a}
  stablehlo.reduce
order-reductions
  stablehlo.reduce
order-scatters{deterministic=false}
  stablehlo.scatter
pad-buffers
  xgpu.new
pad-products{target=sm_90a pad=true}
  stablehlo.dot_general
pipeline-steps
  xgpu.seq
pipeline-tiles{target=sm_90a}
  xgpu.blocks
place-barriers
  xgpu.launch
place-buffers
  xgpu.new
place-tiles{target=sm_90a}
  xgpu.blocks
read-resources
  mhlo.constant
  stablehlo.constant
reduce-computed-products{target=sm_90a products=auto}
  stablehlo.dot_general
reduce-vector-products
  stablehlo.dot_general
remove-wrappers
  stablehlo.custom_call
  stablehlo.get_tuple_element
  stablehlo.optimization_barrier
  stablehlo.tuple
rewrite-mhlo
  mhlo.acos
  mhlo.acosh
  mhlo.add_dependency
  mhlo.asin
  mhlo.asinh
  mhlo.atanh
  mhlo.bitcast
  mhlo.copy
  mhlo.cosh
  mhlo.domain
  mhlo.erf
  mhlo.fusion
  mhlo.sinh
  mhlo.topk
  stablehlo.custom_call
rotate-loops{runs=launches}
  stablehlo.while
schedule-tiles
  xgpu.blocks
select-branches{target=sm_90a}
  stablehlo.case
  stablehlo.if
select-row-updates
  stablehlo.scatter
separate-columns
  stablehlo.concatenate
separate-products{target=sm_90a}
  stablehlo.dot_general
serialize-inner-loops
  xgpu.par
share-branch-calls{min-size=25}
  scf.if
share-conditionals
  scf.if
share-memory{target=sm_90a}
  xgpu.new
share-vectors
  vector.transfer_read
simplify-integers
  stablehlo.and
  stablehlo.clamp
  stablehlo.compare
  stablehlo.maximum
  stablehlo.minimum
  stablehlo.not
  stablehlo.or
  stablehlo.reduce
  stablehlo.remainder
  stablehlo.select
simplify-single-reductions
  stablehlo.reduce
simplify-whole-slices
  stablehlo.dynamic_slice
  stablehlo.dynamic_update_slice
  stablehlo.pad
  stablehlo.slice
sink-constants
  stablehlo.case
  stablehlo.if
  stablehlo.while
slice-before-transposes
  stablehlo.transpose
slice-parts
  stablehlo.slice
slice-single-windows
  stablehlo.dynamic_slice
  stablehlo.gather
sort-short-rows
  chlo.top_k
  stablehlo.sort
split-chains{target=sm_90a parts=0}
  xgpu.chain
split-complex-constants
  stablehlo.constant
split-merged-dimensions{least-bytes=262144}
  stablehlo.transpose
split-reductions{target=sm_90a}
  stablehlo.reduce
split-wide-windows{target=sm_90a}
  stablehlo.reduce_window
squeeze-windows
  stablehlo.reduce_window
stage-reads{target=sm_90a}
  xgpu.launch
start-from-identity
  stablehlo.reduce
swizzle-tiles
  xgpu.blocks
take-known-branches
  stablehlo.case
  stablehlo.if
  stablehlo.select
turn-masks{least-elements=1024}
  stablehlo.compare
  stablehlo.constant
  stablehlo.divide
  stablehlo.multiply
  stablehlo.not
  stablehlo.select
turn-product-operands{target=sm_90a products=all}
  stablehlo.dot_general
turn-ragged-products
  chlo.ragged_dot
turn-scans
  stablehlo.concatenate
  stablehlo.pad
  stablehlo.reverse
  stablehlo.slice
unnest-concatenations
  stablehlo.concatenate
unstack-reductions
  stablehlo.reduce
update-single-windows
  stablehlo.scatter
update-strided-windows
  stablehlo.scatter
widen-packed
  stablehlo.reduce
  xgpu.scan
widen-sums
  stablehlo.reduce
  xgpu.scan
"""
"""Names of passes, each with its options as they are if they are left out, and below it the operations."""


@dataclass(frozen=True)
class ActsOn:
    """Operations that a pass acts on, and the text of each of its options that is left out, as they are declared."""

    operations: frozenset[str]
    options: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, pass_class: type[Pass]) -> "ActsOn":
        """Return what the class of a pass says."""
        options = tuple((each.name.replace("_", "-"), text_of(each.default)) for each in pass_class.options())
        return cls(pass_class.OPERATIONS, options)


@functools.cache
def known_passes() -> dict[str, ActsOn]:
    """Return the table: what passes act on, by their names."""
    found = re.findall(r"^([\w-]+)(?:\{(.*)\})?((?:\n .*)+)", _TABLE, re.MULTILINE)
    return {name: ActsOn(frozenset(operations.split()), _options(text)) for name, text, operations in found}


def _options(text: str) -> tuple[tuple[str, str], ...]:
    parts = (word.partition("=") for word in text.split())
    return tuple((name, value) for name, _, value in parts)


@dataclass(frozen=True)
class WaitingPass:
    """The pass called ``NAME`` with the options ``given``, which is loaded for the first module that it acts on."""

    NAME: str
    given: tuple[tuple[str, str], ...]
    make: Callable[[str, dict[str, str]], Pass]

    def has_work(self, contents: Contents) -> bool:
        """Whether the module has what the pass acts on, and the pass says so, too."""
        return not known_passes()[self.NAME].operations.isdisjoint(contents.names) and self.load().has_work(contents)

    def apply(self, module: ir.Module) -> None:
        """Rewrite ``module`` as the pass does."""
        self.load().apply(module)

    def check(self, module: ir.Module) -> None:
        """Raise what the pass raises for a module that it does not take."""
        self.load().check(module)

    def load(self) -> Pass:
        """Return the pass, which is imported once."""
        return self._pass

    @cached_property
    def _pass(self) -> Pass:
        return self.make(self.NAME, dict(self.given))

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        given = dict(self.given)
        options = [(option, given.get(option, usual), usual) for option, usual in known_passes()[self.NAME].options]
        changed = [f"{option}={value}" for option, value, usual in options if value != usual]
        return f"{self.NAME}{{{' '.join(changed)}}}" if changed else self.NAME


def table_of(passes: Iterable[type[Pass]]) -> str:
    """Return the table that the classes of passes make."""
    lines = [""]
    for each in passes:
        if each.OPERATIONS:
            given = " ".join(f"{name}={value}" for name, value in ActsOn.of(each).options)
            lines += [f"{each.NAME}{{{given}}}" if given else each.NAME]
            lines += [f"  {operation}" for operation in sorted(each.OPERATIONS)]
    return "\n".join([*lines, ""])
