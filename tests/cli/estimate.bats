#!/usr/bin/env bats
# --dry-run of the tools that curate: what all of the input would take, told from a sample.
# SPDX-License-Identifier: Apache-2.0

load helpers
bats_require_minimum_version 1.5.0

setup_file() {
  cd "$BATS_FILE_TMPDIR" || return 1
  PATH=$VFM_BIN:$PATH
  local i
  for i in 1 2 3; do
    ffmpeg -hide_banner -loglevel error -f lavfi -i "testsrc2=s=160x120:r=24:d=$((i * 8))" -pix_fmt yuv420p \
      -c:v libx264 -preset ultrafast "$i.mp4"
  done
  vfm-clip --stride 2 -o clips ./*.mp4 >clips.jsonl
}

setup() {
  setup_tools
  cp -r "$BATS_FILE_TMPDIR"/. .
  without_folder clips.jsonl
  export TMPDIR=$PWD/temporary
  mkdir temporary
}

# contents: of all files here.
contents() { find . -path ./temporary -prune -o -type f ! -name 'separate-stderr*' -exec md5sum {} + | LC_ALL=C sort; }

# estimated COMMAND...: prints its line, keeps nothing, and changes nothing.
estimated() {
  local before
  before=$(contents)
  run --separate-stderr "$@" --dry-run
  echo "$stderr"
  [ "$status" -eq 0 ]
  [ "$(wc -l <<<"$output")" -eq 1 ]
  [ -z "$(ls temporary)" ]
  [ "$(contents)" = "$before" ]
  jq -e '.kind == "estimate" and .seconds > 0 and .jobs > 0 and .records >= .sampled
    and (.hours_a_day - .video_hours / .seconds * 86400 | fabs) <= 1e-3 * .hours_a_day + 1e-6 / .seconds * 86400
    and (.hours_a_node_day - .hours_a_day * 32 / .jobs * 0.8 | fabs) <= 1e-3 * .hours_a_node_day' <<<"$output"
}

@test "vfm-clip looks at ten seconds of each video, and counts the hours of all" {
  estimated vfm-clip ./*.mp4
  jq -e '.of == "video" and .records == 3 and .sampled == 3 and (.video_hours - 48 / 3600 | fabs) < 1e-4' <<<"$output"
  [[ $stderr == *"3 of 3 videos looked at"* ]]
  estimated vfm-clip shots ./*.mp4
  jq -e .timed==3 <<<"$output"
  # Lists of shots that go to standard output otherwise.
  estimated vfm-clip shots --format csv 1.mp4
  estimated vfm-clip shots --format edl 1.mp4
}

@test "of many records sixteen are drawn, and stand for all" {
  local i
  for i in {1..40}; do ln 1.mp4 "many-$i.mp4"; done
  estimated vfm-clip shots -j2 many-*.mp4
  jq -e '.records == 40 and .sampled == 16 and (.video_hours - 40 * 8 / 3600 | fabs) < 1e-4' <<<"$output"
}

# bats test_tags=night
@test "the tools of shards estimate, too" {
  local tool
  for tool in "vfm-caption" "vfm-embed" "vfm-shard -o dataset" "vfm-pack --size 32 --frames 9"; do
    estimated $tool clips.jsonl
    jq -e '.of == "shard" and .records == 3 and (.video_hours - 48 / 3600 | fabs) < 1e-4' <<<"$output"
  done
}

# bats test_tags=night
@test "pictures and lists of both are looked at, and what tells no time is said" {
  quiet_ffmpeg -f lavfi -i testsrc2=s=320x240 -frames:v 1 1.png
  quiet_ffmpeg -f lavfi -i color=red:s=320x240 -frames:v 1 2.png
  quiet_ffmpeg -f lavfi -i color=blue:s=320x240 -frames:v 1 3.png
  estimated vfm-clip ./*.png
  jq -e '.records == 3 and .sampled == 3 and .timed == 0' <<<"$output"
  printf '{"kind":"image","path":"%s.png"}\n' 1 2 >list.jsonl
  printf '{"kind":"video","path":"1.mp4"}\n{"kind":"shard","path":"a.tar"}\n' >>list.jsonl
  estimated vfm-clip list.jsonl
  jq -e '.records == 3 and .sampled == 3 and .timed == 1' <<<"$output"
  [[ $stderr == *"2 of them told no time"* ]]
}

# bats test_tags=night
@test "shards are read as the tools read them: datasets, columns beside shards, input that broke off" {
  vfm-shard --shard-size 200kB -o dataset clips.jsonl >shards.jsonl
  local shards tool
  shards=$(grep -c '"kind":"shard"' shards.jsonl)
  [ "$shards" -gt 1 ]
  vfm-embed clips.jsonl >embedded.jsonl
  [ "$(ls clips/*.tar | wc -l)" -eq 6 ]
  for tool in "vfm-caption" "vfm-embed" "vfm-shard -o again" "vfm-pack --size 32 --frames 9"; do
    estimated $tool dataset
    jq -e --argjson shards "$shards" '.records == $shards' <<<"$output"
    estimated $tool clips/*.tar
    jq -e '.records == 3' <<<"$output"
    head -n -1 clips.jsonl >cut.jsonl
    run -1 --separate-stderr $tool --dry-run cut.jsonl
    [ -z "$output" ]
    [[ $stderr == *"the output of vfm-clip broke off in 'cut.jsonl' (no end record): nothing is estimated"* ]]
  done
}

@test "a reader that goes away leaves no temporary files" {
  bash -c 'vfm-clip shots --dry-run 1.mp4 2>/dev/null | true' || true
  [ -z "$(ls temporary)" ]
}

# bats test_tags=night
@test "frames whose pixels are freed while they wait come from the middle of the video, too" {
  make_video large.mp4 14 "testsrc2=size=2688x1536:rate=2"
  run --separate-stderr vfm-clip --dry-run large.mp4
  [ "$status" -eq 0 ]
  [[ $stderr != *"different frames"* ]]
}

@test "what cannot be read is said, and counted; nothing at all is an error" {
  echo no video >bad.mp4
  run --separate-stderr vfm-clip --dry-run 1.mp4 bad.mp4
  [ "$status" -eq 1 ]
  [[ $stderr == *"bad.mp4"* ]]
  jq -e '.records == 2 and .sampled == 1' <<<"$output"
  run --separate-stderr vfm-clip --dry-run bad.mp4
  [ "$status" -eq 1 ]
  [ -z "$output" ]
  run --separate-stderr vfm-clip --dry-run --spans x.csv 1.mp4
  [ "$status" -eq 2 ]
}
