# A server of captions (caption-server) and who asks it, for tests of vfm-caption --endpoint.
# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0

setup_file() {
  export CLIPS="$BATS_FILE_TMPDIR/clips"
  mkdir "$CLIPS"
  local color
  for color in red green blue white; do make_video "$CLIPS/$color.mp4" 1 "color=$color:size=64x48:rate=8"; done
}

setup() {
  setup_tools
  vfm-caption --version | grep -q libcurl || skip "built without libcurl"
}
teardown() { if [ -n "${server:-}" ]; then kill "$server" 2>/dev/null || true; fi; }

# serve BEHAVIOUR...: a server anew; $url is its address.
serve() {
  if [ -n "${server:-}" ]; then kill "$server" || true; fi
  rm -f log log.port
  "$BATS_TEST_DIRNAME/caption-server" log "$@" 3>&- &
  server=$!
  until [ -e log.port ]; do sleep 0.05; done
  url=http://127.0.0.1:$(cat log.port)/v1
}

# shard NAME CLIP...: NAME.tar with these clips.
shard() {
  local name=$1 clip
  shift
  mkdir "in-$name"
  for clip in "$@"; do
    cp "$CLIPS/$clip.mp4" "in-$name/$name$clip.mp4"
    echo '{"media":"video","seconds":1,"fps":8,"frames":8,"width":64,"height":48}' >"in-$name/$name$clip.json"
  done
  tar --format=ustar --sort=name -C "in-$name" -cf "$name.tar" .
}

# endpoint: writes endpoint.json, with the members of the JSON object $with.
endpoint() {
  local none='{}'
  jq -n --arg url "$url" --argjson with "${with:-$none}" '{$url, model: "m", wait: 0.02, parallel: 1} + $with' >endpoint.json
}

ask() {
  endpoint
  vfm-caption --endpoint endpoint.json "$@"
}
requests() { if [ -e log ]; then wc -l <log; else echo 0; fi; }
caption_of() { tar -xOf "${1%%[!a]*}.caption.tar" "$1.txt"; }
json_of() { tar -xOf "${1%%[!a]*}.caption.tar" "$1.json"; }
schema() { echo '{"type":"object","properties":{"n":{"type":"integer","minimum":'"$1"'}},"required":["n"]}' >schema.json; }
