#!/usr/bin/env bats
# Curation by a real Slurm of two virtual nodes (tests/slurm/cluster), with the jobs of examples/slurm as they stand.
# SPDX-License-Identifier: Apache-2.0
bats_require_minimum_version 1.5.0

setup_file() {
  load ../cli/helpers
  cd "$BATS_FILE_TMPDIR"
  local lacks i
  if lacks=$("$BATS_TEST_DIRNAME/../slurm/cluster" missing); then
    export NO_SLURM=$lacks
    return
  fi
  "$BATS_TEST_DIRNAME/../slurm/cluster" start slurm 3>&-
  export SLURM_CONF=$PWD/slurm/slurm.conf VFM_LEASE_SECONDS=0.3 PATH="$VFM_BIN:$PATH"
  mkdir raw
  for i in 1 2 3 4 5 6 7 8; do
    make_video "raw/v$i.mp4" 1 "testsrc2=size=48x32:rate=8:duration=$i"
    echo "frame $i" >"raw/v$i.txt"
  done
  echo 'no video' >raw/none.mp4
  find "$PWD/raw" -name '*.mp4' | LC_ALL=C sort >names
  list one 1
  vfm-clip -o one --part 0/1 >/dev/null 2>said
  vfm-caption one --part 0/1 >/dev/null
  vfm-shard join one >one.jsonl
}

teardown_file() { "$BATS_TEST_DIRNAME/../slurm/cluster" stop "$BATS_FILE_TMPDIR/slurm"; }

setup() {
  load ../cli/helpers
  cd "$BATS_FILE_TMPDIR"
  [ -z "${NO_SLURM:-}" ] || skip "$NO_SLURM"
  curate=$VFM_ROOT/examples/slurm/curate.sbatch
}

# Every video is a unit, so that all parts have some.
list() { vfm-clip list -o "$1" -n "$2" --shard-size 64KiB <names >listed.jsonl; }
whole() { (cd "$1" && find . -path ./parts -prune -o -type f -print | LC_ALL=C sort | xargs sha256sum); }
# array OPTION...: submits an array, and waits for its end. The status is 0 if all tasks ended with it. sbatch --wait looks
# only every few seconds.
array() {
  local job
  job=$(sbatch --parsable -o "$PWD/task-%a.log" "$@" 3>&-) || return 1
  until [ -z "$(squeue -h -j "$job")" ]; do sleep 0.2; done
  ! scontrol show job "$job" | grep JobState | grep -qv COMPLETED
}
# windows JOB...: the line of vfm-clip-status(1) for missing parts, where MaxArraySize is 6, as in the cluster.
windows() {
  sed -n "s/^\t\(vfm-clip status\) clips\(.*--max-array\) 1001/\1 out\2 6/p" "$VFM_ROOT/man/vfm-clip-status.1.scd" |
    sed "s#clip.sbatch#-o '$PWD/task-%A-%a.log' $* vfm-clip -o out#" >line
  [ -s line ]
  # shellcheck disable=SC1091 # made above
  . ./line 3>&-
  until [ -z "$(squeue -h)" ]; do sleep 0.2; done
}

@test "arrays of jobs do the parts, those that were killed are named and done again, and the last job joins" {
  list out 8
  # Tasks 1 and 7 die as on a node without memory.
  cat >dies.sbatch <<END
#!/bin/bash
case \$((SLURM_ARRAY_TASK_ID + VFM_PART_OFFSET)) in 1|7) kill -KILL \$\$ ;; esac
exec bash $curate "\$@"
END
  # The cluster takes no number above 5.
  run ! sbatch --array=0-7 dies.sbatch vfm-clip -o out
  diff <(printf '0-5 0\n0-1 6\n') <(vfm-clip status out --missing --max-array 6)
  windows dies.sbatch
  run -1 vfm-caption out
  [[ $output == *"2 of the 8 parts of 'out' are not complete: 1, 7"* ]]
  [ "$(vfm-clip status out --missing)" = 1,7 ]
  windows "$curate"
  run vfm-clip status out --missing
  [ -z "$output" ]
  # The stages that follow wait for the arrays before them.
  local caption
  caption=$(sbatch --parsable --array=0-3 -o "$PWD/task-%a.log" "$curate" vfm-caption out --part env/4)
  array -d "afterok:$caption" --wrap 'vfm-shard join out >out.jsonl'
  diff <(whole one) <(whole out)
}

# bats test_tags=night
@test "jobs that claim parts do them all, and one that was cancelled loses nothing" {
  list claimed 9
  local first
  first=$(sbatch --parsable -w n1 -o "$PWD/first.log" "$curate" vfm-clip -o claimed --part auto)
  for _ in $(seq 200); do
    ! compgen -G 'claimed/parts/clip/*/lease*' >/dev/null || break
    sleep 0.05
  done
  scancel --signal=KILL --full "$first"
  array -w n2 "$curate" vfm-clip -o claimed --part auto
  [ "$(find claimed -name done.json | wc -l)" -eq 9 ]
  [ -z "$(find claimed -name 'lease*' -o -name '.*.tmp' -o -name temporary)" ]
  vfm-caption claimed --part 0/1 >/dev/null
  vfm-shard join claimed >/dev/null
  diff <(whole one) <(whole claimed)
}

@test "a training job that is cancelled saves, and the next one goes on to the same bytes" {
  load ../slurm/training
  setup_tools
  needs_nodes
  training_input 1000000
  local job
  job=$(submit_training)
  log_grows "$job" ': step '
  scancel "$job"
  await gone "$job"
  cat log
  [ "$(state_of "$job" JobState)" = CANCELLED ]
  grep -q "ended by SIGTERM; run/checkpoints has $(ls run/checkpoints)$" log
  job=$(submit_training)
  log_grows "$job" ': step '
  ends_well "$job"
  same_bytes "$(last_saved)"
}
