#!/usr/bin/env bash
# Usage: tools/bootstrap.sh VENV [REQUIREMENT...]
#
# Makes the virtual environment VENV with xgpu installed in it (editable, with the extras for tests and lint) and, if
# given, further requirements such as 'jax==0.11.2'. Does nothing if that was done before and pyproject.toml is the same.
#
# XGPU_PYTHON   the Python to use; see find_python.sh for what is taken otherwise
# XGPU_NO_VENV  if set to 1, installs nothing: the caller runs an interpreter that has the dependencies already
# XGPU_EXTRAS   the extras to install; otherwise test,lint and, where there is an NVIDIA GPU, cuda13
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tools/link_tree.sh

# Say what an interpreter lacks that is to be used as it is.
check_interpreter() {
  "$1" - <<'PYTHON'
import importlib.util, sys
missing = [name for name in ("jax", "numpy", "llvmlite") if importlib.util.find_spec(name) is None]
if sys.version_info < (3, 12):
    sys.exit(f"XGPU_NO_VENV=1: {sys.executable} is Python {sys.version.split()[0]}, older than 3.12; set XGPU_PYTHON")
if missing:
    sys.exit(f"XGPU_NO_VENV=1: {sys.executable} lacks {', '.join(missing)}; set XGPU_PYTHON")
PYTHON
}

if [[ ${XGPU_NO_VENV:-} == 1 ]]; then
  check_interpreter "${XGPU_PYTHON:-python3}"
  exit 0
fi
venv=$1
shift

default_extras() {
  if nvidia-smi -L 2>/dev/null | grep -q '^GPU '; then echo test,lint,cuda13; else echo test,lint; fi
}
extras=${XGPU_EXTRAS:-$(default_extras)}
# The folder is part of the stamp because a moved tree leaves a virtual environment that points to its old place.
stamp=$(printf '%s\n' "$PWD" "$extras" "$@"; cat pyproject.toml)

usable() {
  "$venv/bin/python" -c '' 2>/dev/null || return 1
  [[ -z ${XGPU_PYTHON:-} ]] && return 0
  local base='import sys; print(sys.base_prefix, sys.version)'
  [[ $("$venv/bin/python" -c "$base") == $("$XGPU_PYTHON" -c "$base") ]]
}

if usable && [[ $(cat "$venv/xgpu-stamp" 2>/dev/null) == "$stamp" ]]; then
  exit 0
fi
if ! usable; then
  python=$(tools/find_python.sh)
  echo "Making $venv with $python ($("$python" -V))"
  "$python" -m venv --clear "$venv"
fi
rm -f "$venv/xgpu-stamp"
echo "Installing xgpu[$extras]${*:+ with $*} into $venv (a minute or two the first time)"
"$venv/bin/python" -m pip install --quiet --no-input --disable-pip-version-check --editable ".[$extras]" "$@"
printf '%s\n' "$stamp" >"$venv/xgpu-stamp"
