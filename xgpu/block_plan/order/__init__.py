"""In which order a block does things, and where its threads meet."""
