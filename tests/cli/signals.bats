#!/usr/bin/env bats
# Signals while a program computes: they reach one thread alone, and break nothing.
# SPDX-License-Identifier: Apache-2.0

load helpers
load programs_at_work
bats_require_minimum_version 1.5.0

setup_file() { prepare_work; }

# Each program while it computes, on two threads: who has signals unblocked.
one_thread_takes_signals() {
  work_of "$1" 2
  run "$BATS_TEST_DIRNAME/signal-at-random" threads "$BATS_FILE_TMPDIR/work" "${command[@]}"
  echo "$output"
  [ "$status" -eq 0 ]
}

@test "one thread alone takes signals: vfm-clip, vfm-caption, vfm-embed" {
  for program in clip caption embed; do one_thread_takes_signals "$program"; done
}
@test "one thread alone takes signals: vfm-shard, vfm-pack" {
  for program in shard pack; do one_thread_takes_signals "$program"; done
}
@test "one thread alone takes signals: vfm-train, vfm-generate" {
  for program in train generate; do one_thread_takes_signals "$program"; done
}

@test "signals at random moments: every program ends by them, or well" {
  for program in clip caption embed shard pack train generate; do
    work_of "$program" 1
    run "$BATS_TEST_DIRNAME/signal-at-random" 2 "$BATS_FILE_TMPDIR/work" "${command[@]}"
    echo "$program: $output"
    [ "$status" -eq 0 ]
  done
}

@test "a signal ends a program that waits for its input: standard input, or a pipe that nobody opened" {
  mkfifo input list.jsonl
  sleep 30 >input 3>&- &
  writer=$!
  for signal in INT TERM HUP; do
    # A shell's background jobs ignore SIGINT, and all under nohup SIGHUP; env puts that right.
    env --default-signal=INT,HUP vfm-clip -o a - <input >/dev/null 2>err 3>&- &
    stdin=$!
    env --default-signal=INT,HUP vfm-clip -o b list.jsonl >/dev/null 2>>err 3>&- &
    fifo=$!
    # Before env has done its part, a signal is ignored.
    for pid in "$stdin" "$fifo"; do until grep -q vfm-clip "/proc/$pid/comm"; do sleep 0.05; done; done
    sleep 0.5
    kill "-$signal" "$stdin" "$fifo"
    for pid in "$stdin" "$fifo"; do
      status=0
      wait "$pid" || status=$?
      [ "$status" -eq $((128 + $(kill -l "$signal"))) ] || { echo "$signal: status $status"; cat err; false; }
    done
    [ ! -s err ]
  done
  kill -0 "$writer"  # nobody waited for the end of the input
  kill "$writer"
}

@test "a second signal kills at once; one that was ignored stays ignored" {
  cp -r "$BATS_FILE_TMPDIR/work" work
  cd work
  work_of train 1
  (trap '' HUP && exec env --default-signal=INT "${command[@]}" train.steps=100000 >/dev/null 3>&-) &
  pid=$!
  sleep 1
  kill -HUP "$pid"
  sleep 0.3
  kill -0 "$pid"
  kill -INT "$pid"
  kill -INT "$pid" || true
  status=0
  wait "$pid" || status=$?
  [ "$status" -eq 130 ]
}

@test "two SIGTERM at once are one" {
  cp -r "$BATS_FILE_TMPDIR/work" work
  cd work
  work_of train 1
  "${command[@]}" train.steps=100000 train.log_every=1 >/dev/null 2>err 3>&- &
  pid=$!
  until [ -s out/metrics.jsonl ]; do kill -0 "$pid" && sleep 0.02; done
  kill -TERM "$pid"
  sleep 0.01
  kill -TERM "$pid" || true
  status=0
  wait "$pid" || status=$?
  cat err
  [ "$status" -eq 143 ]
  grep -q ', saved; the same command goes on from ' err
}
