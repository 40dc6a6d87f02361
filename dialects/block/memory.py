"""Operations of the xgpu dialect that give the addresses of what asynchronous operations work on."""

from collections.abc import Iterator, Mapping

from xgpu import ir
from xgpu.dialects.attributes import INTEGER
from xgpu.dialects.base import GLOBAL_POINTER, SHARED_POINTER, TENSOR, Attribute, DeclaredOp, Values, declare
from xgpu.dialects.namespace import XgpuDialect
from xgpu.dialects.traits import Traits

_MOST_BYTES = 1 << 20
"""Limit of memory for a block: above what any has."""


@ir.register_operation(XgpuDialect)
@declare
class SharedMemoryOp(DeclaredOp):
    """Makes memory for the threads of a block to share, beside the tiles of `xgpu.allocate_shared`, aligned to 1,024.

    ```mlir
    %memory = "xgpu.shared_memory"() {bytes = 196608 : i64} : () -> !llvm.ptr<3>
    ```
    """

    OPERATION_NAME = "xgpu.shared_memory"
    TRAITS = Traits(allocates=True)
    RESULTS = (Values("memory", SHARED_POINTER, "Its address."),)
    ATTRIBUTES = (Attribute("bytes", INTEGER, "Its size."),)
    bytes: int

    @classmethod
    def build(cls, size: int, loc: ir.Location | None = None) -> ir.Value:
        """Create the operation and return the address."""
        pointer = ir.llvm.PointerType.get(3)
        return cls.create(results=[pointer], attributes={"bytes": size}, loc=loc).operation.results[0]

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """It has bytes, and no more than any block can have."""
        if not 1 <= self.bytes <= _MOST_BYTES:
            yield f"attribute 'bytes': expected 1 to {_MOST_BYTES}, got {self.bytes}"


@ir.register_operation(XgpuDialect)
@declare
class ArrayPointerOp(DeclaredOp):
    """The address of the first element of an array, a parameter of the kernel.

    What is accessed by it is not seen as an access to the array: an input is only read, and an output is written by
    nothing else and not read.

    ```mlir
    %address = "xgpu.array_pointer"(%array) : (tensor<64x64xbf16>) -> !llvm.ptr<1>
    ```
    """

    OPERATION_NAME = "xgpu.array_pointer"
    TRAITS = Traits(reads=0)
    OPERANDS = (Values("array", TENSOR, "The array."),)
    RESULTS = (Values("address", GLOBAL_POINTER, "Its address."),)

    @classmethod
    def build(cls, array: ir.Value, loc: ir.Location | None = None) -> ir.Value:
        """Create the operation and return the address."""
        return cls.create([array], [ir.llvm.PointerType.get(1)], loc=loc).operation.results[0]


MEMORY_OPS: tuple[type[DeclaredOp], ...] = (SharedMemoryOp, ArrayPointerOp)
"""The operations of this file."""
