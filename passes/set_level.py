"""The pass set-level."""

from typing import Literal

from xgpu import ir
from xgpu.dialects.attributes import LEVEL
from xgpu.passes.framework.base import Pass
from xgpu.records import dataclass


@dataclass(frozen=True)
class SetLevel(Pass):
    """Records in the module which level it has reached, so that a compilation can continue from its text.

    ```mlir
    module attributes {xgpu.level = "emitted"} {}
    // becomes, with level=optimized
    module attributes {xgpu.level = "optimized"} {}
    ```

    """

    NAME = "set-level"
    level: Literal["prepared", "mapped", "tiles", "emitted", "optimized", "lowered", "llvm"] = "emitted"
    """The level that the module has reached."""

    def apply(self, module: ir.Module) -> None:
        """Set the module's attribute."""
        module.operation.attributes[LEVEL] = ir.StringAttr.get(self.level)
