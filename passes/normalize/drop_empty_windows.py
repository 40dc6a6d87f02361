"""The pass `drop-empty-windows`."""

from typing import ClassVar

from xgpu import ir
from xgpu.passes.framework.base import ModuleRewrite
from xgpu.records import dataclass

_WINDOW_ATTRIBUTES = (
    *("window_strides", "padding", "window_reversal"),
    *("lhs_dilation", "rhs_dilation", "base_dilations", "window_dilations"),
)


@dataclass(frozen=True)
class DropEmptyWindows(ModuleRewrite):
    """Removes empty lists of window dimensions from operations: the defaults mean the same.

    Needs: nothing.

    ```mlir
    %0 = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 8>, window_strides = array<i64>}> ...
    ```
    becomes
    ```mlir
    %0 = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 8>}> ...
    ```
    """

    NAME: ClassVar[str] = "drop-empty-windows"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset(
        f"stablehlo.{name}" for name in ("convolution", "reduce_window", "select_and_scatter")
    )

    def rewrite(self, op: ir.Operation) -> None:
        """Remove the empty lists of one operation."""
        for name in _WINDOW_ATTRIBUTES:
            if name in op.attributes and not len(op.attributes[name]):  # type: ignore[arg-type]
                del op.attributes[name]
