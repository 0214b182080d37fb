#!/usr/bin/env bats
# A training job on a real Slurm of two virtual nodes (tests/slurm/cluster): what strikes there, and the bytes of a run that
# nothing has disturbed. tests/nightly/jobs.bats has nodes that die and time limits.
# SPDX-License-Identifier: Apache-2.0
bats_require_minimum_version 1.5.0

setup() {
  load ../cli/helpers
  load ../slurm/training
  setup_tools
  needs_nodes
  "$VFM_ROOT/tests/slurm/cluster" start slurm 3>&-
  export SLURM_CONF=$PWD/slurm/slurm.conf
  training_input 20
}

teardown() {
  if [ -n "${SLURM_CONF-}" ]; then "$VFM_ROOT/tests/slurm/cluster" stop slurm; fi
}

@test "ranks that are killed or stopped cost a restart each; a machine that is named twice is left, and no memory stays taken" {
  local job step
  strike() { # SIGNAL NODE
    kill "-$1" "$(rank_on "$2")"
    log_grows "$job" 'train.sbatch: .* on n1:1'
    goes_on "$job"
  }
  job=$(submit_training)
  goes_on "$job"
  strike KILL n1
  strike STOP n2
  step=$(last_saved)
  strike STOP n2
  [ "$(grep -o ' on n[12]:.*' log | xargs)" = 'on n1:1,n2:1 on n1:1,n2:1 on n1:1,n2:1 on n1:1' ]
  [ "$(in_memory n2)" = "$(realpath run)" ]
  ends_well "$job"
  [ -z "$(in_memory n1)$(in_memory n2)" ]
  # Of all ranks; those of one machine add in another order.
  same_bytes "$step"
}

# preempt JOB: another job needs a node, and gets it when this one has saved. Then this one goes on.
preempt() {
  local restarts
  goes_on "$1"
  restarts=$(state_of "$1" Restarts)
  sbatch -p urgent -w n1 -N 1 --wrap 'sleep 1' -o /dev/null 3>&-
  log_grows "$1" 'asked to end: saved after step \|, saved; the same command goes on from \|ended by SIGTERM; '
  await eval "[ \"\$(state_of '$1' Restarts)\" = $((restarts + 1)) ]"
  log_grows "$1" ': goes on after step '
}

@test "a job whose nodes another one needs saves, queues again and goes on" {
  local job
  job=$(submit_training)
  # Slurm tells the ranks of n2, the script asks why they end.
  preempt "$job"
  # The script is told.
  echo 'SlurmctldParameters=preempt_send_user_signal' >>slurm/slurm.conf
  scontrol reconfigure
  preempt "$job"
  [ "$(grep -c 'the job queues again' log)" -eq 2 ]
  ends_well "$job"
  same_bytes "$(last_saved)"
}

@test "a job of one machine that is told nothing of it saves when it is ended for another one" {
  local job
  job=$(submit_training -N 1 -w n1 --ntasks-per-node=2)
  preempt "$job"
  [ "$(grep -c 'the job queues again' log)" -eq 0 ]
  ends_well "$job"
  same_bytes "$(last_saved)"
}

@test "a machine that hangs is left out in half a minute, before Slurm calls it down, and the job goes on without it" {
  local job step begin
  job=$(submit_training)
  goes_on "$job"
  [ "$(of_process "$(rank_on n1)" Cpus_allowed)" = "$(of_process $$ Cpus_allowed)" ]
  step=$(last_saved)
  freeze n2
  begin=$SECONDS
  log_grows "$job" ': goes on after step '
  # 10 s until the ranks name it, 10 s for mpirun, 11 s for a command.
  [ $((SECONDS - begin)) -le 60 ]
  grep -q 'train.sbatch: .* leaves out n2: it runs nothing$' log
  [ "$(grep -o ' on n[12]:.*' log | xargs)" = 'on n1:1,n2:1 on n1:1' ]
  # The log tells how long each part took.
  grep -qE '^[0-9:]{8} vfm-train: rank 1 on host n2 .* all ranks end, ' log
  ends_well "$job"
  same_bytes "$step"
}

@test "a job whose script dies with its machine queues again, and goes on when machines are there" {
  local job
  job=$(submit_training)
  goes_on "$job"
  "$VFM_ROOT/tests/slurm/cluster" down slurm n1
  await eval "[ \"\$(state_of '$job' Restarts)\" = 1 ]"
  "$VFM_ROOT/tests/slurm/cluster" up slurm n1
  log_grows "$job" ': goes on after step '
  ends_well "$job"
  same_bytes "$(last_saved)"
}

@test "a job whose ranks die three times before a checkpoint gives up, and one with a bad recipe is tried once" {
  local job i
  export run_folder='my run'
  sed -i 's/checkpoint_every: 20/checkpoint_every: 1000000/' tiny.yaml
  job=$(submit_training)
  # In turn, as a machine that is named twice in a row is left out.
  for i in 1 2 1; do
    [ ! -e killed ] || log_grows "$job" 'train.sbatch: .* on n1:1,n2:1$'
    log_grows "$job" ': step '
    kill -KILL "$(rank_on n$i)"
    touch killed
  done
  await gone "$job"
  [ "$(state_of "$job" JobState)" = FAILED ]
  grep -q 'train.sbatch: .* 3 deaths without a new checkpoint$' log
  [ "$(grep -c 'train.sbatch: .* on n1:1,n2:1$' log)" -eq 3 ]
  # The ranks' own words may be lost with mpirun.
  [ "$(grep -c 'train.sbatch: .* mpirun ended with status .*; the run ended at .* UTC: rank [01] on host n[12] ' log)" -eq 3 ]
  [ -z "$(in_memory n1)$(in_memory n2)" ]
  rm log
  echo 'nonsense: 1' >>tiny.yaml
  job=$(submit_training)
  # mpirun takes a minute to tell the status.
  await gone "$job" || await gone "$job"
  [ "$(state_of "$job" JobState) $(state_of "$job" ExitCode)" = 'FAILED 2:0' ]
  [ "$(grep -c 'train.sbatch: .* on n1:1,n2:1$' log)" -eq 1 ]
}

@test "srun starts ranks by PMIx on one machine, and its signals save" {
  srun --mpi=list 2>&1 | grep -q pmix || skip "this Slurm has no PMIx"
  local step
  srun --mpi=pmix -w n1 -n 2 vfm-train tiny.yaml --data latents -o run -v >log 2>&1 3>&- &
  step=$!
  until grep -q ': step ' log; do kill -0 "$step" && sleep 0.1; done
  scancel "$(squeue -h -o %i)"
  wait "$step" || true
  grep -q ', saved; the same command goes on from ' log
}
