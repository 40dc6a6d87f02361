"""Operations on nests of par and seq loops over buffers: those of loops, and those of accesses."""
