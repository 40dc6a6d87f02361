"""How scatters are written as others whose order does not matter."""
