#!/usr/bin/env bash
# Prints the path of a Python that is new enough for xgpu and can make virtual environments.
#
# Looks at $XGPU_PYTHON (and nothing else if that is set), then at the usual names on PATH, then at every version that
# pyenv has installed: a pyenv shim refuses to start a version that is not the selected one, though it is there.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
minimum=$(sed -n 's/^requires-python = ">=\([0-9.]*\)".*/\1/p' "$root/pyproject.toml")

# Print the real interpreter behind a command (not a shim) if xgpu can use it.
resolve() {
  "$1" - "$minimum" 2>/dev/null <<'PYTHON'
import sys
if sys.version_info < tuple(int(part) for part in sys.argv[1].split(".")):
    sys.exit(1)
import ensurepip, venv
print(sys.executable)
PYTHON
}

# Print the path of each candidate, the best first: the oldest supported version has wheels of every dependency.
candidates() {
  local name base
  for name in "python$minimum" python3.{13..20} python3 python; do
    type -P "$name" || true
  done
  for base in ${PYENV_ROOT:+"$PYENV_ROOT"} ${HOME:+"$HOME/.pyenv"}; do
    ls -d "$base"/versions/*/bin/python3 2>/dev/null | sort -V || true
  done
}

if [[ -n ${XGPU_PYTHON:-} ]]; then
  resolve "$XGPU_PYTHON" && exit 0
  echo "XGPU_PYTHON=$XGPU_PYTHON is not a Python >= $minimum with the modules venv and ensurepip" >&2
  exit 1
fi

tried=()
while read -r candidate; do
  resolve "$candidate" && exit 0
  tried+=("$candidate")
done < <(candidates)

{
  echo "xgpu needs Python >= $minimum with the modules venv and ensurepip, and found none. Looked at:"
  if ((${#tried[@]})); then printf '  %s\n' "${tried[@]}"; else echo "  no Python at all"; fi
  echo "Install one (for example 'apt install python$minimum python$minimum-venv' or 'pyenv install $minimum'),"
  echo "or name one with XGPU_PYTHON=/path/to/python."
} >&2
exit 1
