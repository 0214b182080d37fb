#!/bin/sh
# Time of a normal number, against Box-Muller with the C library in doubles, on one thread.
# Usage: tests/bench/noise.sh [BUILD_DIR]
# SPDX-License-Identifier: Apache-2.0
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-$root/build}
ninja -C "$build" tests/bench/noise >/dev/null
"$build/tests/bench/noise"
