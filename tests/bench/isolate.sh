#!/usr/bin/env bash
# What --isolate costs vfm-clip: processor seconds with and without it, of finding shots and of cutting. As a Markdown
# table; the cost is the median of the rounds' ratios, beside the lowest and the highest. Then the milliseconds of each
# run, and of each video, whatever its length: of finding shots in one, and in 101, of one picture.
# Usage: tests/bench/isolate.sh VIDEO...
# VFM_BIN: where vfm-clip is (default: build/tools). ROUNDS=5: how often each is done, with and without it in turn.
# WAYS="shots cut": which. All processes count, also those that decode; so what runs beside it changes little.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
export LC_ALL=C
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=${VFM_BIN:-${VFM_BUILD:-$root/build}/tools}
[ $# -gt 0 ] || { echo "usage: $0 VIDEO..." >&2; exit 2; }
[ -x "$bin/vfm-clip" ] || { echo "there is no $bin/vfm-clip: build it first" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Processor seconds of a command and of all that it leaves, which come to this process when it ends; its output in a file.
cat >"$work/cost.py" <<'PYTHON'
import ctypes, os, resource, subprocess, sys
SUBREAPER = 36
if ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0) != 0:
    sys.exit("this system does not hand over what a command leaves")
with open(sys.argv[1], "wb") as out:
    status = subprocess.run(sys.argv[2:], stdout=out).returncode
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print("%.3f" % (usage.ru_utime + usage.ru_stime))
sys.exit(status)
PYTHON

# timed WAY OPTION...: of the video in $video; its clips in the folder "clips", its records in "out".
timed() {
  local way=$1
  shift
  rm -rf "$work/clips"
  case $way in
    shots) set -- shots "$@" ;;
    cut) set -- -o "$work/clips" "$@" ;;
  esac
  python3 "$work/cost.py" "$work/out" "$bin/vfm-clip" "$@" -q -j1 "$video"
}
# result WAY: what it came to, without what names the command.
result() {
  grep -v '^{"kind":"\(begin\|end\)"' "$work/out" | sha256sum
  [ "$1" = shots ] || (cd "$work/clips" && sha256sum -- *.tar)
}

printf '| video | | s without | s with | cost | lowest | highest |\n|---|---|---:|---:|---:|---:|---:|\n'
for video; do
  for way in ${WAYS:-shots cut}; do
    : >"$work/rounds"
    for ((round = 0; round < ${ROUNDS:-5}; ++round)); do
      here=$(timed "$way")
      result "$way" >"$work/here"
      apart=$(timed "$way" --isolate)
      result "$way" >"$work/apart"
      diff "$work/here" "$work/apart" >&2
      echo "$here $apart" >>"$work/rounds"
    done
    awk '{ print $2 / $1, $1, $2 }' "$work/rounds" | sort -n | awk -v name="$(basename "$video")" -v way="$way" '
      { ratio[NR] = $1; here += $2; apart += $3 }
      function percent(r) { return sprintf("%+.1f %%", 100 * (r - 1)) }
      END {
        middle = (ratio[int((NR + 1) / 2)] + ratio[int(NR / 2) + 1]) / 2
        printf "| %s | %s | %.2f | %.2f | %s | %s | %s |\n", name, way, here / NR, apart / NR, percent(middle),
          percent(ratio[1]), percent(ratio[NR]) }'
  done
done

ffmpeg -nostdin -loglevel error -f lavfi -i testsrc2=size=64x36 -frames:v 1 -c:v libx264 -pix_fmt yuv420p "$work/one.mp4"
for ((i = 0; i < 101; ++i)); do ln -s one.mp4 "$work/v$i.mp4"; done
# of_rounds OPTION...: mean seconds of one video, and of all.
of_rounds() {
  for ((round = 0; round < ${ROUNDS:-5}; ++round)); do
    python3 "$work/cost.py" "$work/out" "$bin/vfm-clip" shots -q -j1 "$@" "$work/one.mp4"
    python3 "$work/cost.py" "$work/out" "$bin/vfm-clip" shots -q -j1 "$@" "$work"/v*.mp4
  done | awk '{ sum[NR % 2] += $1 } END { n = NR / 2; print sum[1] / n, sum[0] / n }'
}
echo "$(of_rounds) $(of_rounds --isolate)" | awk '{ each = ($4 - $3 - ($2 - $1)) / 100
  printf "\na run %.1f ms, and a video %.1f ms\n", 1000 * ($3 - $1 - each), 1000 * each }'
