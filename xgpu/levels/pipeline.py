"""The levels and the pass lists between them, as data: each pass with the reason why it stands where it does."""

import functools
from itertools import pairwise

from xgpu.device import DEFAULT_DEVICE, Device, device
from xgpu.fusion.product_choices import NOTHING, ProductChoices
from xgpu.levels.level_graph import Edge, Level, LevelGraph, Pipeline
from xgpu.options import Options
from xgpu.passes.framework.acts_on import WaitingPass
from xgpu.passes.framework.manager import Step
from xgpu.passes.framework.registry import parse_pipeline
from xgpu.target_machine import NVVM, TargetMachine

NORMALIZE: Pipeline = (
    ("select-main", "first: what follows looks at that function, and at what it calls"),
    ("read-resources", "before all that reads constants, or prints operations"),
    ("resolve-meshes", "before names of meshes are lost, and while shardings still say how arrays are spread"),
    ("apply-entry-layouts", "while the module still has the attributes that say them"),
    ("rewrite-mhlo", "before the operations that StableHLO has too: MLIR's pass refuses the others"),
    ("erase-dead-functions", "before anything is refused: what nothing calls may be what it likes"),
    ("legalize-mhlo", "after rewrite-mhlo, which brings the rest of MHLO into a form that it takes"),
    ("split-complex-constants", "before the first pass that reads a constant"),
    ("convert-chlo-scans", "before CHLO is written as StableHLO, which makes loops of scans"),
    ("legalize-chlo", "after rewrite-mhlo, which makes functions of CHLO"),
    ("legalize-deprecated", "before the check, and before sizes, whose operations have such forms"),
    ("fix-sizes", "before the check, which refuses shapes that are not known"),
    ("remove-wrappers", "before the check, which refuses tuples; after what makes custom calls and tuples"),
    ("check-operations", "as soon as all that is supported has its form: what follows sees nothing else"),
    ("drop-empty-windows", "before all that reads attributes of windows"),
    ("inline-calls", "after the check: an error then names the function that the user wrote"),
    ("take-known-branches", "after inlining, which shows that an index is a constant; before all that looks at blocks"),
    ("expand-operations", "after inlining, so that an operation is expanded where it is computed"),
    ("find-recursive-scans", "after inlining: JAX has each level of such a scan in functions"),
    ("find-scan-gradients", "right after the scans are found whose gradients these are"),
    ("find-prefix-scans", "after expansions, which make windows"),
    ("split-complex-constants", "again, as CHLO's functions bring new ones"),
    ("expand-complex-math", "before floats are widened: it makes real arithmetic"),
    ("widen-narrow-floats", "after everything that makes arithmetic"),
    ("widen-sums", "after scans are found, and after narrower floats have become f16"),
    ("replace-empty-values", "after everything that makes values"),
    ("func.func(cse)", "merges what the passes above made twice, and erases what nothing uses"),
    ("drop-annotations", "last: passes above read some; the level is complete"),
)

