"""The operations of blocks in small: for each, lines that use it, what they need of a GPU, and the PTX they become.

Kernels of such lines have ``%shared`` and ``%full``, pointers to shared memory, ``%in`` and ``%out``, pointers to
global memory, ``%n``, an i32, and fragments ``%a``, ``%b``, ``%c`` and ``%sums``.
"""

from dataclasses import dataclass

SHARED, GLOBAL, I32 = "!llvm.ptr<3>", "!llvm.ptr<1>", "i32"
ROWS = "{group = 1024 : i64, panel = 0 : i64, swizzle = 128 : i64, transposed = false}"
COLUMNS = "{group = 1024 : i64, panel = 8192 : i64, swizzle = 128 : i64, transposed = true}"

_TYPES = {"shared": SHARED, "full": SHARED, "in": GLOBAL, "out": GLOBAL, "n": I32, "true": "i1"}
_TYPES |= {"a": "vector<4xi32>", "b": "vector<2xi32>", "c": "vector<4xf32>", "sums": "vector<32xf32>"}
_TYPES |= {"i": "vector<4xi32>", "x": "vector<1xf64>", "y": "vector<2xf64>"}


@dataclass(frozen=True)
class Sample:
    """One use of an operation: what it needs, a key of `GPU_INSTRUCTIONS` if anything, and a part of its PTX."""

    name: str
    line: str
    needs: str | None
    ptx: str
    result: str | None
    """The type of the result, None if there is none, or if it cannot be stored right away."""

    def lines(self, number: int) -> str:
        """The line, and if it has a result one that stores that, so that it is not dead; ``number`` names it."""
        if self.result is None:
            return self.line
        store = f'"llvm.store"(%r{number}, %out) <{{ordering = 0 : i64, volatile_}}>'
        return f"%r{number} = {self.line}\n{store} : ({self.result}, !llvm.ptr<1>) -> ()"


def _sample(
    name: str,
    operands: str,
    needs: str | None,
    ptx: str,
    attributes: str = "",
    result: str | None = None,
    is_stored: bool = True,
) -> Sample:
    names = operands.split()
    values = ", ".join(f"%{each}" for each in names)
    types = ", ".join(_TYPES[each] for each in names)
    given = f" {{{attributes}}}" if attributes else ""
    line = f'"xgpu.{name}"({values}){given} : ({types}) -> {result or "()"}'
    return Sample(f"xgpu.{name}", line, needs, ptx, result if is_stored else None)


def _mma(element: str, other: str, operands: str, result: str, needs: str, ptx: str) -> Sample:
    return _sample("mma", operands, needs, ptx, f"a_element = {element}, b_element = {other}", result)


_MAP = """element = f32, shape = array<i64: 7, 6, 5, 40, 64>, strides = array<i64: 307200, 51200, 10240, 256>,
    box = array<i64: 1, 1, 1, 8, 32>, swizzle = "128" """
_PRODUCT = f"a_element = bf16, b_element = bf16, a_layout = {ROWS}, b_layout = {COLUMNS}"
_TENSOR = "cp.async.bulk.tensor.2d"

