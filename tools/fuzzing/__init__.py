"""Random StableHLO graphs, their checks against XLA, and the workers that both fuzzers run in."""