PREPARE: Pipeline = (
    ("func.func(trivial-dce)", "first: a product that nothing uses would have what it reads stored"),
    ("sort-short-rows", "before other sorts: these are none any more"),
    ("expand-sorts{{runs={control_flow}}}", "before all that looks at loops, some of which it makes"),
    ("expand-transforms{{runs={control_flow}}}", "before all that looks at products, which it makes"),
    ("expand-convolutions{{runs={control_flow}}}", "before all that looks at products, which it makes"),
    ("expand-small-solves", "before branches are weighed, and before all that asks what kernels compute"),
    ("expand-solves{{runs={control_flow}}}", "after small ones, which need no loop; before all that looks at loops"),
    (
        "select-branches{{target={target}}}",
        "before constants are given to each branch, and before all that looks at blocks",
    ),
    ("sink-constants", "before all others, so that in every block a constant is seen to be one"),
    ("expand-powers", "after constants are in every block; before all that asks what operations cost"),
    (
        "fold-constants",
        "after constants are in every block; before all that asks where updates and slices are",
    ),
    (
        "simplify-integers",
        "after constants are folded; before all that asks where updates and slices are, or what an index costs",
    ),
    ("func.func(trivial-dce)", "what indices were compared with is computed for nobody now"),
    ("invert-divisors", "after constants are folded; before layouts, through which it looks for none"),
    (
        "rotate-loops{{runs={control_flow}}}",
        "once constants say which loops are counted; before all that rewrites what conditions compute",
    ),
    ("simplify-whole-slices", "before layouts are chosen: what is no slice is seen to lie in memory as it is"),
    ("forward-barriers{{keep={keep_barriers}}}", "before all that asks who reads a value: a barrier hides its readers"),
    ("turn-masks", "before find-chains, which asks what masks hide; after constants are in every block"),
    ("separate-columns", "before find-chains, which asks for rows of logits alone"),
    (
        "divide-weights{{target={target} find={fuse_attention}}}",
        "before find-chains, which asks for a softmax; after columns beside logits are taken apart",
    ),
    (
        "find-chains{{target={target} find={fuse_attention} gradients={fuse_attention_gradients}}}",
        "before products are merged or rewritten, which a chain's are not; after barriers, which keep readers apart",
    ),
    ("merge-rows{{target={target}}}", "after chains are found; before keys are split, by how many rows share them"),
    (
        "split-chains{{target={target} parts={attention_parts}}}",
        "after chains are found; before all that looks at what combines their parts",
    ),
    (
        "expand-ragged-products{{target={target} products={products}}}",
        "before all that looks at products, which it makes",
    ),
    ("turn-ragged-products", "before all that asks what products read"),
    (
        "merge-products{{target={target} products={products} choices={choices}}}",
        "before layouts are chosen, for the merged ones; after barriers, which keep readers apart",
    ),
    ("reduce-vector-products", "after merging, which leaves fewer; before layouts are chosen for libraries"),
    (
        "reduce-computed-products{{target={target} products={products}}}",
        "after vectors, of which it makes as many sums as there are rows; before layouts are chosen for libraries",
    ),
    (
        "multiply-bytes{{target={target} products={products}}}",
        "after all that merges or reduces products; before layouts are chosen, for products of bytes",
    ),
    ("choose-product-layouts", "adds and removes transposes, before anything is decided by who reads what"),
    ("choose-convolution-layouts{{target={target}}}", "adds transposes, which are moved to where they cost least"),
    ("squeeze-windows", "before transposes are moved, through windows, but not through reshapes"),
    (
        "split-merged-dimensions",
        "after transposes are where layouts ask for them; before they are moved, through no merged dimensions",
    ),
    ("move-transposes", "after layouts, which libraries read at no cost; before all that asks what is contiguous"),
    ("slice-before-transposes", "once transposes are where they stay; before all that asks what is contiguous"),
    (
        "turn-product-operands{{target={target} products={products}}}",
        "after transposes are moved, which are a part of products there; before products are padded and marked",
    ),
    (
        "pad-products{{target={target} pad={pad_products}}}",
        "after layouts, which say what is contiguous; before marks, which ask for aligned rows",
    ),
    (
        "mark-products{{target={target} products={products} choices={choices}}}",
        "after layouts, which maps of tiles follow; before epilogues, which are left with products that XLA computes",
    ),
    ("leave-epilogues", "after layouts: it marks what follows products in their final form"),
    (
        "separate-products{{target={target}}}",
        "after marks, which say what XLA computes; after all that looks at what products share",
    ),
    ("merge-scatters", "before concatenations are flattened, some of which it makes of others"),
    ("expand-short-scans", "before concatenations, some of which it makes, are flattened, and slices taken of parts"),
    (
        "concatenate-pads",
        "after transposes are moved, and with them pads; before concatenations are flattened, some of which it makes",
    ),
    ("flatten-concatenations", "before slices are taken of parts: there are fewer to look through"),
    ("slice-parts", "before scatters: the indices of one may be such slices of constants"),
    ("update-strided-windows", "before other scatters: these are none any more"),
    ("update-single-windows", "before other scatters: these are none any more"),
    ("slice-single-windows", "before all that looks for the origin of a slice"),
    ("slice-parts", "again, of updates at known places"),
    ("mark-update-chains", "after all that makes updates of slices; before all that asks what is updated in place"),
    ("select-row-updates", "before other scatters: these are none any more"),
    ("drop-empty-scatters", "the rewrites of scatters take them to have updates"),
    ("order-scatters{{deterministic={deterministic}}}", "makes several scatters of one, each with operands of its own"),
    ("copy-scatter-operands", "once there are no more scatters to come"),
    ("close-window-gaps", "before wide windows are split: of a spread array they are narrower than they look"),
    ("split-wide-windows{{target={target}}}", "before the planner, which takes a window that is left for a hero"),
    ("turn-scans", "after concatenations are flattened; before the planner, which stores what is moved after a scan"),
    ("unstack-reductions", "after concatenations are flattened and sliced: it looks for single arrays"),
    (
        "unnest-concatenations",
        "after all that looks for what is concatenated along a dimension: parts are then along several",
    ),
    ("simplify-single-reductions", "before all that takes reductions to be heroes"),
    ("widen-packed", "before the planner, which has no kernel for scans whose elements share bytes"),
    (
        "mark-held-rows",
        "after everything that decides what XLA computes; before all that takes reductions to be heroes",
    ),
    ("start-from-identity", "before reductions are split: each part starts from the initial value"),
    ("order-extremes", "makes reductions commutative, which the two that follow ask for"),
    ("order-reductions", "decides which are rows and which columns, which are split in different ways"),
    ("order-pairs{{target={target}}}", "after orders of what is in memory, which pairs are not"),
    ("split-reductions{{target={target}}}", "after everything that makes reductions or changes their shape"),
    (
        "hoist-invariants{{target={target}}}",
        "after everything that makes reductions; before loops that are one kernel are marked, which have none",
    ),
    ("func.func(trivial-dce)", "a loop that becomes one kernel is looked at, and copied, as a whole"),
    ("mark-recurrences{{target={target}}}", "after all that rewrites: it looks at what bodies of loops have become"),
    ("func.func(trivial-dce)", "again: conditions may have been computed before loops that are one kernel now"),
    (
        "merge-counters{{runs={control_flow}}}",
        "after loops that are one kernel are marked; before bodies are repeated, with steps that XLA does not know",
    ),
    (
        "double-buffer-loops{{runs={control_flow}}}",
        "after loops that are one kernel are marked; the last that changes what a body is, which it repeats",
    ),
    (
        "count-loops{{runs={control_flow}}}",
        "after loops that are one kernel are marked, which ask for conditions as the program has them",
    ),
    (
        "drop-unused-state{{runs={control_flow}}}",
        "after loops are counted, whose own counters nobody may need any more",
    ),
    ("leave-constants{{products={products}}}", "last: it asks what reads constants, and which loops are one kernel"),
    ("set-level{{level=prepared}}", "the level is complete"),
)

