"""Facts about StableHLO that planning, passes and emitters ask, from its indexing maps and regions."""
