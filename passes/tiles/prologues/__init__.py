"""Left operands of products that threads compute, in registers, from tiles in shared memory."""
