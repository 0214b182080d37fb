# For tests of pipes of made programs (tests/bench/made_stage.cc).
# SPDX-License-Identifier: Apache-2.0

export MADE=${VFM_BUILD:?}/tests/bench/made_stage

# made_items COUNT SECONDS...: records of so many items, with the seconds of each stage.
made_items() {
  local IFS=,
  seq "$1" | sed "s/.*/{\"kind\":\"made\",\"seconds\":[${*:2}],\"item\":&}/"
}

# most_at_once LOG...: how many items were worked on at once.
most_at_once() {
  LC_ALL=C sort -k1,1n -k2,2n "$@" | awk '{ n += $2; if (n > most) most = n } END { print most + 0 }'
}
