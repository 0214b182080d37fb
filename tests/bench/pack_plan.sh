#!/bin/sh
# Speed of planning packs: samples a second, shuffle included, for sets of 0.1 to 10 million samples.
# Usage: tests/bench/pack_plan.sh [BUILD_DIR]
# SPDX-License-Identifier: Apache-2.0
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-$root/build}
bench=$build/tests/bench/pack_plan
[ -x "$bench" ] || ninja -C "$build" tests/bench/pack_plan >/dev/null
"$bench"
