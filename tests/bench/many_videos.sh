#!/usr/bin/env bash
# What many short videos cost vfm-clip: processor time for each of the first and of the last tenth, a run that finds all
# finished, and one with one more video; files in the folder of clips, and memory. As a Markdown table, for ways of --into.
# Usage: tests/bench/many_videos.sh [COUNT...]     (default: 1000 10000; 10 KB of disk in TMPDIR a video)
# JOIN="joined apart": which ways (default). JOBS=2: worker slots. SHARD_SIZE=1MiB: small, so that a tenth has many batches.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
export LC_ALL=C
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=$(realpath "${VFM_BIN:-${VFM_BUILD:-$root/build}/tools}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
[ $# -gt 0 ] || set -- 1000 10000
ffmpeg -nostdin -loglevel error -f lavfi -i testsrc2=size=64x36:rate=8 -frames:v 8 -c:v libx264 -preset ultrafast \
  -pix_fmt yuv420p one.mp4

# Copies of one video that differ in a box that no reader looks at, a thousand in a folder.
cat >make.py <<'PYTHON'
import os, struct, sys
video = open("one.mp4", "rb").read()
for i in range(int(sys.argv[1])):
    folder = "raw/%04d" % (i // 1000)
    if i % 1000 == 0:
        os.makedirs(folder)
    with open("%s/v%07d.mp4" % (folder, i), "wb") as out:
        out.write(video + struct.pack(">I4sQ", 16, b"free", i))
PYTHON
# Runs a command; prints its processor seconds.
cat >cost.py <<'PYTHON'
import resource, subprocess, sys
with open("out.jsonl", "wb") as out:
    status = subprocess.run(sys.argv[1:], stdout=out).returncode
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print("%.3f" % (usage.ru_utime + usage.ru_stime))
sys.exit(status)
PYTHON
# Gives a command the list on a pipe, a tenth at a time, when it has done all before and waits. Prints the milliseconds
# of processor a video in the first and in the last tenth, what comes at the end with it; the seconds of all, and the
# most KiB that it had.
cat >tenths.py <<'PYTHON'
import os, resource, subprocess, sys, time
names = open("list").read().splitlines()
tick = os.sysconf("SC_CLK_TCK")
with open("out.jsonl", "wb") as out:
    tool = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=out)
    def used():
        fields = open("/proc/%d/stat" % tool.pid).read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / tick
    marks = []
    for tenth in range(10):
        part = names[len(names) * tenth // 10:len(names) * (tenth + 1) // 10]
        tool.stdin.write(("\n".join(part) + "\n").encode())
        tool.stdin.flush()
        still, last = 0, -1.0
        while still < 10:
            time.sleep(0.1)
            now = used()
            still = still + 1 if now == last else 0
            last = now
        marks.append(last)
    tool.stdin.close()
    status = tool.wait()
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
total = usage.ru_utime + usage.ru_stime
each = len(names) / 10
first, last = 1e3 * marks[0] / each, 1e3 * (total - marks[8]) / each
print("%.2f %.2f %.2f %d" % (first, last, total, usage.ru_maxrss))
sys.exit(status)
PYTHON

printf '| videos | --into | ms of processor a video, first tenth | last tenth | all, s | resume, s | one more, s | files | memory, MiB |\n'
printf '|---:|---|---:|---:|---:|---:|---:|---:|---:|\n'
for count; do
  rm -rf raw
  python3 make.py "$count"
  find "$PWD/raw" -name '*.mp4' | sort >list
  sleep 2.1  # younger files are not noted
  for way in ${JOIN:-joined apart}; do
    rm -rf clips
    clip=("$bin/vfm-clip" -q -j"${JOBS:-2}" --shard-size "${SHARD_SIZE:-1MiB}" --into "$way" -o clips)
    read -r first last all memory < <(python3 tenths.py "${clip[@]}" -)
    read -r resume < <(python3 cost.py "${clip[@]}" - <list)
    { cat one.mp4; printf '\0\0\0\014freemore'; } >more.mp4
    read -r more < <({ cat list; echo "$PWD/more.mp4"; } | python3 cost.py "${clip[@]}" -)
    files=$(find clips -type f | wc -l)
    printf '| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n' "$count" "$way" "$first" "$last" "$all" "$resume" \
      "$more" "$files" $((memory / 1024))
  done
done
