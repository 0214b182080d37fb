# shellcheck shell=bash
# A training on several ranks in the background, for tests of what becomes of it.
# SPDX-License-Identifier: Apache-2.0

# start_ranks RANKS STEPS [SETTING...]: trains tiny.yaml in the background; returns when it is among the steps.
start_ranks() {
  mpirun -np "$1" vfm-train tiny.yaml -j1 --data latents -o run train.steps="$2" "${@:3}" >out 2>err 3>&- &
  launcher=$!
  until [ -s run/metrics.jsonl ]; do
    kill -0 "$launcher"
    sleep 0.1
  done
}

# rank_pid RANK: its process.
rank_pid() {
  local pid
  for pid in $(pgrep -P "$launcher" vfm-train); do
    if tr '\0' '\n' <"/proc/$pid/environ" | grep -qx "OMPI_COMM_WORLD_RANK=$1"; then echo "$pid"; fi
  done
}

# end_ranks: nothing of a test that failed stays behind, least of all a process that is stopped.
end_ranks() {
  [ -z "${launcher-}" ] || pkill -KILL -P "$launcher" 2>/dev/null || true
  [ -z "${launcher-}" ] || kill -KILL "$launcher" 2>/dev/null || true
}
