"""The Python interface: `xgpu.compile`, `xgpu.jit`, and what explains a compiled program."""