MAP_LOOPS: Pipeline = (
    ("check-independence", "first: it refuses programs, and all others take iterations to be independent"),
    ("form-launches", "before all that decides about one kernel at a time"),
    (
        "find-matrix-products{{target={target}}}",
        "before all that decides what threads do: of these others do",
    ),
    ("hold-elements", "after products, which are sums in memory; before reads are staged, beside what is held"),
    ("stage-reads{{target={target}}}", "after products, which copy by themselves; before bands, as it makes loops"),
    ("assign-bands", "before all that asks whether blocks or threads run a loop"),
    (
        "distribute-loops",
        "after bands, of whose loops groups of threads take some; before what a thread runs alone, which it leaves",
    ),
    ("serialize-inner-loops", "after bands, which say what a thread runs; before all that asks what it runs alone"),
    (
        "pipeline-steps",
        "after bands, which say whose steps these are; before buffers are placed, which it makes larger",
    ),
    (
        "hold-elements",
        "again after bands, which say what a thread runs alone; before buffers are placed, as it makes some",
    ),
    ("place-buffers", "after bands, which say whose a buffer is; before mapping, which counts accesses to memory"),
    ("map-threads{{target={target}}}", "after buffers are placed: only those in global memory coalesce"),
    (
        "hold-buffers",
        "after maps, of which it makes several one; before pads and barriers, which what is held needs none of",
    ),
    ("pad-buffers", "after maps, which say which threads access a buffer together"),
    ("place-barriers", "after maps, which say what crosses threads"),
    ("share-memory{{target={target}}}", "after barriers, which say what is not in use at once; after pads"),
    ("set-level{{level=mapped}}", "the level is complete"),
)

LOWER_TILES: Pipeline = (
    ("assign-products{{target={target}}}", "first: left operands in registers, and layouts, go by the instruction"),
    ("chain-tiles", "before the rest: what is kept, and where, is what all others decide about"),
    ("assign-layouts", "before copies are chosen, which go by what is contiguous"),
    (
        "swizzle-tiles",
        "after strides, by which it goes; before places, as patterns of a swizzle take whole rows of banks",
    ),
    ("pipeline-tiles{{target={target}}}", "after layouts; before order and places, which follow from the buffers"),
    ("multicast-tiles", "after copies are chosen: only those by TMA can go to several blocks"),
    ("schedule-tiles", "before places: tiles share memory only if all threads meet between their uses"),
    ("place-tiles{{target={target}}}", "last of the plan: it takes what all others have left"),
    ("lower-tiles{{target={target}}}", "the decisions are made: they stand in the kernel's schedule"),
    ("set-level{{level=emitted}}", "the level is complete"),
)

