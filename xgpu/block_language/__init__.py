"""Block programs in Python: JAX code on tiles, from a function to the text of level ``tiles``."""

from pathlib import Path

from xgpu.jax_internals import source_info_util

# JAX passes over these files where it says which lines operations come from.
source_info_util.register_exclusion(str(Path(__file__).parent))
