"""The pass `select-main`."""

from typing import ClassVar

from xgpu import ir
from xgpu.errors import InvalidInput
from xgpu.hlo.source_location import source_of
from xgpu.passes.framework.base import MAIN, Pass
from xgpu.records import dataclass

_VISIBILITY = "sym_visibility"


@dataclass(frozen=True)
class SelectMain(Pass):
    """Names the entry function ``main`` and makes it the only public one.

    Raises InvalidInput if it has no body, or if it is not clear which function that is. Needs: nothing.

    ```mlir
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> { ... }
    ```
    becomes
    ```mlir
    func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> { ... }
    ```
    """

    NAME: ClassVar[str] = "select-main"

    def apply(self, module: ir.Module) -> None:
        """Take the function ``main``, or the only public one."""
        functions = [op for op in module.body.operations if isinstance(op, ir.func.FuncOp)]
        public = [function for function in functions if not _is_private(function)]
        named = [function for function in functions if function.name.value == MAIN]
        candidates = named or public
        if len(candidates) != 1:
            names = ", ".join(f"@{function.name.value}" for function in public) or "none"
            raise InvalidInput(
                f"expected a function @main or exactly one public function; the public ones are: {names}"
            )
        (main,) = candidates
        if main.is_external:
            raise InvalidInput(f"the entry function @{main.name.value} has no body", source_of(main))
        if not named:
            main.operation.attributes["sym_name"] = ir.StringAttr.get(MAIN)
        for function in functions:
            # Private functions that nothing calls are then removed as dead.
            visibility = "public" if function == main else "private"
            function.operation.attributes[_VISIBILITY] = ir.StringAttr.get(visibility)


def _is_private(function: ir.func.FuncOp) -> bool:
    attributes = function.operation.attributes
    return _VISIBILITY in attributes and ir.StringAttr(attributes[_VISIBILITY]).value == "private"
