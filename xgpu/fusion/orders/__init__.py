"""In which order of dimensions values are computed."""
