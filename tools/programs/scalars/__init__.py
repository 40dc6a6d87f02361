"""Programs of functions of single elements, in all types."""
