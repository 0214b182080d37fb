#!/usr/bin/env bash
# Training on latents in a bucket, with 20 ms of latency before each answer: the seconds to the first batch of 1,000 shards and
# a million samples, of latents and of clips, without a cache and with an empty one; and the part of its time that a rank waits for samples of 2 MB, ten a second, at
# 50 MB/s a connection, in an epoch without a cache, in one that fills the cache, and in one that finds it. A Markdown table.
# The server and the proxy that slows it down run on the same cores.
# usage: tests/bench/bucket_epoch.sh [BUILD]      (default: build)
# Environment: LATENCY (seconds: 0.02), RATE (bytes a second and connection: 50e6), SHARDS (1000), SAMPLES (of 2 MB: 300),
# ROUNDS (of the first batch: 3).
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(realpath "${1:-$root/build}")
cd "$root"
ninja -C "$build" tests/bench/bucket_epoch tests/bench/many_samples >/dev/null
scratch=$(mktemp -d "${TMPDIR:-/tmp}/vfm-bench-XXXXXX")
export VFM_ROOT=$root BATS_FILE_TMPDIR=$scratch
await() {
  for _ in $(seq 200); do
    if "$@" >/dev/null 2>&1; then return 0; fi
    sleep 0.1
  done
  return 1
}
# shellcheck disable=SC1091
source "$root/tests/support/bucket.bash"
trap 'bucket_stop; rm -rf "$scratch"' EXIT
bucket_start
if [ -n "${NO_BUCKET-}" ]; then
  echo "$NO_BUCKET" >&2
  exit 1
fi
bucket bench
export VFM_NET_SECONDS=300 # the disk may be slow
bench=$build/tests/bench/bucket_epoch
shards=${SHARDS:-1000} samples=${SAMPLES:-300}
"$build/tests/bench/many_samples" "$scratch/many" "$((shards * 1000))" 1000
"$bench" put "$scratch/many" s3://bench/many
"$bench" make "$scratch/large" "$samples" 2
"$bench" put "$scratch/large" s3://bench/large
"$bench" make-clips "$scratch/clips" "$shards" 1000
"$bench" put "$scratch/clips" s3://bench/clips
rm -rf "$scratch/many" "$scratch/clips" "$scratch/large"
proxy_start
pace="pace latency=${LATENCY:-0.02} rate=${RATE:-50e6}"
export OMP_NUM_THREADS=1
requests() { asked length; }

echo "| Latents in a bucket, $(awk -v s="${LATENCY:-0.02}" 'BEGIN { print s * 1000 }') ms, $(awk -v r="${RATE:-50e6}" 'BEGIN { print r / 1e6 }') MB/s a connection | measured | requests |"
echo "|---|--:|--:|"
first() { # COMMAND PLACE WORDS
  faults <<<"$pace"
  "$bench" "$1" "$2" >"$scratch/first.json"
  jq -r --arg requests "$(requests)" --arg shards "$shards" --arg words "$3" \
    '"| first batch, \(.samples) of \(.of) \($words) in \($shards) shards | \(.seconds) s (index \(.opened) s) | \($requests) |"' "$scratch/first.json"
}
for _ in $(seq "${ROUNDS:-3}"); do
  first first s3://bench/many samples
  VFM_CACHE=$scratch/first:4GB first first s3://bench/many 'samples, a cache that is empty,'
  rm -r "$scratch/first"
  first first-clips s3://bench/clips clips
  VFM_CACHE=$scratch/first:4GB first first-clips s3://bench/clips 'clips, a cache that is empty,'
  rm -r "$scratch/first"
done
for cache in "" "$scratch/cache:4GB" "$scratch/cache:4GB"; do
  words="no cache"
  if [ -n "$cache" ]; then words="a cache that is empty"; fi
  if [ -d "$scratch/cache" ]; then words="a cache that has them"; fi
  faults <<<"$pace"
  if [ -n "$cache" ]; then export VFM_CACHE=$cache; fi
  "$bench" epoch s3://bench/large 10 >"$scratch/epoch"
  jq -r --arg requests "$(requests)" --arg words "$words" \
    '"| an epoch of \(.samples) samples of 2 MB, 10 a second, \($words) | \(.waited * 10000 | round / 100) % waited, \(.processor * 10000 | round / 100) % of a core | \($requests) |"' "$scratch/epoch"
done
