#!/usr/bin/env bats
# --part: a disk that fails, and inputs that crash the decoder, fail the part; what is bad for ever is a result.
# SPDX-License-Identifier: Apache-2.0
load helpers
load misbehaving
bats_require_minimum_version 1.5.0

# of_disk FILE AFTER COMMAND...: whichever time the command opens the file, an error of the disk behind byte AFTER fails
# part 0 of the folder out, and the command does the part later. The number of times is in the file times.
of_disk() {
  local file=$1 after=$2 at tool
  tool=$(basename "$3") tool=${tool#vfm-}
  shift 2
  [ -e bad-disk.so ] || cc -shared -fPIC -o bad-disk.so "$BATS_TEST_DIRNAME/bad-disk.c"
  cp -r out before
  for at in 1 2 3 4 5 6 7 8 9; do
    rm -rf out && cp -r before out
    run --separate-stderr env BAD_FILE="$file" BAD_OPEN=$at BAD_AFTER="$after" LD_PRELOAD="$PWD/bad-disk.so" "$@"
    [ "$status" -ne 0 ] || break
    echo "$at: $stderr"
    [ "$status" -eq 1 ]
    [ ! -e "out/parts/$tool/00000/done.json" ]
    [[ "$stderr" == *'Input/output error'* ]]
    echo $at >times
    [ $at -eq 2 ] || continue
    "$@" >again.jsonl
    jq -e '.errors == {}' "out/parts/$tool/00000/done.json" >/dev/null
  done
  rm -rf before
}

@test "an error of the disk in a video fails the part; a video that breaks off is a result" {
  local name names=(long.mp4)
  ! at_night || names+=(long.ts)
  make_video long.mp4 3 'testsrc2=size=160x96:rate=12'
  ffmpeg -nostdin -loglevel error -i long.mp4 -c copy -f mpegts long.ts
  for name in "${names[@]}"; do
    rm -rf out
    vfm-clip list -o out -n 1 "$name" >/dev/null
    of_disk "$name" 9000 vfm-clip -o out --part 0/1
    [ "$(cat times)" -ge 2 ] # it is opened to be hashed and to be decoded
  done
  head -c 9000 long.mp4 >short.mp4
  vfm-clip list -o cut -n 1 short.mp4 >/dev/null
  vfm-clip -o cut --part 0/1 >cut.jsonl
  jq -e '.errors | length == 1 and (has("disk") | not)' cut/parts/clip/00000/done.json
}

# bats test_tags=night
@test "an error of the disk in a shard fails the part" {
  local tar command
  mkdir clips
  cp wide.mp4 clips/k1.mp4
  cp loud.mp4 clips/k2.mp4
  echo '{"caption":"x"}' | tee clips/k1.json >clips/k2.json
  tar --format=ustar --sort=name -C clips -cf s.tar .
  head -c 200000 /dev/urandom >clips/k2.bin
  tar --format=ustar --sort=name -C clips -czf z.tar.gz .
  while read -r tar command; do
    rm -rf out && mkdir out
    # shellcheck disable=SC2086
    of_disk $tar 2000 $command -o out --part 0/1 $tar </dev/null
    [ "$(cat times)" -ge 3 ]
  done < <(by_time <<'END'
night s.tar vfm-caption --from builtin:measure
z.tar.gz vfm-embed
night s.tar vfm-pack --size 32 --frames 5
night z.tar.gz vfm-caption --from builtin:measure
night s.tar vfm-embed
night z.tar.gz vfm-pack --size 32 --frames 5
END
  )
}

@test "a video that crashes the decoder in three tries is a bad input" {
  isolates
  local n tool
  vfm-clip list -o out -n 1 wide.mp4 crash.mp4 >/dev/null
  mkdir clips
  cp wide.mp4 clips/k1.mp4
  cp crash.mp4 clips/k2.mp4
  tar --format=ustar --sort=name -C clips -cf s.tar .
  for n in 1 2 3; do
    for tool in 'clip -o out' 'embed -o out s.tar'; do
      bad vfm-$tool --isolate --part 0/1
      echo "$n: $tool: $stderr"
      set -- $tool
      if [ $n -lt 3 ]; then
        [ "$status" -eq 1 ]
        [ ! -e out/parts/$1/00000/done.json ]
        jq -e ".crashes | length == 1 and .[] == $n" out/parts/$1/00000/failed.json
      else
        [ "$status" -eq 0 ]
        jq -e '.errors == {"decode": 1}' out/parts/$1/00000/done.json
        jq -e '.code == "decode" and (.error | test("has crashed the decoder 3 times"))' out/parts/$1/00000/errors.jsonl
        [ ! -e out/parts/$1/00000/failed.json ]
      fi
    done
  done
  [ "$(find out/?? -name '*.tar' | wc -l)" -eq 1 ]
}

@test "what a part writes is on the disk before its name is, and all of it before the marker" {
  strace -o /dev/null -e trace=fsync,rename,link true || skip "strace is not there, or cannot trace"
  vfm-clip list -o out -n 1 wide.mp4 >/dev/null
  strace -f -y -qq -e trace=fsync,rename,link -o trace vfm-clip -o out --part 0/1 >clips.jsonl
  strace -f -y -qq -e trace=fsync,rename,link -o more vfm-embed out --part 0/1 >embeds.jsonl
  python3 - <<'END'
import json, os, re

def durable(trace, tool):
    """The files that have a name for good, in the order in which they got there, with the marker as the last."""
    synced, named, done = {}, {}, []
    for line in open(trace):
        if found := re.match(r'(\d+) +fsync\(\d+<([^>]*)>', line):
            pid, path = found.groups()
            synced.setdefault(pid, set()).add(path)
            for name in [name for name, folder in named.items() if folder == path]:
                done.append(name)
                del named[name]
        elif found := re.match(r'(\d+) +(?:rename|link)\("([^"]*)", "([^"]*)"', line):
            pid, old, new = found.group(1), *map(os.path.abspath, found.groups()[1:])
            assert old in synced[pid], f"{old} became {new} before it was synced"
            named[new] = os.path.dirname(new)
            if os.path.basename(new) == "done.json":
                break
    marker = os.path.abspath(f"out/parts/{tool}/00000/done.json")
    assert marker in named
    outputs = [output["path"] for output in json.load(open(marker))["outputs"]]
    assert outputs
    for name in [*outputs, f"parts/{tool}/00000/manifest.jsonl"]:
        assert os.path.abspath("out/" + name) in done, name
    return done

durable("trace", "clip")
durable("more", "embed")
folders = [line for line in open("trace") if re.search(r'fsync\(\d+<%s>' % os.path.abspath("out"), line)]
assert folders  # the new subfolder of the shards
END
}
