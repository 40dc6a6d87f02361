"""The machines that kernels are lowered for, as objects: what passes ask of one instead of comparing its name.

A new machine is a function here that returns a `TargetMachine`, and its line in `MACHINES`: passes take the name as
their option ``target`` and ask the object, whatever it is called.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cache
from typing import ClassVar, Self

from xgpu import ir
from xgpu.records import dataclass

WARP_SIZE = 32
"""Threads of a warp: those of a block whose x numbers agree but for the lowest five bits.

Kernels are written for warps of this size before the machine is known, so it is that of every machine.
"""
WARPGROUP_SIZE = 4 * WARP_SIZE
"""Threads of a warp group: four warps, which multiply matrices together where the machine lets them."""
ADDED_AS_VECTORS = frozenset(("f16", "bf16", "f32"))
"""Types of which one atomic operation adds to several neighbours, where the machine has such operations."""

LATEST = 90
"""The compute capability, times ten, from which on GPUs have every instruction that passes choose."""

FAST_INSTRUCTIONS = frozenset(
    "add_down fma_down fma_saturated divide quotient reciprocal root root_of_normal rsqrt rsqrt_of_normal rsqrt_of_f64"
    " exp2 log2 log2_of_normal".split()
)
"""The instructions on f32, and one on f64, that functions are expanded to, where a machine has them.

