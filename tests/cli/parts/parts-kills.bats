#!/usr/bin/env bats
# A chain of four programs on nodes that are killed: the files of a chain that nobody disturbs.
# SPDX-License-Identifier: Apache-2.0
load ../helpers
bats_require_minimum_version 1.5.0

parts=8 stages=(clip caption embed pack)

setup_file() {
  export LC_ALL=C.UTF-8 PATH="${VFM_BIN:?}:$PATH"
  local i
  mkdir "$BATS_FILE_TMPDIR/media" && cd "$BATS_FILE_TMPDIR/media" || return 1
  make_shots shots.mp4
  make_video plain.mp4 0.7
  # Sources that differ in a box that no reader looks at: small ones, and some above a sixteenth of a shard.
  for i in $(seq -w 24); do { cat plain.mp4; printf '\0\0\0\014free00%s' "$i"; } >"v$i.mp4"; done
  for i in 1 2 3; do
    { cat shots.mp4; printf '\0\1\0\010free'; head -c 65536 /dev/zero | tr '\0' $i; } >large$i.mp4
  done
  rm plain.mp4 shots.mp4
  cp large2.mp4 twin.mp4
  echo no video >none.mp4
  find "$PWD" -type f | sort >../names
  cat >../node <<'NODE'
# The work of a node: each program does parts until all are done. Who died is started again.
again() { until "$@" </dev/null; do [ $? -ne 2 ] || exit 2; done; }
again vfm-clip -j1 -o clips --part auto
again vfm-caption -j1 --part "auto/$PARTS" clips
again vfm-embed -j1 --part "auto/$PARTS" clips
again vfm-pack -j1 --size 32 --part "auto/$PARTS" -o latents clips
NODE
  mkdir ../whole && cd ../whole || return 1
  list 1
  PARTS=1 bash ../node >out 2>err
  join
}

setup() {
  setup_tools
  export VFM_LEASE_SECONDS=0.3 PARTS=$parts
  cd "$BATS_FILE_TMPDIR" || return 1
  node=(setsid)
  # A node whose processes nobody else sees, as those of another machine: its leases are only silent.
  ! unshare -fp true 2>/dev/null || node=(setsid unshare -fp)
}

list() { vfm-clip list --shard-size 128KiB -o clips -n "$1" <../names >/dev/null; }
join() { vfm-shard join clips >clips.jsonl 2>said && vfm-shard join latents >latents.jsonl 2>said; }
# whole DIR: name and hash of each file that does not tell who did what.
whole() { (cd "$1" && find . -path ./parts -prune -o -type f -print | LC_ALL=C sort | xargs sha256sum); }

# at_work NODE: the processes of its programs, as "PID NAME", in random order.
at_work() { pgrep -l -g "$1" '^vfm-' | shuf; }
# start I: node I, of which each second one is another machine.
start() {
  local run=(setsid)
  [ $(($1 % 2)) -eq 0 ] || run=("${node[@]}")
  "${run[@]}" bash ../node >>"out$1" 2>>"err$1" </dev/null 3>&- &
  nodes[$1]=$!
}
# strike I: kills a process of node I, or each third time all of them, if kills are left for its program.
strike() {
  local pid name
  read -r pid name < <(at_work "${nodes[$1]}") || return 0
  name=${name#vfm-}
  [ "${kills[$name]-0}" -gt 0 ] || return 0
  [ $((kills[$name] % 3)) -ne 0 ] || pid=-${nodes[$1]}
  kill -KILL -- "$pid" 2>/dev/null || return 0
  kills[$name]=$((kills[$name] - 1))
}
# of_kills: how many are left.
of_kills() { local sum=0 one; for one in "${kills[@]}"; do sum=$((sum + one)); done; echo $sum; }

@test "killed processes and nodes of a chain: the files of an undisturbed machine, and nothing left" {
  local -A kills
  local nodes=() round i name left each=5
  ! at_night || each=50
  for name in "${stages[@]}"; do kills[$name]=$each; done
  for ((round = 0; $(of_kills) > 0; ++round)); do
    [ $round -lt $((3 * each)) ]
    rm -rf made
    mkdir made
    cd made
    list $parts
    for i in 0 1; do start $i; done
    while kill -0 "${nodes[0]}" 2>/dev/null || kill -0 "${nodes[1]}" 2>/dev/null; do
      sleep "0.$((RANDOM % 25 + 5))"
      i=$((RANDOM % 2))
      strike $i
      # Another node takes the place of one that is gone before its work was done.
      for i in 0 1; do
        kill -0 "${nodes[i]}" 2>/dev/null || wait "${nodes[i]}" || { [ $? -ne 2 ] && start $i; }
      done
    done
    echo "round $round: ${kills[*]} kills are left"
    for name in "${stages[@]}"; do
      [ "$(find . -path "*/parts/$name/*" -name done.json | wc -l)" -eq $parts ]
    done
    join
    # What a process left that was killed after its marker, on a machine that nobody sees, is known to be of nobody now.
    left=$(find . -name 'lease*' -o -name temporary -o -name 'unfinished*' -o -name failed.json -o -name '.*.tmp')
    [ -z "$left" ] || { echo "$left" && return 1; }
    for name in clips latents; do diff <(whole ../whole/$name) <(whole $name); done
    diff <(records ../whole/clips.jsonl ../whole/latents.jsonl) <(records clips.jsonl latents.jsonl)
    cd ..
  done
}
