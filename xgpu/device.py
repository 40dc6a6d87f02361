"""The GPUs that xgpu compiles for, as data: what LLVM calls them and the limits that kernels are planned against."""

from collections.abc import Set
from dataclasses import replace

from xgpu.errors import InvalidInput, did_you_mean
from xgpu.records import dataclass
from xgpu.target_machine import WARP_SIZE, OptionWord, TargetMachine, nvvm

KIB = 1024

_SCHEDULERS = 4
"""Warp schedulers of a multiprocessor, from compute capability 7 on."""

_PROCESSORS = tuple(
    """sm_80 sm_86 sm_87 sm_88 sm_89 sm_90 sm_90a sm_100 sm_100a sm_100f sm_101 sm_101a sm_101f sm_103 sm_103a sm_103f
    sm_110 sm_110a sm_110f sm_120 sm_120a sm_120f sm_121 sm_121a sm_121f""".split()
)
"""The processors that LLVM makes PTX for, of those that have what kernels need. It would take others for an old one."""


@dataclass(frozen=True)
class Device:
    """A GPU target. Sizes in bytes; limits are those of the CUDA programming guide's compute capability tables.

    ``cpu`` is the processor name that LLVM and ptxas use. ``ptx_version`` is the PTX ISA version asked of LLVM times
    ten, unless a kernel needs a newer one: 8.3 (CUDA 12.3) where that is enough, for newer GPUs the first version that
    has them. ``sm_count`` is that of the usual data-centre or desktop part and is only a default for cost estimates.
    ``shared_bytes`` is what a block gets without opting in, ``shared_bytes_optin`` the most it may ask for.
    ``max_vector_bytes`` is the widest access that one thread makes, ``parameter_bytes`` what a launch can hand over.
    ``max_cluster_blocks`` is how many blocks a cluster may have, 1 without clusters; more than 8 only if a launch
    allows it. ``products_per_cycle`` is how many pairs of 16-bit floats the tensor cores of a multiprocessor multiply
    in a cycle, to sums of f32; ``warp_share`` is the part of them that products of single warps reach (``mma.sync``).
    ``memory_bandwidth`` is in bytes a second, ``clock`` in cycles, at boost: data sheets' numbers of the usual part, an
    H200's for ``sm_90``. The times in seconds are an H200's, and taken for those of all: ``launch_seconds`` is the cost
    of one more kernel between others, start to end, as those of a graph, ``memory_latency`` that of a load, and
    ``instruction_latency`` that of an instruction where few threads hide it: two or three are issued in eight cycles.
    Threads that run ``in_turn``, as a CPU runs those of a block, share no work: each would wait for all others.
    """

    name: str
    cpu: str
    ptx_version: int
    sm_count: int
    max_threads_per_sm: int
    shared_bytes_optin: int
    memory_bandwidth: float
    clock: float
    products_per_cycle: int = 1024
    warp_share: float = 1.0
    launch_seconds: float = 2.5e-6
    memory_latency: float = 0.7e-6
    instruction_latency: float = 1.5e-9
    shared_bytes: int = 48 * KIB
    max_threads_per_block: int = 1024
    registers_per_sm: int = 65536
    max_vector_bytes: int = 16
    parameter_bytes: int = 32764
    max_cluster_blocks: int = 1
    in_turn: bool = False

    def __post_init__(self) -> None:
        """Raise InvalidInput for a processor that LLVM does not know."""
        if self.cpu not in _PROCESSORS:
            raise InvalidInput(
                f"device {self.name}: LLVM knows no processor '{self.cpu}', but {', '.join(_PROCESSORS)}"
            )

    @property
    def compute_capability(self) -> int:
        """The compute capability times ten, without an ``a`` suffix: 90 for ``sm_90a``."""
        return int(self.cpu.removeprefix("sm_").rstrip("af"))

    @property
    def is_specific(self) -> bool:
        """Whether the processor has instructions that only those of its capability or family have (``sm_90a``)."""
        return self.cpu[-1] in "af"

    @property
    def resident_threads(self) -> int:
        """Threads that run at once at most."""
        return self.sm_count * self.max_threads_per_sm

    @property
    def issue_rate(self) -> float:
        """Instructions of threads a second: in a cycle each of a multiprocessor's four schedulers issues a warp's."""
        return self.sm_count * _SCHEDULERS * WARP_SIZE * self.clock

    @property
    def schedulers(self) -> int:
        """Warp schedulers of a multiprocessor."""
        return _SCHEDULERS

    @property
    def instructions_of_pass(self) -> int:
        """Instructions of a thread that are issued while the first-level cache serves one line of a warp's request."""
        return _SCHEDULERS

    @property
    def machine(self) -> TargetMachine:
        """The machine that kernels are lowered for."""
        return nvvm(self.compute_capability, self.is_specific)

    def lacking(self, instructions: Set[str]) -> str | None:
        """Return which GPUs have all of some instructions, and one that this lacks; None if it has them."""
        if not (missing := sorted(instructions - self.machine.instructions)):
            return None
        return f"expected a GPU with {', '.join(sorted(instructions))}; {self.name} has no {missing[0]}"

    @property
    def vector_atomics(self) -> bool:
        """Whether one atomic operation adds to several neighbouring floats of 16 or 32 bits in global memory."""
        return self.machine.atomic_vector_bytes > 0


