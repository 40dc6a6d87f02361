"""The pass `drop-annotations`."""

from typing import ClassVar

from xgpu import ir
from xgpu.passes.framework.base import Pass, main_of
from xgpu.records import dataclass
from xgpu.structure import walk

_DROPPED = frozenset(("mhlo.sharding", "mhlo.frontend_attributes", "xla_shape", "result_layout", "source_layout"))
"""Attributes that imports attach to operations and nothing reads."""


@dataclass(frozen=True)
class DropAnnotations(Pass):
    """Removes attributes that no later stage reads, so that they cannot make equal programs differ.

    Results keep the names that JAX gave them. Needs: one function, ``@main``.

    ```mlir
    module @jit_f attributes {mhlo.num_partitions = 1 : i32} {
      func.func public @main(%x: tensor<4xf32> {mhlo.sharding = "{replicated}"}) -> tensor<4xf32> { ... }
    }
    ```
    becomes
    ```mlir
    module @jit_f {
      func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { ... }
    }
    ```
    """

    NAME: ClassVar[str] = "drop-annotations"

    def apply(self, module: ir.Module) -> None:
        """Remove those of the module, of ``@main``, and of all operations."""
        _keep_attributes(module.operation, ("sym_name",))
        _keep_attributes(main_of(module).operation, ("sym_name", "function_type", "res_attrs"))
        for op in walk(module.operation, post_order=False):
            for name in list(op.attributes):
                if name in _DROPPED:
                    del op.attributes[name]


def _keep_attributes(op: ir.Operation, kept: tuple[str, ...]) -> None:
    for name in list(op.attributes):
        if name not in kept:
            del op.attributes[name]
