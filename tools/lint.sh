#!/usr/bin/env bash
# Usage: tools/lint.sh PYTHON
#
# Style (ruff), types (mypy, strict, on all but the tests) and the structure of the tree (tests/py/test_layering.py). Runs all, then fails if
# one failed.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=$1
status=0

# Show a type error at the file's own place instead of at its link under build/tree.
own_places() {
  sed -E -e 's#build/tree/xgpu/(dialects|passes|tools)/#\1/#g' -e 's#build/tree/xgpu/#xgpu/#g'
}

# Meanwhile, on another core, as it takes as long as all the rest; what it says comes last.
# By package name: mypy gives a file of a top-level folder the folder's name and not its import name.
types=$(mktemp)
trap 'rm -f "$types"' EXIT
"$python" -m mypy -p xgpu >"$types" 2>&1 &
mypy=$!
"$python" -m ruff check . || status=1
"$python" -m ruff format --check . || status=1
"$python" -m pytest --quiet tests/py/test_layering.py || status=1
wait "$mypy" || status=1
own_places <"$types"
exit $status
