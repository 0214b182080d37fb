#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Prints the path of a Python with the modules that a benchmark compares with: TORCH_PYTHON, or else
# that of a venv in BUILD_DIR, which gets what it lacks.
#   tests/bench/torch-python.sh BUILD_DIR MODULE==VERSION...
set -euo pipefail
venv=$1/torch-venv
python=${TORCH_PYTHON:-$venv/bin/python}
shift
missing=()
for module in "$@"; do
  "$python" -c "import ${module%%==*}" 2>/dev/null || missing+=("$module")
done
if [ ${#missing[@]} -gt 0 ]; then
  if [ -n "${TORCH_PYTHON:-}" ]; then
    echo "$TORCH_PYTHON lacks ${missing[*]}" >&2
    exit 1
  fi
  echo "installing ${missing[*]} into $venv" >&2
  [ -x "$python" ] || python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet numpy "${missing[@]}" >&2
fi
echo "$python"
