"""Products of tiles by the warps of a block, and what their threads then hold of them."""