EXPAND_TILES: Pipeline = (("expand-tiles", "alone: what it makes is for XLA to run, to compare with"),)

OPTIMIZE: Pipeline = (
    ("expand-complex", "before inlining: no other pass knows complex numbers, and functions then have their true size"),
    ("share-branch-calls", "before inlining, which makes a copy for each call"),
    ("inline", "early, so that every later pass sees loads and stores beside the loops that drive them"),
    ("lower-predicated", "makes scf.if of predicated accesses: cse merges equal ones, unswitch-loops finds them"),
    ("canonicalize", "folds what inlining made constant"),
    ("cse", "merges reads that several inlined functions share"),
    ("peel-loops", "on xgpu.loop, where a bounds check is still a constraint of a map and not code"),
    ("lower-loops", "after peeling: the loops become scf.for, what is left of the constraints scf.if"),
    ("flatten-tensors", "before indices are simplified: linear indices are where divisions cancel"),
    ("simplify-indexing", "after flattening; hoists what does not depend on a loop, which unswitching needs"),
    ("hoist-calls", "after indices, which they take; before what depends on them is moved"),
    ("loop-invariant-code-motion", "moves conditions out of loops, for unswitch-loops"),
    ("canonicalize", "removes branches whose condition became constant"),
    ("cse", "merges index computations"),
    (
        "split-interiors",
        "after hoisting, once equal conditions are one value; before vectors, of which it leaves more",
    ),
    ("unswitch-loops", "takes conditions computed before their loop, so after hoisting; inside, they prevent vectors"),
    ("loop-invariant-code-motion", "unswitching made more code invariant"),
    ("vectorize-accesses", "needs loops still rolled, free of conditions, and linear indices"),
    ("unroll-loops{{target={target}}}", "after vectorising: small vectors are then indexed by constants"),
    ("simplify-indexing", "loop variables became constants"),
    (
        "canonicalize{{top-down=false}}",
        "folds the constants; top-down would take quadratic time, as in all that follow",
    ),
    ("cse", "unrolled iterations share most of their index computations"),
    ("share-vectors", "once loops are unrolled, and indices are simple"),
    ("merge-conditionals", "once loops are unrolled, and equal conditions are one value"),
    ("share-conditionals", "after merging, which leaves those that wait for what comes after the first"),
    ("cse", "merges what the conditionals that became one all read"),
    ("set-level{{level=optimized}}", "the level is complete"),
)

LOWER: Pipeline = (
    ("lower-indexing", "needs final maps; decides the width of index arithmetic"),
    ("simplify-arith", "uses ranges that the index arithmetic now shows"),
    ("lower-shuffles", "combiners are final; before lower-tensors, which knows of no threads but at barriers"),
    ("lower-tensors", "last user of tensors' value semantics; the program stops being functional here"),
    ("canonicalize{{top-down=false}}", "folds casts of constant indices"),
    ("cse", "merges address computations"),
    ("set-level{{level=lowered}}", "the level is complete, and the same for every target"),
)

TO_LLVM: Pipeline = (
    ("expand-atomics{{target={machine} capability={capability}}}", "first: its loops add small floats"),
    ("expand-floats{{target={machine} capability={capability}}}", "leaves only functions of f32 and f64"),
    ("expand-math{{target={machine}}}", "the functions become polynomials and instructions of the target"),
    ("canonicalize{{top-down=false}}", "folds what the expansions of constants left"),
    ("cse", "neighbouring expansions share constants and range reductions"),
    ("lower-scf", "needs structured control flow to be final"),
    ("lower-to-llvm{{target={machine} capability={capability} specific={specific}}}", "everything else is gone"),
    ("set-level{{level=llvm}}", "the level is complete"),
)


_TEXTS = ("llvmir", *NVVM.text_levels)
"""The levels that tools read: LLVM IR, and what follows from it for GPUs."""

