#!/bin/sh
# The planner's predictions of published training rows, as Markdown tables. No GPU is needed.
# Usage: tests/bench/plan.sh [BUILD_DIR]
# SPDX-License-Identifier: Apache-2.0
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-$root/build}
ninja -C "$build" tests/bench/plan >/dev/null
"$build/tests/bench/plan" "$root/examples/recipes"
