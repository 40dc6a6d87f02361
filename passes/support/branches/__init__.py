"""The costs of branches: the instructions in them, and the warps whose threads take different ones."""
