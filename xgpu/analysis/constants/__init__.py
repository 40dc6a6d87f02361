"""The values of arrays that a program computes of constants alone."""
