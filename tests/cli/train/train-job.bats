#!/usr/bin/env bats
# examples/slurm/train.sbatch as it stands, among made programs in place of Slurm's, of mpirun and of vfm-train: what it starts,
# how often, and with which status it ends. tests/nightly/train-jobs.bats has a real Slurm.
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016,SC2030,SC2031 # texts of programs; each test has its own environment
load ../helpers
bats_require_minimum_version 1.5.0

setup() {
  cd "$BATS_TEST_TMPDIR" || return 1
  mkdir made
  PATH=$PWD/made:/usr/bin:/bin
  export SLURM_JOB_ID=7 SLURM_JOB_NUM_NODES=3 SLURM_JOB_NODELIST='n[1-3]' SLURM_JOB_PARTITION=main SLURM_NTASKS_PER_NODE=8
  export SLURMD_NODENAME=n1
  made sinfo 'printf "%s\n" "n1 alloc" "n2 alloc" "n3 alloc"'
  made scontrol 'case $1 in requeue) echo "$2" >>requeued ;; *) echo " PreemptTime=None" ;; esac'
  # The command that a machine runs, unless the file silent names it. The watch stays.
  made srun 'while [ "$1" != -w ]; do shift; done; ! grep -qx "$2" silent 2>/dev/null || exit 1
case "$*" in *requeue*) exec sleep 1000 ;; esac'
  made squeue true
  made scancel true
  made vfm-train 'cat why 2>/dev/null || true'
  # Twenty times as fast.
  made sleep 'exec /usr/bin/sleep "$(awk "BEGIN { print $1 / 20 }")"'
}

teardown() { [ -z "${pid-}" ] || kill "$pid" 2>/dev/null || true; }

# made NAME TEXT: a program.
made() { printf '#!/bin/bash\n%s\n' "$2" >"made/$1" && chmod +x "made/$1"; }
# mpirun TEXT: one that keeps its arguments, a line a start, and then does that.
mpirun() { made mpirun "printf '<%s>' \"\$@\" >>started; echo >>started; $1"; }
job=("$BASH" "$VFM_ROOT/examples/slurm/train.sbatch" 'my recipe.yaml' latents 'my run')
starts() { wc -l <started; }
record() { echo "echo '{\"kind\":\"checkpoint\",\"path\":\"run/checkpoints/step-00000020\",\"step\":20,\"final\":$1}'"; }

@test "the script refuses what it cannot run, before any work" {
  mpirun true
  train() { refused "$1" bash "$VFM_ROOT/examples/slurm/train.sbatch" "${@:2}"; }
  train 'usage: train.sbatch RECIPE LATENTS RUN [NODES]' r.yaml latents
  train 'usage: ' r.yaml latents run 2 more
  train "NODES is '4', and the job has 3" r.yaml latents run 4
  train "NODES is 'two'" r.yaml latents run two
  rm made/vfm-train
  train "'vfm-train' is not on PATH" r.yaml latents run
  unset SLURM_JOB_NUM_NODES
  train 'this is not a job of Slurm; submit it: sbatch ' r.yaml latents run
  [ ! -e started ]
}

@test "a run that ended well is started once, and names with spaces arrive" {
  mpirun "$(record true)"
  run -0 "${job[@]}"
  [ "$(cat started)" = '<--host><n1:8,n2:8,n3:8><--mca><odls_base_sigkill_timeout><30><vfm-train><my recipe.yaml><--data><latents><-o><my run><-v>' ]
  [ ! -e requeued ]
}

@test "one or two ranks are not bound to a core each" {
  mpirun true
  export SLURM_NTASKS_PER_NODE=2 SLURM_JOB_NUM_NODES=1
  made sinfo 'echo n1 alloc'
  run -0 "${job[@]}"
  grep -q '<n1:2><--bind-to><none>' started
}

@test "spares wait, and machines that are down are left out, however many there are" {
  mpirun true
  export SLURM_JOB_NUM_NODES=99
  made sinfo 'for i in {10..98}; do echo "n$i alloc"; [ $i != 11 ] || echo "n$i down*"; done | sed "/n11 alloc/d"'
  for _ in {1..10}; do run -0 bash "$VFM_ROOT/examples/slurm/train.sbatch" r.yaml latents run 32; done
  [ "$(sort -u started | grep -o 'n[0-9]*:8' | xargs)" = "n10:8 $(printf 'n%d:8 ' {12..42} | sed 's/ $//')" ]
}

@test "a bad recipe is tried once; where machines are missing the job queues again" {
  mpirun 'exit 2'
  run -2 "${job[@]}"
  [ "$(starts)" -eq 1 ]
  [ ! -e requeued ]
  made sinfo 'printf "%s\n" "n1 alloc" "n2 down*" "n3 alloc"'
  run -0 "${job[@]}"
  [ "$(cat requeued)" = 7 ]
  made scontrol 'exit 1'
  run -1 "${job[@]}"
  [[ $output == *'it cannot; submit the same command, which continues the run'* ]]
}

@test "mpirun may wait to tell the status of ranks that were refused, and is killed if the run wrote why it ended" {
  made vfm-train '[ "$1" = why ] && { cat why 2>/dev/null || true; } || /usr/bin/sleep 0.3'
  mpirun 'vfm-train; /usr/bin/sleep 2; exit 2'
  run -2 "${job[@]}"
  [ "$(starts)" -eq 1 ]
  mpirun 'vfm-train; echo "the run ended at $(wc -l <started)" >why; exec /usr/bin/sleep 100'
  run -137 "${job[@]}"
  [ "$(starts)" -eq 4 ]
}

