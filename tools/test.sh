#!/usr/bin/env bash
# Usage: tools/test.sh PYTHON [PYTEST_OPTION...]
#
# Runs the whole test suite with one interpreter: pytest over tests/py, then lit over tests/lit, also if pytest failed.
# XGPU_TEST_JOBS  how many tests run at once; otherwise one for each core, eight at most
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=$1
shift
cores=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
jobs=${XGPU_TEST_JOBS:-$((cores < 8 ? cores : 8))}

# glibc asks for large pages where the kernel gives them to those who ask: compilers, of which tests use three, walk over
# much memory. Other C libraries do not know the variable.
export GLIBC_TUNABLES=${GLIBC_TUNABLES:+$GLIBC_TUNABLES:}glibc.malloc.hugetlb=1

# Tests start many processes, and each would compile the modules that it imports again, which takes 0.5 s of a core.
unset PYTHONDONTWRITEBYTECODE

# Each process has a stretch of the tests, so that those of a file share what it makes, until one has none left.
"$python" -m pytest -n "$jobs" --dist worksteal --durations=15 "$@"
pytest_status=$?
# lit.main has no entry of its own for "python -m".
"$python" -c "from lit.main import main; main()" -sv --workers "$jobs" tests/lit
lit_status=$?

describe() { if (($1)); then echo "FAILED (exit $1)"; else echo ok; fi; }
echo "pytest: $(describe $pytest_status)"
echo "lit:    $(describe $lit_status)"
((pytest_status == 0 && lit_status == 0))
