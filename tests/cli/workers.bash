# Workers of --device with a list, which tests find and kill.
# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0

# workers_of PID: the numbers of its workers.
workers_of() { pgrep -P "$1" -f -- --serve-gpu || true; }

# await_worker PID: the number of one of its workers, which is there soon.
await_worker() {
  await pgrep -P "$1" -f -- --serve-gpu && workers_of "$1" | head -1
}

# dies_at N COMMAND...: each worker of the command dies as it waits for the N-th thing that it is told: the 1st is what to
# open, the 2nd a request.
dies_at() {
  [ -e deadly.so ] || cc -shared -fPIC -o deadly.so "$BATS_TEST_DIRNAME/deadly.c" || return 1
  LD_PRELOAD="$PWD/deadly.so" DIES_AT="$1" "${@:2}"
}
