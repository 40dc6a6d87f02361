"""Analyses of nests of par and seq loops: their accesses, what depends on what, and who runs which iteration."""