``add_down`` and ``fma_down`` round towards minus infinity, and ``fma_saturated`` gives the nearest number from 0 to 1,
of NaN 0. The others are approximations with relative errors of at most 2^-22 (``reciprocal``: 2^-23), for logarithms of
numbers from 0.5 to 2 absolute ones. ``divide`` is one of divisors up to 2^126, ``quotient`` of all numbers.
``reciprocal``, ``exp2`` and those of *normal* numbers take subnormal ones for zero. That on f64 is off by a unit in the
last place at most.
"""


@dataclass(frozen=True)
class Needs:
    """The GPUs that have an instruction: those from a compute capability on, times ten.

    ``specific``: only those processors whose name ends in ``a`` or ``f``. ``last``: the last capability that has it.
    """

    capability: int
    specific: bool = False
    last: int = 1000

    def __str__(self) -> str:
        """The expected GPU in words."""
        if self.last == self.capability:
            return f"the processor sm_{self.capability}{'a' if self.specific else ''}"
        version = f"compute capability {self.capability // 10}.{self.capability % 10} or later"
        return f"a processor of {version} with the suffix 'a'" if self.specific else version

    def met(self, capability: int, specific: bool) -> bool:
        """Return whether a GPU has the instruction."""
        return self.capability <= capability <= self.last and (specific or not self.specific)


GPU_INSTRUCTIONS: Mapping[str, Needs] = {
    "cp.async": Needs(80),
    "mbarrier": Needs(80),
    "ldmatrix": Needs(80),
    "mma": Needs(80),
    "mma.f8": Needs(89),
    "bulk": Needs(90),
    "cluster": Needs(90),
    "elect": Needs(90),
    "fence.proxy": Needs(90),
    "mbarrier.expect": Needs(90),
    "mbarrier.try_wait": Needs(90),
    "stmatrix": Needs(90),
    "setmaxnreg": Needs(90, specific=True),
    "tensormap.replace": Needs(90, specific=True),
    "wgmma": Needs(90, specific=True, last=90),
}
"""The requirements of instructions for operations of blocks (PTX ISA, "Target ISA notes" of each), by their family."""


@dataclass(frozen=True)
class ByteConversion:
    """The intrinsics that convert between an 8-bit float type and others; results are rounded to nearest even.

    ``decode`` takes two codes in an i16 and returns a vector of two f16, ``encode_f16`` the reverse. ``encode_f32``
    takes two f32, that of the high byte first, and returns two codes in an i16.
    """

    decode: str
    encode_f16: str
    encode_f32: str


@dataclass(frozen=True)
class TargetMachine(ABC):
    """A machine: its instructions as fields; as methods, how operations that every machine has are written for it."""

    name: str
    text_levels: Mapping[str, str] = field(default_factory=dict)
    """The levels that follow LLVM IR, in their order, each with the tool that makes it."""
    warp_size: int = WARP_SIZE
    registers: Mapping[str, str] = field(default_factory=dict)
    """For `gpu.thread_id` and `gpu.block_id` the operation that reads it, but for ``.x``, ``.y`` or ``.z``.

    If there are none, kernels have the six numbers as parameters.
    """
    functions: Mapping[str, str] = field(default_factory=dict)
    """The functions of the machine's runtime that barriers and shuffles call: LLVM function types by name."""
    has_address_spaces: bool = False
    """Whether pointers tell global and shared memory apart."""
    has_scopes: bool = False
    """Whether atomic operations say which threads they are for: those of the block or of the device."""
    atomic_bits: int = 128
    """The widest number that is compared and exchanged."""
    atomic_pairs: frozenset[str] = frozenset()
    """The floats of 16 bits of which one instruction adds a pair to memory."""
    atomic_vector_bytes: int = 0
    """The widest vector of floats that one instruction adds to global memory; 0 for none."""
    casts: frozenset[str] = frozenset()
    """The floats narrower than f32 that are converted from and to f32."""
    casts_of_f64: frozenset[str] = frozenset()
    """The floats narrower than f32 that f64 is rounded to in one step."""
    arithmetic: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The operations that are done in a float type narrower than f32 itself."""
    byte_conversions: Mapping[str, ByteConversion] = field(default_factory=dict)
    """The intrinsics that convert a float type of 8 bits."""
    rounding_of_pairs: str = ""
    """The intrinsic that rounds two f32 to a pair of bf16, the first to the upper half; none if empty."""
    fast_instructions: Mapping[str, str] = field(default_factory=dict)
    """The intrinsics that `FAST_INSTRUCTIONS` names: all of them, or none."""
    block_operations: str = ""
    """The lowering of asynchronous copies, waits and products of warps: a key of `xgpu.passes.llvm.block.LOWERINGS`."""
    processor: str = ""
    """The processor, as messages name it, if the machine's instructions depend on it."""
    instructions: frozenset[str] = frozenset()
    """Those of `GPU_INSTRUCTIONS` that it has."""

    def __post_init__(self) -> None:
        """Raise ValueError for a machine that is not as passes take it to be."""
        if self.warp_size != WARP_SIZE:
            raise ValueError(f"machine {self.name}: kernels have warps of {WARP_SIZE} threads, not {self.warp_size}")
        if self.fast_instructions and self.fast_instructions.keys() != FAST_INSTRUCTIONS:
            differ = ", ".join(sorted(self.fast_instructions.keys() ^ FAST_INSTRUCTIONS))
            raise ValueError(f"machine {self.name}: expected all fast instructions or none; they differ in {differ}")

    @abstractmethod
    def barrier(self) -> None:
        """Create a barrier of the block's threads."""

    @abstractmethod
    def warp_barrier(self) -> None:
        """Create a barrier of each warp's threads."""

    @abstractmethod
    def shuffle(self, mode: str, value: ir.Value, by: ir.Value) -> ir.Value:
        """Create an exchange of i32 within the warp and return what was received.

        It comes from the lane whose number differs by ``by``, mode ``xor``, or is that, mode ``idx``.
        """

    def add_to_memory(self, pointer: ir.Value, element: str, registers: Sequence[ir.Value]) -> None:
        """Create the addition of registers to memory: f32, or pairs of the 16-bit float ``element`` as i32."""
        raise NotImplementedError(f"machine {self.name} has no addition of {element} to memory")


def _i32(value: int) -> ir.Value:
    """Create an i32 of the LLVM dialect."""
    i32 = ir.IntegerType.get_signless(32)
    constant = ir.Operation.create(
        "llvm.mlir.constant", results=[i32], attributes={"value": ir.IntegerAttr.get(i32, value)}
    )
    return constant.results[0]


