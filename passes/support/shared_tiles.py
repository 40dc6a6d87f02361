"""Layout of a kernel's tiles in shared memory."""

import math
from collections.abc import Sequence

from xgpu import ir
from xgpu.dialects.attributes import SHARED_BYTES, int_attribute, int_of
from xgpu.passes.llvm.memory import SHARED_SPACE, address_of, element_pointer, i64_attribute
from xgpu.passes.support import arith_builder as b
from xgpu.passes.support.memory_layout import memory_type
from xgpu.passes.support.tensor_buffers import TensorBuffer

MAX_STATIC_BYTES = 48 * 1024
"""Shared memory of a block without opt-in on every device; a launch that needs more must give its dynamic size."""
_ALIGNMENT = 16
_RAW_ALIGNMENT = 1024
"""That of memory without a type: of what copies and products swizzle."""


class SharedTiles:
    """Makes globals in shared memory of the tiles of one kernel.

    An element of a tile takes whole bytes, also one that others share a byte with in a tensor: so each is written on
    its own. Each tile is a global, unless together they take more than a kernel has statically: then all are parts of
    one that the launch gives its size, which becomes the kernel's attribute ``xgpu.shared_bytes``.
    """

    def __init__(self, kernel: ir.Operation, tiles: list[TensorBuffer], raw: Sequence[ir.Operation] = ()):
        self._kernel = kernel
        self._name = ir.StringAttr(kernel.attributes["sym_name"]).value
        self._numbers = {tile: number for number, tile in enumerate(tiles)}
        self._offsets: dict[TensorBuffer, int] = {}
        total = 0
        for tile in tiles:
            self._offsets[tile] = total
            size = math.prod(tile.type.shape) * memory_type(tile.type.element_type, kernel).width // 8  # type: ignore[attr-defined]
            total += -(-size // _ALIGNMENT) * _ALIGNMENT
        self._raw_offsets = []
        for each in raw:
            total = -(-total // _RAW_ALIGNMENT) * _RAW_ALIGNMENT
            self._raw_offsets.append(total)
            total += int_of(each.attributes["bytes"])
        self._is_dynamic = total > MAX_STATIC_BYTES or bool(raw)
        self._alignment = _RAW_ALIGNMENT if raw else _ALIGNMENT
        if self._is_dynamic:
            kernel.attributes[SHARED_BYTES] = int_attribute(total)
            self._define(f"{self._name}__shared", b.integer_type(8), 0, "external")

    def address(self, tile: TensorBuffer) -> ir.Value:
        """Return the address of ``tile``, made at the insertion point; for each tile once."""
        if self._is_dynamic:
            shared = address_of(f"{self._name}__shared", SHARED_SPACE)
            return element_pointer(shared, b.integer_type(8), self._offsets[tile])
        name = f"{self._name}__tile_{self._numbers[tile]}"
        self._define(name, memory_type(tile.type.element_type, self._kernel), math.prod(tile.type.shape), "internal")
        return address_of(name, SHARED_SPACE)

    def raw_address(self, number: int) -> ir.Value:
        """Return the address of the memory of operation ``number`` of those that make some, at the insertion point."""
        shared = address_of(f"{self._name}__shared", SHARED_SPACE)
        return element_pointer(shared, b.integer_type(8), self._raw_offsets[number])

    def _define(self, name: str, element: ir.Type, count: int, linkage: str) -> None:
        ir.Operation.create(
            "llvm.mlir.global",
            attributes={
                "sym_name": ir.StringAttr.get(name),
                "global_type": ir.TypeAttr.get(ir.Type.parse(f"!llvm.array<{count} x {element}>")),
                "linkage": ir.Attribute.parse(f"#llvm.linkage<{linkage}>"),
                "addr_space": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), SHARED_SPACE),
                "alignment": i64_attribute(self._alignment),
            },
            regions=1,
            loc=self._kernel.location,
            ip=ir.InsertionPoint(self._kernel),
        )