GRAPH = LevelGraph(
    (
        Level("stablehlo", of="program"),
        Level("prepared", of="program"),
        Level("fusions", of="program"),
        Level("te", of="program", is_mlir=False, is_of_some=True),
        Level("loops", of="program", is_of_some=True),
        Level("mapped", of="program", is_of_some=True),
        Level("tiles", of="kernel", is_of_some=True),
        Level("emitted", of="kernel"),
        Level("optimized", of="kernel"),
        Level("lowered", of="kernel"),
        Level("llvm", of="kernel"),
        *(Level(name, of="kernel", is_mlir=False) for name in _TEXTS),
    ),
    (
        Edge("stablehlo", "prepared", PREPARE),
        Edge("prepared", "fusions", stage="the planner"),
        Edge("fusions", "emitted", stage="the kernel's emitter"),
        Edge("fusions", "tiles", stage="the emitter of products"),
        Edge("tiles", "emitted", LOWER_TILES),
        Edge("te", "loops", stage="the reader of the loop language"),
        Edge("loops", "mapped", MAP_LOOPS),
        Edge("mapped", "emitted", stage="the emitter of nests"),
        Edge("emitted", "optimized", OPTIMIZE),
        Edge("optimized", "lowered", LOWER),
        Edge("lowered", "llvm", TO_LLVM),
        Edge("llvm", "llvmir", stage="the exporter of LLVM IR"),
        *(Edge(source, target, stage=NVVM.text_levels[target]) for source, target in pairwise(_TEXTS)),
    ),
)
"""Every level, from the program to the machine code, and what leads to it."""

LEVELS = GRAPH.names
MLIR_LEVELS = GRAPH.mlir_names


def steps(
    passes: Pipeline,
    target: Device | None = None,
    options: Options | None = None,
    machine: TargetMachine | None = None,
    choices: ProductChoices = NOTHING,
) -> list[Step]:
    """Return the passes of an edge, for a GPU and for one of its machines if not for its own. A context is current.

    ``choices`` are what was measured to compute the products of the program.
    """
    target, options = target or device(DEFAULT_DEVICE), options or Options()
    given = {
        "target": target.name,
        "machine": (machine or target.machine).name,
        "capability": str(target.compute_capability),
        "specific": str(target.is_specific).lower(),
        "deterministic": str(options.deterministic).lower(),
        "products": options.products,
        "control_flow": options.control_flow,
        "pad_products": str(options.pad_products).lower(),
        "fuse_attention": str(options.fuse_attention).lower(),
        "fuse_attention_gradients": str(options.fuse_attention_gradients).lower(),
        "attention_parts": str(options.attention_parts or 0),
        "choices": choices,
        "keep_barriers": str(options.keep_barriers).lower(),
    }
    return list(_parsed(",".join(text for text, _ in passes).format(**given)))


@functools.cache
def _parsed(text: str) -> tuple[Step, ...]:
    """Parse a pipeline, once for all programs and kernels."""
    return tuple(parse_pipeline(text, is_known=True))


def load_passes() -> None:
    """Import the passes that every program needs, and those of kernels; others are imported when they have work."""
    for passes in (NORMALIZE, PREPARE):
        steps(passes)
    load_kernel_passes()


def load_kernel_passes() -> None:
    """Import the passes that lead from level ``emitted`` to ``llvm``."""
    for step in (step for passes in (OPTIMIZE, LOWER, TO_LLVM) for step in steps(passes)):
        if isinstance(step, WaitingPass):
            step.load()


def normalize() -> list[Step]:
    """Return the passes from an imported module to ``stablehlo``. A context is current."""
    return steps(NORMALIZE)


def prepare(target: Device, options: Options, choices: ProductChoices = NOTHING) -> list[Step]:
    """Return the passes from ``stablehlo`` to ``prepared``; ``choices`` compute its products. A context is current."""
    return steps(PREPARE, target, options, choices=choices)


def map_loops(target: Device, options: Options) -> list[Step]:
    """Return the passes from ``loops`` to ``mapped``. A context is current."""
    return steps(MAP_LOOPS, target, options)


def optimize(target: Device) -> list[Step]:
    """Return the passes from ``emitted`` to ``optimized``. A context is current."""
    return steps(OPTIMIZE, target)


def lower() -> list[Step]:
    """Return the passes from ``optimized`` to ``lowered``. A context is current."""
    return steps(LOWER)


def to_llvm(machine: TargetMachine, gpu: Device) -> list[Step]:
    """Return the passes from ``lowered`` to ``llvm`` for a machine, which ``gpu`` may be. A context is current."""
    return steps(TO_LLVM, gpu, machine=machine)
