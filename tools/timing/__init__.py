"""Times of some kinds of kernels on a GPU, beside those of other libraries, and whether results are right."""
