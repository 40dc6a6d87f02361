"""What runs kernels whose blocks work on tiles on this machine: asynchronous copies, mbarriers, products of warps."""
