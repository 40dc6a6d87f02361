"""The chains that find-chains makes: their operations and arrays, and those of gradients of attention."""
