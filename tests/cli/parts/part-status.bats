#!/usr/bin/env bats
# status: the states of parts, and the numbers that an array of jobs is to do again.
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # stderr is of run --separate-stderr

bats_require_minimum_version 1.5.0

setup() {
  load ../helpers
  setup_tools
  mkdir -p clips/parts/embed
  echo '{"version":1,"tool":"vfm-embed","parts":12}' >clips/parts/embed/run.json
}

# marker PART: the part is done.
marker() {
  local folder
  folder=$(printf 'clips/parts/embed/%05d' "$1")
  mkdir -p "$folder"
  jq -nc --argjson part "$1" '{version: 1, tool: "vfm-embed", part: $part, parts: 12, inputs: "x", records: 3, outputs: [],
    errors: {decode: 2}, versions: {vfm: "0"}, host: "n1", node_kind: "cpu", begun: "2026-01-01T00:00:00Z", ended: "2026-01-01T00:10:00Z", seconds: 600}' \
    >"$folder/done.json"
}

# lease PART: a process of another machine works at the part.
lease() {
  local folder
  folder=$(printf 'clips/parts/embed/%05d' "$1")
  mkdir -p "$folder"
  echo '{"host":"n2","pid":77,"machine":"far","begun":"2026-01-01T00:20:00Z","beat_seconds":0.4,"patience":1.2}' >"$folder/lease-1-0"
}

@test "status tells each part and the totals" {
  for part in 0 1 2 5; do marker $part; done
  lease 3
  mkdir clips/parts/embed/00004
  echo '{"version":1,"host":"n1","pid":9,"begun":"2026-01-01T00:00:00Z","ended":"2026-01-01T00:01:00Z","why":"disk is gone"}' \
    >clips/parts/embed/00004/failed.json
  vfm-embed status clips | records >out
  [ "$(jq -r 'select(.kind == "part") | .state' out | xargs)" = \
    'done done done working failed done missing missing missing missing missing missing' ]
  jq -se '.[3] | .host == "n2" and .pid == 77 and .begun == "2026-01-01T00:20:00Z"' out
  jq -se '.[4] | .why == "disk is gone"' out
  jq -se '.[5] | .records == 3 and .errors == {"decode": 2} and .host == "n1"' out
  # One process works, a part takes ten minutes, and eight are left.
  jq -se '.[12] | .kind == "parts" and [.parts, .done, .working, .failed, .missing, .records, .errors.decode,
    .parts_an_hour, .seconds_left] == [12, 4, 1, 1, 6, 12, 8, 6, 4800]' out
  jq -se '.[12] | .kind == "parts" and .hosts == {"n1": {"done": 4, "working": 0, "seconds_a_part": 600},
    "n2": {"done": 0, "working": 1}}' out
  jq -se '.[12].node_kinds == {"cpu": {"done": 4, "working": 0, "seconds_a_part": 600}, "": {"done": 0, "working": 1}}' out
  # On a terminal it is a table.
  script -qec 'vfm-embed status clips' /dev/null </dev/null | tr -d '\r' >table
  [ "$(head -n 1 table)" = 'vfm-embed: 4 of 12 parts done, 1 working, 1 failed, 6 missing; 6 parts an hour, 1h20m left' ]
  grep -qE '^4 +failed +n1 +2026-01-01T00:00:00Z +disk is gone$' table
  grep -qE '^n1 +4 +0 +600.0$' table
}

@test "--missing prints an expression, or windows with their offsets, and knows who is silent" {
  [ "$(vfm-embed status clips --missing)" = '0-11' ]
  for part in 0 4 5 6; do marker $part; done
  [ "$(vfm-embed status clips --missing)" = '1-3,7-11' ]
  vfm-embed status clips --missing --max-array 5 | diff <(printf '1-3 0\n2-4 5\n0-1 10\n') -
  lease 2
  # Signs of life come, and then none.
  (while [ ! -e ended ]; do cp clips/parts/embed/00002/lease-1-{0,$((++beat))}; sleep 0.2; done) &
  [ "$(vfm-embed status clips --missing)" = '1,3,7-11' ]
  touch ended
  wait
  [ "$(vfm-embed status clips --missing)" = '1-3,7-11' ]
  for part in {0..11}; do marker "$part"; done
  [ -z "$(vfm-embed status clips --missing)" ]
}

# bats test_tags=night
@test "--report writes a page about all parts" {
  for part in 0 1 2 5; do marker $part; done
  lease 3
  mkdir clips/parts/embed/00004
  echo '{"version":1,"host":"n1","pid":9,"begun":"2026-01-01T00:00:00Z","ended":"2026-01-01T00:01:00Z","why":"disk <b> is gone"}' \
    >clips/parts/embed/00004/failed.json
  [ "$(vfm-embed status clips --report page.html | records | wc -l)" -eq 13 ]
  # A square for each part, and one in the legend for each state.
  for state in done:5 working:2 failed:2 missing:7; do
    [ "$(grep -o "<rect class=\"${state%:*}\"" page.html | wc -l)" -eq "${state#*:}" ]
  done
  grep -q '<title>part 3: working on n2</title>' page.html
  grep -q 'parts an hour</td><td dir="auto">6<' page.html
  grep -q 'time left</td><td dir="auto">1h20m<' page.html
  # Four parts ended in one interval of ten minutes.
  grep -q 'Parts that ended, in 1 interval of 10m00s each' page.html
  grep -q '<tr><td dir="auto">n1</td><td dir="auto">4</td><td dir="auto">0</td><td dir="auto">600.0</td></tr>' page.html
  grep -q '<td dir="auto">4</td><td dir="auto">n1</td><td dir="auto">2026-01-01T00:01:00Z</td><td dir="auto">disk &lt;b&gt; is gone<' page.html
  grep -q '<tr><td dir="auto">cpu</td><td dir="auto">4</td><td dir="auto">0</td><td dir="auto">600.0</td></tr>' page.html
  grep -q '<td dir="auto">decode</td><td dir="auto">8</td><td dir="auto">4</td>' page.html
  run ! grep -q 'src=\|href=' page.html
  # With many parts a square is of several.
  echo '{"version":1,"tool":"vfm-embed","parts":2500}' >clips/parts/embed/run.json
  [ "$(vfm-embed status clips --missing --report page.html)" = '3-4,6-2499' ]
  grep -q 'A square is 3 parts' page.html
  grep -q '<title>parts 3 to 5: 1 done 1 failed 1 missing</title>' page.html
  [ "$(wc -c <page.html)" -lt 300000 ]
}

@test "each program tells its own parts, and a folder without parts is refused" {
  refused "'clips' has no parts of vfm-caption" vfm-caption status clips
  refused "'clips' has no parts of vfm-pack" vfm-pack status clips
  refused "'clips' has no parts of vfm-clip" vfm-clip status clips
  refused '--missing' vfm-embed status clips --max-array 5
  refused 'DIR is required' vfm-embed status
  : >a.mp4
  vfm-clip list a.mp4 -o clips -n 2 >/dev/null
  [ "$(vfm-clip status clips | records | jq -r 'select(.kind == "part") | .state' | xargs)" = 'missing missing' ]
  marker 3
  echo '{' >clips/parts/embed/00003/done.json
  run --separate-stderr vfm-embed status clips
  [ "$status" -eq 1 ]
  [[ $stderr = *"embed/00003/done.json"* ]]
}