_GPU_SHUFFLES = {"xor": "bfly", "idx": "idx"}
_GPU_SPACES = {0: "", 1: ".global", 3: ".shared"}
_F16_ARITHMETIC = frozenset(
    f"arith.{name}" for name in "addf subf mulf negf maximumf minimumf maxnumf minnumf cmpf".split()
)
_BF16_ARITHMETIC = frozenset(("arith.addf", "arith.subf", "arith.mulf"))
_GPU_FAST_INSTRUCTIONS = {
    "add_down": "llvm.nvvm.add.rm.f",
    "fma_down": "llvm.nvvm.fma.rm.f",
    "fma_saturated": "llvm.nvvm.fma.rn.sat.f",
    "divide": "llvm.nvvm.div.approx.f",
    "quotient": "llvm.nvvm.div.full",
    "reciprocal": "llvm.nvvm.rcp.approx.ftz.f",
    "root": "llvm.nvvm.sqrt.approx.f",
    "root_of_normal": "llvm.nvvm.sqrt.approx.ftz.f",
    "rsqrt": "llvm.nvvm.rsqrt.approx.f",
    "rsqrt_of_normal": "llvm.nvvm.rsqrt.approx.ftz.f",
    "rsqrt_of_f64": "llvm.nvvm.rsqrt.approx.d",
    "exp2": "llvm.nvvm.ex2.approx.ftz.f32",
    "log2": "llvm.nvvm.lg2.approx.f",
    "log2_of_normal": "llvm.nvvm.lg2.approx.ftz.f",
}


class _Gpu(TargetMachine):
    """An NVIDIA GPU: operations of the NVVM dialect, and PTX where that has none."""

    def barrier(self) -> None:
        segments = ir.DenseI32ArrayAttr.get([0, 0])
        ir.Operation.create("nvvm.barrier", attributes={"operandSegmentSizes": segments})

    def warp_barrier(self) -> None:
        ir.Operation.create("nvvm.bar.warp.sync", operands=[_i32(-1)])

    def shuffle(self, mode: str, value: ir.Value, by: ir.Value) -> ir.Value:
        # Bits that a lane's number keeps (none), and the largest number: the whole warp.
        clamp = _i32(self.warp_size - 1)
        shuffled = ir.Operation.create(
            "nvvm.shfl.sync",
            results=[value.type],
            operands=[_i32(-1), value, by, clamp],
            attributes={"kind": ir.Attribute.parse(f"#nvvm.shfl_kind<{_GPU_SHUFFLES[mode]}>")},
        )
        return shuffled.results[0]

    def add_to_memory(self, pointer: ir.Value, element: str, registers: Sequence[ir.Value]) -> None:
        """Create the PTX instruction ``red``. Pointers of address space 0 say at run time which memory they are of."""
        space = _GPU_SPACES[pointer.type.address_space]
        is_f32 = element == "f32"
        length = f"v{len(registers)}." if is_f32 or len(registers) > 1 else ""
        operation = f"add.{length}f32" if is_f32 else f"add.noftz.{length}{element}x2"
        names = ", ".join(f"${number}" for number in range(1, len(registers) + 1))
        operand = f"{{{names}}}" if len(registers) > 1 else names
        constraints = ["l", *["f" if is_f32 else "r"] * len(registers), "~{memory}"]
        ir.Operation.create(
            "llvm.inline_asm",
            operands=[pointer, *registers],
            attributes={
                "asm_string": ir.StringAttr.get(f"red.relaxed.gpu{space}.{operation} [$0], {operand};"),
                "constraints": ir.StringAttr.get(",".join(constraints)),
                "has_side_effects": ir.UnitAttr.get(),
            },
        )


def _gpu_conversion(name: str) -> ByteConversion:
    return ByteConversion(
        f"llvm.nvvm.{name}.to.f16x2.rn", f"llvm.nvvm.f16x2.to.{name}.rn", f"llvm.nvvm.ff.to.{name}.rn"
    )


@cache
def nvvm(capability: int = LATEST, specific: bool = True) -> TargetMachine:
    """Return NVIDIA's GPUs of a compute capability, given times ten, as the NVVM dialect and PTX have them.

    ``specific``: with the instructions that only GPUs of this capability have, or of its family (``sm_90a``).
    """
    is_hopper = capability >= 90
    conversions = {"f8E4M3FN": _gpu_conversion("e4m3x2"), "f8E5M2": _gpu_conversion("e5m2x2")}
    return _Gpu(
        name="nvvm",
        text_levels={"ptx": "LLVM", "cubin": "ptxas", "sass": "nvdisasm"},
        registers={"gpu.thread_id": "nvvm.read.ptx.sreg.tid", "gpu.block_id": "nvvm.read.ptx.sreg.ctaid"},
        has_address_spaces=True,
        has_scopes=True,
        atomic_bits=128 if is_hopper else 64,
        atomic_pairs=frozenset(("f16", "bf16") if is_hopper else ("f16",)),
        atomic_vector_bytes=16 if is_hopper else 0,
        casts=frozenset(("f16", "bf16")),
        casts_of_f64=frozenset(("f16",)),
        arithmetic={"f16": _F16_ARITHMETIC} | ({"bf16": _BF16_ARITHMETIC} if is_hopper else {}),
        byte_conversions=conversions if capability >= 89 else {},
        rounding_of_pairs="llvm.nvvm.ff2bf16x2.rn",
        fast_instructions=_GPU_FAST_INSTRUCTIONS,
        block_operations="ptx",
        processor=f"sm_{capability}{'a' if specific else ''}",
        instructions=frozenset(name for name, needs in GPU_INSTRUCTIONS.items() if needs.met(capability, specific)),
    )


