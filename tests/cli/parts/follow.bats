#!/usr/bin/env bats
# --follow and --waiting: programs that work at the same time, each at the parts that are there.
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # stderr is of run --separate-stderr
load ../helpers
bats_require_minimum_version 1.5.0

setup_file() {
  export LC_ALL=C.UTF-8 PATH="${VFM_BIN:?}:$PATH" MEDIA="$BATS_FILE_TMPDIR/media" VFM_LEASE_SECONDS=0.3
  mkdir "$MEDIA"
  cd "$MEDIA" || return 1
  make_video plain.mp4 0.7
  local i
  for i in {01..08}; do { cat plain.mp4; printf '\0\0\0\014free00%s' "$i"; } >"v$i.mp4"; done
  for i in 1 2 3 4 5; do
    { cat plain.mp4; printf '\0\1\0\010free'; head -c 65536 /dev/zero | tr '\0' $i; } >large$i.mp4
  done
  rm plain.mp4
  for i in v03.mp4 large2.mp4; do cp $i twin-$i; done
  find "$MEDIA" -type f | sort >../names
  mkdir ../one
  cd ../one || return 1
  list 1
  { vfm-clip -o clips --part auto && vfm-caption clips && vfm-embed --text builtin:hash clips && vfm-shard join clips &&
    vfm-pack --size 32 -o latents clips; } >said.jsonl 2>said
}

setup() {
  setup_tools
  export VFM_LEASE_SECONDS=0.3
  one=$BATS_FILE_TMPDIR/one
}

# list N: the folder clips, with a list of N parts.
list() { vfm-clip list --shard-size 256KiB -o clips -n "$1" <"$BATS_FILE_TMPDIR/names" >/dev/null; }
# whole DIR: name and hash of each file that does not tell who did what. A program without parts tells errors in another order.
whole() { (cd "$1" && find . -path ./parts -prune -o -type f ! -name '*errors.jsonl' -print | sort | xargs sha256sum); }
# done_parts TOOL
done_parts() { find "clips/parts/$1" -name done.json | wc -l; }

# begun TOOL: waits until the program has begun its parts.
begun() {
  local _
  for _ in $(seq 300); do
    [ ! -e "clips/parts/$1/run.json" ] || return 0
    sleep 0.1
  done
  return 1
}

@test "stages that run at the same time give the files of one after the other" {
  local n pid pids numbers=(4)
  ! at_night || numbers+=(7)
  # Receipts tell the way from a shard to its source.
  mkdir "$BATS_FILE_TMPDIR/two" && cd "$BATS_FILE_TMPDIR/two" || return 1
  for n in "${numbers[@]}"; do
    rm -rf clips latents
    pids=()
    list $n
    vfm-embed clips --text builtin:hash --part auto --follow 20s >embed.jsonl 2>embed.said 3>&- &
    pids+=($!)
    vfm-caption clips --part auto/2 --follow 20s >a.jsonl 2>a.said 3>&- &
    pids+=($!)
    vfm-caption clips --part auto/2 --follow 20s --waiting 1MiB >b.jsonl 2>b.said 3>&- &
    pids+=($!)
    begun caption && begun embed
    vfm-pack --size 32 -o latents clips --part auto --follow 20s >pack.jsonl 2>pack.said 3>&- &
    pids+=($!)
    vfm-clip -o clips --part auto --waiting 1MiB >clip.jsonl 2>clip.said
    for pid in "${pids[@]}"; do wait "$pid" || { cat ./*.said && return 1; }; done
    vfm-shard join clips >/dev/null
    vfm-shard join latents >/dev/null
    diff <(whole "$one/clips") <(whole clips)
    diff <(whole "$one/latents") <(whole latents)
    [ -z "$(find . -name 'lease*' -o -name temporary -o -name failed.json -o -name '.*.tmp')" ]
  done
}

@test "a program gives up when no part that it needs moves, and says which" {
  list 4
  vfm-clip -o clips --part 1/4 >/dev/null
  fails 1 vfm-caption clips --part auto
  grep -q "of vfm-clip, 3 of the 4 parts of 'clips' are not complete: 0, 2, 3" err
  [ "$(done_parts caption)" -eq 1 ]
  fails 1 vfm-caption clips --part 2/4 --follow 300ms
  grep -q "of vfm-clip, 1 of the 4 parts of 'clips' is not complete: 2; none of them has moved for 0.3s" err
  fails 1 vfm-embed clips --text builtin:hash --part auto --follow 300ms
  grep -q 'of vfm-caption, 3 of the 4 parts' err
  [ "$(done_parts embed)" -eq 1 ]
  # A warning of the time limit ends the wait.
  vfm-caption clips --part 3/4 --follow 1h >late.jsonl 2>said 3>&- &
  sleep 0.5
  kill -USR1 $!
  wait $! || [ $? -eq 4 ]
  [ "$(done_parts caption)" -eq 1 ]
}

# bats test_tags=night
@test "with --waiting, vfm-clip is not further ahead than it may be" {
  list 3
  fails 1 vfm-caption clips --part auto
  vfm-clip -o clips --part auto --waiting 1 >clip.jsonl 2>said 3>&- &
  local clip=$!
  for _ in $(seq 300); do
    [ "$(done_parts clip)" -eq 0 ] || break
    sleep 0.1
  done
  sleep 1
  [ "$(done_parts clip)" -eq 1 ]
  vfm-caption clips --part auto --follow 20s >/dev/null
  wait "$clip"
  [ "$(done_parts clip) $(done_parts caption)" = '3 3' ]
}

# bats test_tags=night
@test "what cannot be followed is refused" {
  list 2
  refused --part vfm-caption clips --follow 1h
  refused '--part next does not wait' vfm-caption clips --part next --follow 1h
  refused --part vfm-clip -o clips --waiting 1GiB
  refused 'is for --part auto' vfm-clip -o clips --part 0/2 --waiting 1GiB
  refused 'give one folder with its list' vfm-pack -o latents --part 0/2 --follow 1h "$one/clips/clips.jsonl"
  refused 'say whether its captions are embedded' vfm-embed clips --part auto --follow 1h
  # Columns of a program that begins later would be read or not.
  vfm-clip -o clips --part 0/2 >/dev/null
  vfm-embed clips --part 0/2 >/dev/null
  vfm-caption clips --part 0/2 >/dev/null
  fails 3 vfm-embed clips --part 1/2
  grep -q "were begun before those of vfm-caption, whose columns they would read; remove 'clips/parts/embed'" err
  vfm-embed clips --part 0/2 --text none >/dev/null 2>said && return 1
  rm -r clips/parts/embed
  vfm-embed clips --part 0/2 --text none >/dev/null
}
