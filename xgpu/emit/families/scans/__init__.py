"""The families of scans, and what they share."""
