"""The driver: takes programs and kernels from level to level, in several processes, and keeps what it made."""
