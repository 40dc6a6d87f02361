"""Where elements of tiles are, in shared memory and in arrays, and which thread takes which."""
