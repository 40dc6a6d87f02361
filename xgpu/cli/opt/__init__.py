"""The command `xgpu-opt`: runs passes one by one."""
