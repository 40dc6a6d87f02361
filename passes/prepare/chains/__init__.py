"""What find-chains makes chains of: their operations and arrays, and those of gradients of attention."""
