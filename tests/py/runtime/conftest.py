"""Makes the kernels importable by their path from the root: pytest's importlib mode puts no folder on the path."""

import sys
from pathlib import Path

# Last: where xgpu runs from the tree, the folder at the root is a part of the package only.
sys.path.append(str(Path(__file__).parents[3]))