_CLUSTER_BLOCKS = {"sm_90": 16, "sm_90a": 16, "sm_100a": 16, "sm_120": 8}
"""Blocks of a cluster on the GPUs that have clusters, those of compute capability 9 and later."""


def _device(
    name: str,
    ptx: int,
    sms: int,
    threads: int,
    optin_kib: int,
    terabytes: float,
    ghz: float,
    products: int = 1024,
    warps: float = 1.0,
) -> Device:
    rates = terabytes * 1e12, ghz * 1e9, products, warps
    together = _CLUSTER_BLOCKS.get(name, 1)
    return Device(name, name, ptx, sms, threads, optin_kib * KIB, *rates, max_cluster_blocks=together)


DEVICES: dict[str, Device] = {
    each.name: each
    for each in (
        # A100
        _device("sm_80", 83, sms=108, threads=2048, optin_kib=163, terabytes=1.94, ghz=1.41),
        # A40
        _device("sm_86", 83, sms=84, threads=1536, optin_kib=99, terabytes=0.70, ghz=1.74, products=512),
        # L40S
        _device("sm_89", 83, sms=142, threads=1536, optin_kib=99, terabytes=0.86, ghz=2.52, products=512),
        # H100
        _device("sm_90", 83, sms=132, threads=2048, optin_kib=227, terabytes=4.8, ghz=1.98, products=2048, warps=0.62),
        # H100, H200
        _device("sm_90a", 83, sms=132, threads=2048, optin_kib=227, terabytes=4.8, ghz=1.98, products=2048, warps=0.62),
        # B200
        _device("sm_100a", 86, sms=148, threads=2048, optin_kib=227, terabytes=8, ghz=1.96, products=4096, warps=0.25),
        # RTX 5090
        _device("sm_120", 87, sms=170, threads=1536, optin_kib=99, terabytes=1.79, ghz=2.41, products=256),
    )
}
"""The devices by name. ``products`` are those of a cycle, of data sheets, and ``warps`` the part that warps reach: of
sm_90 as others measured it (arXiv:2402.13499), of sm_100a, for which there is no measurement, the number of sm_80."""

HOST = replace(DEVICES["sm_90a"], name="host", in_turn=True)
"""The CPU on which `xgpu.jit` runs kernels without a GPU: planned like those of an H200, but for how work is shared."""

MOST_CLUSTER_BLOCKS = max(each.max_cluster_blocks for each in DEVICES.values())
"""The most blocks of a cluster that any of them has."""


class DeviceName(OptionWord):
    """The name of a device, as passes take it for an option."""

    __slots__ = ()
    KNOWN = DEVICES | {HOST.name: HOST}

    @property
    def device(self) -> Device:
        """The device."""
        return self.KNOWN[self]


DEFAULT_DEVICE = DeviceName("sm_90a")
"""The device that is compiled for by default."""


def device(name: str) -> Device:
    """Return the device of this name; raises InvalidInput, listing the known ones, if there is none."""
    found = next((each for known, each in DeviceName.KNOWN.items() if known == name), None)
    if found is None:
        near = did_you_mean(name, DeviceName.KNOWN, similarity=0.85)
        raise InvalidInput(f"unknown target {name!r}{near}; known targets are {', '.join(DeviceName.KNOWN)}")
    return found
