"""The text of operations with regions, and of what is several operations or blocks of them."""
