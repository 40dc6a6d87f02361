"""Layout of a kernel's tiles in shared memory."""

import math
from collections.abc import Sequence
from typing import Any

from xgpu import ir
from xgpu.dialects.attributes import KERNEL, SHARED_BYTES, SHARED_OFFSET, int_attribute, int_of
from xgpu.dialects.threads import TILE_ALIGNMENT
from xgpu.passes.llvm.memory import SHARED_SPACE, address_of, element_pointer, i64_attribute
from xgpu.passes.support import arith_builder as b
from xgpu.passes.support.memory_layout import memory_type
from xgpu.passes.support.tensor_buffers import TensorBuffer
from xgpu.structure import replace_op, walk

MAX_STATIC_BYTES = 48 * 1024
"""Shared memory of a block without opt-in on every device; a launch that needs more must give its dynamic size."""
_RAW_ALIGNMENT = 1024
"""That of memory without a type: of what copies and products swizzle."""


class SharedTiles:
    """Makes globals in shared memory of the tiles of one kernel.

    An element of a tile takes whole bytes, also one that others share a byte with in a tensor: so each is written on
    its own. Each tile is a global, unless together they take more than a kernel has statically: then all are parts of
    one that the launch gives its size, which becomes the kernel's attribute ``xgpu.shared_bytes``. Where tiles say at
    which byte they begin (``xgpu.shared_offset`` of their globals), `lower-to-llvm` makes parts of one global of them.
    """

    def __init__(self, kernel: ir.Operation, tiles: list[TensorBuffer], raw: Sequence[ir.Operation] = ()):
        self._kernel = kernel
        self._name = ir.StringAttr(kernel.attributes["sym_name"]).value
        self._numbers = {tile: number for number, tile in enumerate(tiles)}
        self._offsets, total = self._places(tiles)
        self._has_places = any(tile.offset is not None for tile in tiles)
        self._raw_offsets = []
        for each in raw:
            total = -(-total // _RAW_ALIGNMENT) * _RAW_ALIGNMENT
            self._raw_offsets.append(total)
            total += int_of(each.attributes["bytes"])
        self._is_dynamic = total > MAX_STATIC_BYTES or bool(raw)
        self._alignment = _RAW_ALIGNMENT if raw else TILE_ALIGNMENT
        if self._is_dynamic:
            kernel.attributes[SHARED_BYTES] = int_attribute(total)
        if raw or (self._is_dynamic and not self._has_places):
            self._define(shared_name(kernel), b.integer_type(8), 0, "external")

    def _places(self, tiles: list[TensorBuffer]) -> tuple[dict[TensorBuffer, int], int]:
        """Return where tiles begin, those that do not say so after the others, and where the last one ends."""
        found: dict[TensorBuffer, int] = {}
        total = 0
        for tile in sorted(tiles, key=lambda each: each.offset is None):
            found[tile] = total if tile.offset is None else tile.offset
            size = math.prod(tile.type.shape) * memory_type(tile.type.element_type, self._kernel).width // 8  # type: ignore[attr-defined]
            total = max(total, -(-(found[tile] + size) // TILE_ALIGNMENT) * TILE_ALIGNMENT)
        return found, total

    def address(self, tile: TensorBuffer) -> ir.Value:
        """Return the address of ``tile``, made at the insertion point; for each tile once."""
        if self._is_dynamic and not self._has_places:
            shared = address_of(shared_name(self._kernel), SHARED_SPACE)
            return element_pointer(shared, b.integer_type(8), self._offsets[tile])
        name = f"{self._name}__tile_{self._numbers[tile]}"
        element, count = memory_type(tile.type.element_type, self._kernel), math.prod(tile.type.shape)
        self._define(name, element, count, "internal", self._offsets[tile] if self._has_places else None)
        return address_of(name, SHARED_SPACE)

    def raw_address(self, number: int) -> ir.Value:
        """Return the address of the memory of operation ``number`` of those that make some, at the insertion point."""
        shared = address_of(shared_name(self._kernel), SHARED_SPACE)
        return element_pointer(shared, b.integer_type(8), self._raw_offsets[number])

    def _define(self, name: str, element: ir.Type, count: int, linkage: str, offset: int | None = None) -> None:
        with ir.InsertionPoint(self._kernel), self._kernel.location:
            made = define_shared(name, element, count, linkage, self._alignment)
        if offset is not None:
            made.attributes[SHARED_OFFSET] = int_attribute(offset)


def shared_name(kernel: ir.Operation) -> str:
    """Return the name of the global of which the tiles of a kernel are parts."""
    return f"{ir.StringAttr(kernel.attributes['sym_name']).value}__shared"


def define_shared(name: str, element: ir.Type, count: int, linkage: str, alignment: int) -> ir.Operation:
    """Make a global in shared memory at the insertion point and return it."""
    return ir.Operation.create(
        "llvm.mlir.global",
        attributes={
            "sym_name": ir.StringAttr.get(name),
            "global_type": ir.TypeAttr.get(ir.Type.parse(f"!llvm.array<{count} x {element}>")),
            "linkage": ir.Attribute.parse(f"#llvm.linkage<{linkage}>"),
            "addr_space": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), SHARED_SPACE),
            "alignment": i64_attribute(alignment),
        },
        regions=1,
    )


def join_tiles(module: ir.Module) -> None:
    """Make tiles that say where they begin parts of one global for each kernel."""
    placed = {
        ir.StringAttr(op.operation.attributes["sym_name"]).value: op.operation
        for op in module.body.operations
        if op.operation.name == "llvm.mlir.global" and SHARED_OFFSET in op.operation.attributes
    }
    for kernel in (op.operation for op in module.body.operations if KERNEL in op.operation.attributes):
        uses = [
            (op, placed[name])
            for op in walk(kernel, "llvm.mlir.addressof")
            if (name := ir.FlatSymbolRefAttr(op.attributes["global_name"]).value) in placed
        ]
        if uses:
            _join(kernel, uses)
    for op in placed.values():
        op.erase()


def _join(kernel: ir.Operation, uses: Sequence[tuple[ir.Operation, ir.Operation]]) -> None:
    name, byte = shared_name(kernel), b.integer_type(8)
    ends = [int_of(tile.attributes[SHARED_OFFSET]) + _size_of(tile) for _, tile in uses]
    is_dynamic = SHARED_BYTES in kernel.attributes
    with ir.InsertionPoint(kernel), kernel.location:
        if name not in ir.SymbolTable(kernel.parent.operation):  # type: ignore[union-attr]
            define_shared(
                name, byte, 0 if is_dynamic else max(ends), "external" if is_dynamic else "internal", TILE_ALIGNMENT
            )
    for op, tile in uses:
        with ir.InsertionPoint(op), op.location:
            whole = address_of(name, SHARED_SPACE)
            replace_op(op, [element_pointer(whole, byte, int_of(tile.attributes[SHARED_OFFSET]))])


def _size_of(tile: ir.Operation) -> int:
    array: Any = ir.TypeAttr(tile.attributes["global_type"]).value
    return int(array.num_elements) * int(array.element_type.width) // 8
