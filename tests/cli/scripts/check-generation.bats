#!/usr/bin/env bats
# The drawn corpus, and the judge of generated clips: right on the truth, and not to be fooled.
# SPDX-License-Identifier: Apache-2.0

load ../helpers

setup_file() {
  cd "$BATS_FILE_TMPDIR" || return 1
  "$BATS_TEST_DIRNAME/../../../scripts/draw-corpus" corpus --shots 66
  # Each shot as a line for the judge: the span of its cue, half a frame earlier at both ends.
  awk '
    function seconds(text,  part) { split(text, part, /[:,]/); return part[1] * 3600 + part[2] * 60 + part[3] + part[4] / 1000 }
    /-->/ { begin = seconds($1) - 0.04; end = seconds($3) - 0.04; getline caption
            file = FILENAME; sub(/srt$/, "mp4", file)
            printf "{\"path\":\"%s\",\"begin\":%.3f,\"end\":%.3f,\"prompt\":\"%s\"}\n",
                   file, begin < 0 ? 0 : begin, end, caption }' corpus/*.srt >truth.jsonl
}

setup() {
  cd "$BATS_FILE_TMPDIR" || return 1
  scripts=$BATS_TEST_DIRNAME/../../../scripts
}

# swap A B: some of the truth with the words A and B exchanged in the captions.
swap() { sed -E "s/\\b$1\\b/@/; s/\\b$2\\b/$1/; s/@/$2/" truth.jsonl | head -n 24; }

@test "draw-corpus: as many shots as asked, each caption but the held-out ones evenly" {
  [ "$(wc -l <truth.jsonl)" -eq 66 ]
  [ "$(wc -l <corpus/held-out.txt)" -eq 3 ]
  run grep -h -c -F -f corpus/held-out.txt truth.jsonl
  [ "$output" = 0 ]
  [ "$(sed 's/.*"prompt"://' truth.jsonl | sort | uniq -c | awk '$1 < 2 || $1 > 3')" = "" ]
  [ "$(sed 's/.*"prompt"://' truth.jsonl | sort -u | wc -l)" -eq 29 ]
}

@test "draw-corpus: 64x64 at 12 a second, shots of 18 to 20 frames" {
  run ffprobe -v error -select_streams v -show_entries stream=width,height,r_frame_rate -of csv=p=0 corpus/shapes-0001.mp4
  [ "$output" = "64,64,12/1" ]
  run awk -F'"begin":|,"end":|,"prompt"' '{ d = ($3 - $2) * 12 + ($2 == 0 ? 0.48 : 0); if (d < 17.9 || d > 20.1) print }' truth.jsonl
  [ "$output" = "" ]
}

@test "draw-corpus: the same seed draws the same bytes, another seed others" {
  "$scripts/draw-corpus" same --shots 8 --jobs 1
  "$scripts/draw-corpus" again --shots 8 --jobs 2
  "$scripts/draw-corpus" other --shots 8 --seed 1
  [ "$(tree_hash same)" = "$(tree_hash again)" ]
  [ "$(tree_hash same)" != "$(tree_hash other)" ]
}

@test "draw-corpus: wrong usage is status 2" {
  run "$scripts/draw-corpus"
  [ "$status" -eq 2 ]
  run "$scripts/draw-corpus" x --shots many
  [ "$status" -eq 2 ]
  run "$scripts/draw-corpus" x --shots 0
  [ "$status" -eq 2 ]
  [ ! -e x ]
}

# bats test_tags=night
@test "judge: the truth passes, all of it" {
  run "$scripts/check-generation" --judge-only truth.jsonl
  echo "$output"
  [ "$status" -eq 0 ]
  [[ $output == *"pass  colour: 66 of 66"* ]]
  [[ $output == *"pass  direction: 66 of 66"* ]]
  [[ $output == *"shape: 66 of 66"* ]]
  [[ $output == *"mean IoU 0.99"* ]]
}

# bats test_tags=night
@test "judge: wrong directions fail" {
  swap left right >wrong.jsonl
  run "$scripts/check-generation" --judge-only wrong.jsonl
  echo "$output"
  [ "$status" -eq 1 ]
  [[ $output == *"FAIL  direction"* ]]
  [[ $output == *"pass  colour"* ]]
}

# bats test_tags=night
@test "judge: wrong colours fail" {
  swap red yellow >wrong.jsonl
  run "$scripts/check-generation" --judge-only wrong.jsonl
  [ "$status" -eq 1 ]
  [[ $output == *"FAIL  colour"* ]]
}

@test "judge: noise, a still shape and two shapes are not taken for moving shapes" {
  quiet_ffmpeg -f lavfi -i "color=gray:size=64x64:rate=12,noise=alls=80:allf=t:all_seed=1" -frames:v 17 noise.mp4
  quiet_ffmpeg -f lavfi -i "color=gray:size=64x64:rate=12,drawbox=x=20:y=20:w=20:h=20:c=red:t=fill" -frames:v 17 still.mp4
  quiet_ffmpeg -f lavfi -i "color=gray:size=64x64:rate=12,drawbox=x=4:y=20:w=16:h=16:c=red:t=fill,drawbox=x=44:y=20:w=16:h=16:c=red:t=fill" -frames:v 17 two.mp4
  for clip in noise still two; do
    echo "{\"path\":\"$clip.mp4\",\"prompt\":\"a red square moves left\"}"
  done >odd.jsonl
  run "$scripts/check-generation" --judge-only odd.jsonl --details odd.details
  echo "$output"
  cat odd.details
  [ "$status" -eq 1 ]
  run jq -r '.got.direction' odd.details
  [ "$(grep -c left <<<"$output")" -eq 0 ]
  jq -e -s '.[0].got.iou < 0.6 and .[1].got.iou > 0.9 and .[2].got.iou < 0.6' odd.details
}

@test "judge: what it cannot judge is an error, not a verdict" {
  run "$scripts/check-generation" --judge-only nothing.jsonl
  [ "$status" -eq 2 ]
  echo '{"path":"corpus/shapes-0001.mp4","prompt":"a dog"}' >odd.jsonl
  run "$scripts/check-generation" --judge-only odd.jsonl
  [ "$status" -eq 2 ]
  echo '{"path":"missing.mp4","prompt":"a red circle moves left"}' >odd.jsonl
  run "$scripts/check-generation" --judge-only odd.jsonl
  [ "$status" -eq 1 ]
  run "$scripts/check-generation"
  [ "$status" -eq 2 ]
}
