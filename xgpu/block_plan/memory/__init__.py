"""Where tiles lie: their layouts in shared memory, and their places in it."""
