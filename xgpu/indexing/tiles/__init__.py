"""Maps of tiles: how they lie in arrays, in what order blocks compute them, and which thread holds what of one."""
