"""The elements of tiles in shared memory and in arrays, and their division among threads."""
