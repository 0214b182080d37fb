# shellcheck shell=bash
# Jobs of examples/slurm/train.sbatch on the nodes of tests/slurm/cluster, with a small recipe that does not end by itself.
# SPDX-License-Identifier: Apache-2.0

# needs_nodes: skips the test where virtual nodes have no processes of their own, or cannot run ranks.
needs_nodes() {
  local lacks
  if lacks=$("$VFM_ROOT/tests/slurm/cluster" missing); then skip "$lacks"; fi
  unshare --pid --fork --mount-proc --uts true 2>/dev/null || skip "no right to give nodes processes of their own"
  needs_mpi
  # Open MPI leaves the loopback interface out, and takes nodes of one machine for two machines.
  export OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_oob_tcp_if_include=lo OMPI_MCA_mpi_yield_when_idle=1 OMP_NUM_THREADS=1
}

# training_input STEPS: between two checkpoints.
training_input() {
  "$VFM_ROOT/tests/cli/make-latents" latents 24
  tiny_recipe <<END
data: {tokens: 16, packs: 60, window: 8}
schedule: {warmup: 5, shape: constant}
validation: {every: 0}
train: {steps: 1000000, checkpoint_every: $1, log_every: 10, keep: 1000}
END
}

# submit_training OPTION...: prints the job. What it says is in the file log. The run is the folder $run_folder, or "run".
submit_training() {
  : >>log
  sbatch --parsable --ntasks-per-node=1 --open-mode=append -o "$PWD/log" "$@" "$VFM_ROOT/examples/slurm/train.sbatch" \
    tiny.yaml latents "${run_folder-run}" 3>&-
}
gone() { [ -z "$(squeue -h -j "$1" -o %i)" ]; }
state_of() { scontrol -o show job "$1" | grep -o " $2=[^ ]*" | cut -d= -f2; }

# log_grows JOB PATTERN: waits for such a line after those that were there.
log_grows() {
  local lines
  lines=$(wc -l <log)
  until tail -n "+$((lines + 1))" log | grep -q "$2"; do
    ! gone "$1" || { cat log && return 1; }
    sleep 0.1
  done
}
# goes_on JOB: waits until it has saved and gone on after that.
goes_on() { log_grows "$1" '^{"kind":"checkpoint"' && log_grows "$1" ': step '; }

# rank_on NODE: its process. Other programs of this machine may have the same name.
rank_on() {
  local pid
  for pid in $(pgrep -x vfm-train); do
    [ "$(grep -czxF -e "SLURM_CONF=$SLURM_CONF" -e "SLURMD_NODENAME=$1" "/proc/$pid/environ")" != 2 ] || echo "$pid"
  done
}

# freeze NODE: all its processes stand still, as of a machine that hangs or has lost its link. They end with the cluster.
freeze() {
  local init
  init=$(pgrep -P "$(<"${SLURM_CONF%/*}/run/$1.pid")")
  pgrep --ns "$init" --nslist pid '' | xargs kill -STOP
}

of_process() { sed -n "s/^$2:\t//p" "/proc/$1/status"; }

# in_memory NODE: the snapshots there.
in_memory() {
  nsenter --target "$(<"${SLURM_CONF%/*}/run/$1.pid")" --mount find /dev/shm -path '*/vfm-*/run' -printf '%l\n'
}

# last_saved: the step of the newest checkpoint.
last_saved() { grep '^{"kind":"checkpoint"' log | tail -n 1 | jq .step; }
# same_bytes STEP: the checkpoint is that of two ranks that nothing has disturbed.
same_bytes() {
  mpirun -np 2 vfm-train tiny.yaml --data latents -o undisturbed train.steps="$1" >undisturbed.jsonl
  for part in model state; do
    diff -r {undisturbed,run}/checkpoints/"$(printf 'step-%08d' "$1")/$part"
  done
}
# ends_well JOB: it is asked to end by a file, and does.
ends_well() {
  touch run/stop
  await gone "$1"
  [ "$(state_of "$1" JobState)" = COMPLETED ]
}
