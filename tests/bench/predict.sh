#!/bin/sh
# Predicted times as Markdown tables: a step and a clip of 7 billion parameters. No GPU is needed.
# Usage: tests/bench/predict.sh [BUILD_DIR]
# SPDX-License-Identifier: Apache-2.0
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-$root/build}
ninja -C "$build" tests/bench/predict >/dev/null
"$build/tests/bench/predict" "$root/examples/recipes/7b.yaml"
