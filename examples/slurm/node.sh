#!/usr/bin/env bash
# Does parts of several stages of one work on a node, each time of the stage where this kind of node helps most (vfm-slurm(7),
# UNLIKE NODES). Start it on any number of nodes of any kinds, at any time:
#   vfm-clip list -o out -n 2000 < videos.txt
#   sbatch -p gpu --array=1-8 examples/slurm/node.sh out 'vfm-clip -o out' 'vfm-caption out --from model:qwen' 'vfm-embed out'
#   sbatch -p cpu --array=1-8 examples/slurm/node.sh out 'vfm-clip -o out' 'vfm-caption out --from model:qwen'
# The commands are those that the node can run, in order of the work, without --part. It ends when their parts are done, or with
# status 1 after three failures in a row, or sixty tries that found no part. Before the time limit (USR1) it ends after the part
# that it does, and queues again. TERM ends the part, too.
#SBATCH --job-name=vfm-node
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=16
##SBATCH --gpus-per-node=1
#SBATCH --mem-per-cpu=2G
#SBATCH --time=12:00:00
#SBATCH --signal=B:USR1@3600
#SBATCH --requeue
#SBATCH --open-mode=append
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
[ $# -ge 2 ] || { echo 'usage: node.sh DIR COMMAND...' >&2 && exit 2; }
dir=$1
shift
export VFM_NODE_KIND=${VFM_NODE_KIND-${SLURM_JOB_PARTITION:-}}
[ -z "${SLURM_CPUS_PER_TASK:-}" ] || export VFM_SLOTS=${VFM_SLOTS:-$SLURM_CPUS_PER_TASK}

declare -A command
stages=
for line in "$@"; do
  stage=${line%% *}
  stage=${stage##*/vfm-}
  command[${stage#vfm-}]=$line
  stages+=,${stage#vfm-}
done

# run COMMAND...: runs it, and hands it the signals that come meanwhile. Sets `status`.
child='' ends=''
trap 'ends=USR1; [ -z "$child" ] || kill -USR1 "$child" || :' USR1
trap 'ends=TERM; [ -z "$child" ] || kill -TERM "$child" || :' TERM INT
run() {
  "$@" &
  child=$!
  while :; do
    status=0
    wait "$child" || status=$?
    kill -0 "$child" 2>/dev/null || break
  done
  child=
}

chosen=$(mktemp)
trap 'rm -f "$chosen"' EXIT
failures=0 none=0
while [ -z "$ends" ]; do
  run vfm-clip status "$dir" --next "${stages#,}" >"$chosen"
  stage=$(<"$chosen")
  [ -z "$ends" ] || break
  [ "$status" = 0 ] || exit "$status"
  [ -n "$stage" ] || break
  # The words of the line are its arguments, and quotes work as in a shell.
  run bash -c "exec ${command[$stage]} --part next" >/dev/null
  case $status in
    0) failures=0 none=0 ;;
    4) none=$((none + 1)) && sleep 1 ;; # Other nodes were faster.
    2 | 3) exit "$status" ;;
    *) failures=$((failures + 1)) ;;
  esac
  [ "$failures" -lt 3 ] && [ "$none" -lt 60 ] || exit 1
done
[ "$ends" != TERM ] || exit 143
[ "$ends" != USR1 ] || [ -z "${SLURM_JOB_ID:-}" ] || scontrol requeue "$SLURM_JOB_ID"