@test "a finished run whose samples could not all be read is not started again, and the job has its status" {
  mpirun "$(record true); exit 1"
  run -1 "${job[@]}"
  [ "$(starts)" -eq 1 ]
}

@test "three deaths without a new checkpoint end the job, and a checkpoint begins the count again" {
  # Each start writes a record.
  mpirun 'echo "{\"kind\":\"begin\"}"; [ "$(wc -l <started)" != 2 ] || '"$(record false)"'; exit 5'
  run -5 "${job[@]}"
  [[ $output == *'3 deaths without a new checkpoint'* ]]
  [ "$(starts)" -eq 4 ]
}

@test "machines that run nothing are left out after a death, and one that two runs in a row named" {
  echo n2 >silent
  echo 'the run ended at 2026-12-01 00:00:01 UTC: rank 9 on host n3.site (pid 7) is silent' >why
  # Of the second start nobody wrote a record, so the first one does not count again.
  mpirun "[ \"\$(wc -l <started)\" != 3 ] || sed -i s/00:01/00:02/ why; $(record false); [ \"\$(wc -l <started)\" = 5 ] || exit 5"
  run -0 "${job[@]}"
  echo "$output"
  [ "$(grep -o '<n[0-9:,n]*>' started | tr -d '<>' | xargs)" = \
    'n1:8,n2:8,n3:8 n1:8,n3:8 n1:8,n3:8 n1:8,n3:8 n1:8,n3:8' ]
  [[ $output == *'leaves out n2: it runs nothing'* ]]
  rm started silent
  mpirun "sed -i \"s/UTC/\$(wc -l <started) UTC/\" why; $(record false); [ \"\$(wc -l <started)\" = 3 ] || exit 5"
  run -0 "${job[@]}"
  [ "$(grep -o '<n[0-9:,n]*>' started | tr -d '<>' | xargs)" = 'n1:8,n2:8,n3:8 n1:8,n2:8,n3:8 n1:8,n2:8' ]
  [[ $output == *'leaves out n3: two runs in a row named it'* ]]
}

@test "while Slurm does not answer the script waits, and leaves nobody out" {
  printf '%s\n' n1 n2 n3 >silent
  touch away
  made sinfo 'echo >>asked; [ "$(wc -l <asked)" != 5 ] || rm away; [ ! -e away ] || exit 1; printf "%s\n" "n1 alloc" "n2 alloc" "n3 alloc"'
  mpirun '[ "$(wc -l <started)" = 2 ] || exit 5'
  run -0 "${job[@]}"
  [[ $output == *'Slurm does not answer'* ]]
  [ "$(grep -o '<n[0-9:,n]*>' started | sort -u)" = '<n1:8,n2:8,n3:8>' ]
}

# ends_by SIGNAL: a job in the background gets it when its ranks are there. Sets `got`.
ends_by() {
  "${job[@]}" >log 2>&1 3>&- &
  pid=$!
  await test -e "${2:-started}"
  kill "-$1" "$pid"
  got=0
  wait "$pid" || got=$?
  cat log
}

@test "USR1 saves and queues again, also when the ranks did not hear the first one" {
  mpirun 'hear() { echo >>heard; [ "$(wc -l <heard)" != 2 ] || exit 0; }
trap hear USR1; touch ready; while :; do /usr/bin/sleep 0.1; done'
  ends_by USR1 ready
  [ "$got" -eq 0 ]
  [ "$(cat requeued)" = 7 ]
  [ "$(starts)" -eq 1 ]
}

@test "USR1 between two starts queues again without a start" {
  mpirun 'exit 5'
  made squeue 'touch between; /usr/bin/sleep 1'
  ends_by USR1 between
  [ "$got" -eq 0 ]
  [ "$(cat requeued)" = 7 ]
  [ "$(starts)" -eq 1 ]
}

@test "TERM ends the job with 143, and it names the newest checkpoint in a folder with spaces" {
  mkdir -p 'my run'/checkpoints/step-000000{20,40}
  mpirun "trap 'exit 0' USR1; touch ready; while :; do /usr/bin/sleep 0.1; done"
  ends_by TERM ready
  [ "$got" -eq 143 ]
  grep -q 'ended by SIGTERM; my run/checkpoints has step-00000040$' log
  [ ! -e requeued ]
}

@test "a job that other jobs push away queues again" {
  made scontrol 'case $1 in requeue) echo "$2" >>requeued ;; *) echo " PreemptTime=2026-12-01T00:00:00" ;; esac'
  mpirun 'exit 143'
  run -0 "${job[@]}"
  [ "$(cat requeued)" = 7 ]
}

@test "at its end the job removes the snapshots of its run alone" {
  mpirun true
  mkdir "my run"
  export SHM=$PWD/shm
  mkdir -p shm/vfm-0-{own,other}
  ln -s "$PWD/my run" shm/vfm-0-own/run
  ln -s "$PWD/run" shm/vfm-0-other/run
  made scontrol '[ "$1" != show ] || [ "$2" != hostnames ] || echo n1'
  # The machine's command, with another folder for /dev/shm.
  made srun 'while [ "$1" != -w ]; do shift; done; shift 2; case "$*" in *requeue*) ;; *) exec "${@//\/dev\/shm/$SHM}" ;; esac'
  run -0 "${job[@]}"
  [ "$(ls shm)" = vfm-0-other ]
}