HOST_BARRIER = "xgpu_host_barrier"
"""``void()``: returns when all threads of the block have called it."""
HOST_WARP_BARRIER = "xgpu_host_warp_barrier"
"""``void()``: returns when all threads of the warp have called it."""
HOST_SHUFFLES = {"xor": "xgpu_host_shuffle_xor", "idx": "xgpu_host_shuffle_idx"}
"""``i32(i32 value, i32 by)``: returns the value of the warp's thread whose number differs by, or is, the second one."""


HOST_BLOCK_PREFIX = "xgpu_host_block_"
"""The prefix of the functions that operations of blocks call (`xgpu.target.host.block`)."""
HOST_CHECKED_PREFIX = "xgpu_host_checked_"
"""The prefix of those that check, which sanitized kernels call instead."""
HOST_PAUSE = "xgpu_host_pause"
"""``void(i64)``: if the number is not 0, returns when what the thread waits for has come."""


def create_call(name: str, operands: Sequence[ir.Value], results: Sequence[ir.Type]) -> ir.Operation:
    """Create a call of a function by its name."""
    return ir.Operation.create(
        "llvm.call",
        results=list(results),
        operands=list(operands),
        attributes={
            "callee": ir.FlatSymbolRefAttr.get(name),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
            "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        },
    )


class _Host(TargetMachine):
    """This machine's processor: barriers and shuffles are calls of the driver."""

    def barrier(self) -> None:
        create_call(HOST_BARRIER, [], [])

    def warp_barrier(self) -> None:
        create_call(HOST_WARP_BARRIER, [], [])

    def shuffle(self, mode: str, value: ir.Value, by: ir.Value) -> ir.Value:
        return create_call(HOST_SHUFFLES[mode], [value, by], [value.type]).result


HOST = _Host(
    name="host",
    functions=dict.fromkeys((HOST_BARRIER, HOST_WARP_BARRIER), "!llvm.func<void ()>")
    | {HOST_PAUSE: "!llvm.func<void (i64)>"}
    | dict.fromkeys(HOST_SHUFFLES.values(), "!llvm.func<i32 (i32, i32)>"),
    block_operations="calls",
)
"""This machine's processor, on which the host executor runs threads one after the other."""

NVVM = nvvm()
"""The GPUs of the latest compute capability."""

MACHINES: dict[str, Callable[[int, bool], TargetMachine]] = {"nvvm": nvvm, "host": lambda capability, specific: HOST}
"""The machines by name, each given what only GPUs have: a compute capability, and whether they are of it alone."""


class OptionWord(str):
    """One of the words that ``KNOWN`` has, as passes take it for an option; raises ValueError for another."""

    __slots__ = ()
    KNOWN: ClassVar[Mapping[str, object]] = {}

    def __new__(cls, word: str) -> Self:
        """Return the word if it is one."""
        if word not in cls.KNOWN:
            raise ValueError(f"expected {cls.choices()}, got '{word}'")
        return super().__new__(cls, word)

    @classmethod
    def choices(cls) -> str:
        """Return the words as help texts list them."""
        return "|".join(cls.KNOWN)


class TargetName(OptionWord):
    """The name of a machine, as passes take it for an option."""

    __slots__ = ()
    KNOWN = MACHINES

    def machine(self, capability: int = LATEST, specific: bool = True) -> TargetMachine:
        """Return the machine, if it is a GPU that of `nvvm`."""
        return MACHINES[self](capability, specific)


DEFAULT_MACHINE = TargetName("nvvm")
"""The machine that passes lower for by default."""
