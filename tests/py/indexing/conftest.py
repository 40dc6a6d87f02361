"""Makes the strategies importable by their path from the root: pytest's importlib mode puts no folder on the path."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))
