#!/usr/bin/env bash
# Lays the packages out under build/tree as they are imported (build/tree/xgpu/passes and so on), as symbolic links.
#
# Only setuptools knows that the top-level folders of [tool.setuptools.package-dir] are packages inside xgpu. This tree
# tells the type checker, and is what PYTHONPATH names where xgpu runs without being installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tree=build/tree/xgpu
mkdir -p "$tree"

# Make one link, and only if it is not right yet: other processes may be reading the tree.
link() {
  [[ $(readlink "$tree/$2" || true) == "../../../$1" ]] || ln -sfn "../../../$1" "$tree/$2"
}

for entry in xgpu/*; do
  [[ $entry == */__pycache__ ]] || link "$entry" "${entry#xgpu/}"
done
while read -r package folder; do
  link "$folder" "$package"
done < <(sed -n '/^\[tool.setuptools.package-dir\]/,/^$/s/^"xgpu\.\([a-z_]*\)" = "\(.*\)"$/\1 \2/p' pyproject.toml)

for entry in "$tree"/*; do
  [[ -e $entry ]] || rm -f "$entry"
done
