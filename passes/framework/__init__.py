"""The base of passes, their registry, the manager that runs them, and the remarks that they leave."""
