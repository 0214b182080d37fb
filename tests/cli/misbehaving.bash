# Files at which a decoder misbehaves (misbehave.c), for tests of what becomes of a run.
# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0

# wide.mp4 is decoded well; the others but loud.mp4 are what misbehave.c makes of other widths.
setup_file() {
  cd "$BATS_FILE_TMPDIR" || return 1
  make_video wide.mp4 1 'testsrc2=size=96x48:rate=8'
  local name width=98
  for name in asleep busy crash greedy curious lively; do
    make_video "$name.mp4" 1 "testsrc2=size=${width}x48:rate=8"
    width=$((width + 2))
  done
  make_video late.mp4 6 'testsrc2=size=110x48:rate=8'
  make_video liar.mp4 1 'testsrc2=size=112x48:rate=8'
  make_video endless.mp4 0.125 'color=size=114x48:rate=8'
  quiet_ffmpeg -i wide.mp4 -f lavfi -i sine=sample_rate=48000:duration=1 -c:v copy -c:a aac loud.mp4
  # The struct of the codec is FFmpeg's.
  # shellcheck disable=SC2046
  cc -shared -fPIC -o misbehave.so "$BATS_TEST_DIRNAME/misbehave.c" $(pkg-config --cflags libavcodec) || return 1
}

setup() {
  setup_tools
  ln -s "$BATS_FILE_TMPDIR"/*.mp4 "$BATS_FILE_TMPDIR/misbehave.so" .
}

# bad COMMAND...: with decoders that misbehave.
bad() { run --separate-stderr timeout 60 env LD_PRELOAD="$PWD/misbehave.so" "$@"; }

# codes DIR: "NAME CODE" of each record, sorted.
codes() { jq -r '[.input, .code] | join(" ")' "${1%/}/errors.jsonl" | sort; }

# shards FILE: the records of shards, wherever these lie.
shards() { jq -c 'select(.kind == "shard") | [.samples, .bytes, .xxh3]' "$1"; }

# copies OF COUNT: n1.mp4 and so on, each another file: it has a box more, at which no reader looks.
copies() {
  local i
  for ((i = 1; i <= $2; ++i)); do { cat "$1" && printf '\0\0\0\020free%08d' "$i"; } >"n$i.mp4"; done
}

# isolates: skips the test where --isolate is not there.
isolates() {
  run vfm-clip --isolate -o probe wide.mp4
  [[ "$output" != *"was built without"* ]] || skip "built without libseccomp"
  # A container may forbid it.
  [[ "$output" != *"--isolate does not work here"* ]] || skip "this system refuses: $output"
}
