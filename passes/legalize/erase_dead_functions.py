"""The pass `erase-dead-functions`."""

from typing import ClassVar

from xgpu import ir
from xgpu.hlo.contents import Contents
from xgpu.hlo.legalization import run_mlir_passes
from xgpu.hlo.scan_op import SCAN
from xgpu.passes.framework.base import Pass
from xgpu.records import dataclass


@dataclass(frozen=True)
class EraseDeadFunctions(Pass):
    """Erases private functions that nothing calls, so that errors in them refuse no program.

    MLIR's pass refuses regions of operations that MLIR does not know: functions beside one with a scan stay, to be
    checked as well, until calls are inlined. Needs: one public function.

    ```mlir
    func.func private @unused(%x: tensor<?xf32>) -> tensor<?xf32> { ... }
    func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> { ... }
    ```
    becomes
    ```mlir
    func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> { ... }
    ```
    """

    NAME: ClassVar[str] = "erase-dead-functions"

    def has_work(self, contents: Contents) -> bool:
        """Whether there is no scan."""
        return SCAN not in contents.names

    def apply(self, module: ir.Module) -> None:
        """Erase them."""
        run_mlir_passes(module, "symbol-dce")
