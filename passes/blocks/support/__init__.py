"""What passes on kernels of tiles share: the decisions that stand in the IR."""
