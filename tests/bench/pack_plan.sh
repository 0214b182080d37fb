#!/bin/sh
# Planning packs: fill, spread of the packs' sums of squared lengths, and samples a second, shuffle
# included, for sets of 0.1 to 10 million samples; over steps of eight packs, the standard deviation of the
# share of images, and the squares of the heaviest pack over those of the mean one.
# Usage: tests/bench/pack_plan.sh [BUILD_DIR [best-fit|whole]]    (best-fit: not balanced; both: whole epochs, without blocks)
# SPDX-License-Identifier: Apache-2.0
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-$root/build}
bench=$build/tests/bench/pack_plan
ninja -C "$build" tests/bench/pack_plan >/dev/null
"$bench" ${2:+"$2"}
