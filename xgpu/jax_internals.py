"""Names of JAX that it does not document and xgpu uses: the one place to look at when a new release moves something.

`xgpu.jit` stands in for `jax.jit`, so it shares JAX's own stages, caches and error messages; block programs are traced
as JAX's own functions are.
"""

from jax._src import compiler, config, core, pjit, source_info_util, traceback_util
from jax._src.api_util import check_callable, fun_signature, infer_argnums_and_argnames
from jax._src.core import Primitive, ShapedArray
from jax._src.effects import ordered_effects
from jax._src.export import _export as export
from jax._src.interpreters import mlir, pxla
from jax._src.lax.lax import _convert_element_type as convert_element_type
from jax._src.lib import xla_client  # type: ignore[attr-defined]
from jax._src.named_sharding import UNSPECIFIED, UnspecifiedValue
from jax._src.sharding_impls import SPMDAxisContext
from jax._src.state.types import RefEffect
from jax._src.util import fun_name, weakref_lru_cache

__all__ = [
    "UNSPECIFIED",
    "Primitive",
    "RefEffect",
    "SPMDAxisContext",
    "ShapedArray",
    "UnspecifiedValue",
    "check_callable",
    "compiler",
    "config",
    "convert_element_type",
    "core",
    "export",
    "fun_name",
    "fun_signature",
    "infer_argnums_and_argnames",
    "mlir",
    "ordered_effects",
    "pjit",
    "pxla",
    "source_info_util",
    "traceback_util",
    "weakref_lru_cache",
    "xla_client",
]
