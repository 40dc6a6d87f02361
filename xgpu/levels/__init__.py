"""The levels as a graph, and the lists of passes between them."""