SAMPLES = (
    _sample("async_copy", "shared in n", "cp.async", "cp.async.cg.shared.global", "bytes = 16 : i64"),
    _sample("async_copy", "shared in n", "cp.async", "cp.async.ca.shared.global", "bytes = 8 : i64"),
    _sample("mbarrier_arrive_copies", "full", "mbarrier", "cp.async.mbarrier.arrive.noinc.shared.b64"),
    _sample("async_commit", "", "cp.async", "cp.async.commit_group;"),
    _sample("async_wait", "", "cp.async", "cp.async.wait_group 1;", "pending = 1 : i64"),
    _sample("encode_tensor_map", "out shared in", "tensormap.replace", "tensormap.cp_fenceproxy", _MAP),
    _sample("acquire_tensor_map", "out", "bulk", "fence.proxy.tensormap::generic.acquire.gpu"),
    _sample("tensor_load", "shared out full n n", "bulk", f"{_TENSOR}.shared::cluster.global.tile"),
    _sample("tensor_load", "shared out full n n n n n", "bulk", "cp.async.bulk.tensor.5d.shared::cluster.global.tile"),
    _sample("tensor_load_multicast", "shared out full n n n", "bulk", ".multicast::cluster"),
    _sample("tensor_store", "out shared n n", "bulk", f"{_TENSOR}.global.shared::cta.tile.bulk_group"),
    _sample("bulk_load", "shared in n full", "bulk", "cp.async.bulk.shared::cluster.global.mbarrier"),
    _sample("bulk_store", "out shared n", "bulk", "cp.async.bulk.global.shared::cta.bulk_group"),
    _sample("bulk_commit", "", "bulk", "cp.async.bulk.commit_group;"),
    _sample("bulk_wait", "", "bulk", "cp.async.bulk.wait_group.read 0;", 'pending = 0 : i64, until = "read"'),
    _sample("bulk_wait", "", "bulk", "cp.async.bulk.wait_group 1;", 'pending = 1 : i64, until = "done"'),
    _sample("mbarrier_init", "full", "mbarrier", "mbarrier.init.shared.b64", "count = 1 : i64"),
    _sample("mbarrier_expect", "full n", "mbarrier.expect", "mbarrier.arrive.expect_tx"),
    _sample("mbarrier_arrive", "full", "mbarrier", "mbarrier.arrive.shared.b64"),
    _sample("mbarrier_arrive_remote", "full n", "cluster", "mbarrier.arrive.shared::cluster.b64"),
    _sample("mbarrier_wait", "full n", "mbarrier", "_wait.parity.shared.b64"),
    _sample("fence", "", "fence.proxy", "fence.proxy.async.shared::cta;", 'kind = "async"'),
    _sample("fence", "", None, "", 'kind = "mbarrier_init"'),
    _sample("fence", "", "cluster", "fence.acq_rel.cluster;", 'kind = "cluster"'),
    _sample("named_barrier", "n", None, "bar.sync", "threads = 128 : i64, wait = true"),
    _sample("named_barrier", "n", None, "bar.arrive", "threads = 128 : i64, wait = false"),
    _sample("elect", "", "elect", "elect.sync", result="i1"),
    _sample(
        "set_registers", "", "setmaxnreg", "setmaxnreg.inc.sync.aligned.u32 232;", "count = 232 : i64, more = true"
    ),
    _sample("cluster_rank", "", None, "", result="i32"),
    _sample("cluster_arrive", "", "cluster", "barrier.cluster.arrive;"),
    _sample("cluster_wait", "", "cluster", "barrier.cluster.wait;"),
    _sample("cluster_pointer", "shared n", "cluster", "", result="!llvm.ptr<7>"),
    _sample("load_matrix", "shared", "ldmatrix", "ldmatrix", "transposed = true", "vector<4xi32>"),
    _sample("store_matrix", "a shared", "stmatrix", "stmatrix", "transposed = false"),
    _mma("bf16", "bf16", "a b c", "vector<4xf32>", "mma", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"),
    _mma("f16", "f16", "a b c", "vector<4xf32>", "mma", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"),
    _mma("tf32", "tf32", "a b c", "vector<4xf32>", "mma", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"),
    _mma("si8", "ui8", "a b i", "vector<4xi32>", "mma", "mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32"),
    _mma("f64", "f64", "x x y", "vector<2xf64>", "mma", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"),
    _mma(
        *("f8E4M3FN", "f8E5M2", "a b c", "vector<4xf32>", "mma.f8"),
        "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32",
    ),
    _sample("warpgroup_fence", "", "wgmma", "wgmma.fence.sync.aligned;"),
    _sample("warpgroup_mma", "sums shared shared true", "wgmma", "wgmma.mma_async", _PRODUCT, "vector<32xf32>", False),
    _sample("warpgroup_commit", "", "wgmma", "wgmma.commit_group.sync.aligned;"),
    _sample("warpgroup_wait", "", "wgmma", "wgmma.wait_group.sync.aligned 0;", "pending = 0 : i64"),
)


def kernel(lines: str) -> str:
    """A kernel at level ``lowered`` of the lines, which may end in values that are stored."""
    return f"""module attributes {{xgpu.level = "lowered"}} {{
      llvm.mlir.global external @k__shared() {{addr_space = 3 : i32, alignment = 1024 : i64}} : !llvm.array<0 x i8>
      func.func @k(
          %in: !llvm.ptr<1> {{llvm.align = 128 : i64, llvm.dereferenceable = 65536 : i64, llvm.noalias, llvm.readonly}},
          %out: !llvm.ptr<1> {{llvm.align = 128 : i64, llvm.dereferenceable = 65536 : i64, llvm.noalias}})
          attributes {{xgpu.kernel, xgpu.emitter = "loop", xgpu.index_bits = 32 : i64, xgpu.inputs = 1 : i64,
                      xgpu.grid = array<i64: 1, 1, 1>, xgpu.block = array<i64: 128, 1, 1>,
                      xgpu.shared_bytes = 49152 : i64}} {{
        %full = llvm.mlir.addressof @k__shared : !llvm.ptr<3>
        %shared = llvm.getelementptr %full[1024] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
        %n = llvm.load %in : !llvm.ptr<1> -> i32
        %true = arith.constant true
        {lines}
        return
      }}
    }}"""


FRAGMENTS = "\n".join(
    f"%{name} = llvm.load %in : !llvm.ptr<1> -> {_TYPES[name]}" for name in ("a", "b", "c", "i", "x", "y")
)
"""Lines that load the fragments of samples."""
SUMS = f"%sums = arith.constant dense<0.0> : {_TYPES['sums']}"
