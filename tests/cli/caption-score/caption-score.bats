#!/usr/bin/env bats
# vfm-caption score: fields about captions, by models and by the text; columns, resume, faults.
# SPDX-License-Identifier: Apache-2.0
load ../helpers
load ../small_clips
bats_require_minimum_version 1.5.0

setup_file() { make_small_clips; }
setup() {
  setup_tools
  cp -r "$VFM_ROOT/tests/golden/qwen/untied" model
  clip_model clip
}
score() { vfm-caption score --model model --clip clip --frame-tokens 4 "$@"; }

# make_shard NAME KEY=CAPTION...: NAME.tar and NAME.caption.tar.
make_shard() {
  clip_shard "$@"
  vfm-caption --from existing:member "$1.tar" >/dev/null
}

@test "captions are scored by models and by themselves, and the json says by which" {
  make_shard a "c1=A red circle. It moves to the left." "c2=A red circle." "c3=the the the the the the"
  run --separate-stderr score a.tar
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  only_records
  [ "$(jq -r .columns.score <<<"$output")" = a.score.tar ]
  local key
  for key in c1 c2 c3; do
    tar -xOf a.score.tar "$key.json" | jq -e '
      (.caption_logprob < 0) and (.caption_logprob_blind < 0)
      and ((.caption_logprob - .caption_logprob_blind - .caption_gain) | fabs < 2e-6)
      and (.caption_gain_least <= .caption_gain) and (.caption_quality >= 0) and (.caption_quality <= 1)
      and (.caption_fit_least == (.caption_fits | min)) and (.caption_script == "Latin") and (.caption_clean == 1)
      and (.caption_scored_by.captioner.hash | length == 32) and (.caption_scored_by.clip.hash | length == 32)
      and (.caption_scored_by.texts.name == "sentence:clip") and (.caption_scored_by.captioner.path == null)'
  done
  [ "$(field a.score.tar c1 '.caption_fits | length')" -eq 2 ]
  [ "$(field a.score.tar c2 '.caption_fits | length')" -eq 1 ]
  [ "$(field a.score.tar c1 .caption_ended)" = true ]
  [ "$(field a.score.tar c3 .caption_ended)" = false ]
  [ "$(field a.score.tar c3 .caption_repetition)" = 0.75 ]
  # Without a video a caption is as likely with any clip; with it, not.
  make_shard b "c1=A red circle."
  score b.tar >/dev/null
  [ "$(field b.score.tar c1 .caption_logprob_blind)" = "$(field a.score.tar c2 .caption_logprob_blind)" ]
  [ "$(field b.score.tar c1 .caption_logprob)" != "$(field a.score.tar c2 .caption_logprob)" ]
  [ "$(field b.score.tar c1 .caption_fit)" != "$(field a.score.tar c2 .caption_fit)" ]
  [ "$(field b.score.tar c1 .caption_scored_by.caption)" = "$(field a.score.tar c2 .caption_scored_by.caption)" ]
}

@test "scores are a column that filters read, the same for any -j, and kept by a second run" {
  make_shard a "c1=A red circle." "c2=A red circle. A red circle." "c3=Blue."
  make_shard b "c2=Blue."
  score -j1 -o one a.tar b.tar >one.jsonl
  score -j2 -o two b.tar a.tar >/dev/null
  for shard in a b; do cmp "one/$shard.score.tar" "two/$shard.score.tar"; done
  limit=$(field one/a.score.tar c1 .caption_logprob)
  vfm-shard --where "caption_logprob >= $limit and caption_script = 'Latin'" --keep-duplicates -o dataset one.jsonl >/dev/null
  kept=$(find dataset -name '*.tar' -exec tar -tf {} \; | grep -c '\.txt$')
  [ "$kept" -eq "$(for s in a:c1 a:c2 a:c3 b:c2; do field "one/${s%:*}.score.tar" "${s#*:}" .caption_logprob; done |
    awk -v limit="$limit" '$1 >= limit' | wc -l)" ]
  run --separate-stderr score -v -o one a.tar
  [ "$status" -eq 0 ]
  [[ "$stderr" == *"'one/a.score.tar' is there already"* ]]
  # Moved folders are the same models; another caption, prompt or model is scored anew.
  mkdir below
  mv model clip below
  run --separate-stderr vfm-caption score -v --model below/model --clip below/clip --frame-tokens 4 -o one a.tar
  [[ "$stderr" == *"'one/a.score.tar' is there already"* ]]
  mv below/* .
  score --prompt "Where?" -o one a.tar >/dev/null
  ! cmp -s one/a.score.tar two/a.score.tar
  [ "$(field one/a.score.tar c1 .caption_scored_by.captioner.prompt)" = "Where?" ]
  score -o one a.tar >/dev/null
  cmp one/a.score.tar two/a.score.tar
  vfm-caption --from builtin:measure a.tar >/dev/null
  score -o one a.tar >/dev/null
  [ "$(field one/a.score.tar c1 .caption_scored_by.caption)" != "$(field two/a.score.tar c1 .caption_scored_by.caption)" ]
}

@test "no column is made again because scores or vectors appear beside it" {
  make_shard a "c1=A red circle."
  vfm-caption score a.tar >/dev/null
  vfm-embed a.tar >/dev/null
  kept() {
    run --separate-stderr "$@" -v a.tar
    [ "$status" -eq 0 ]
    [[ "$stderr" == *"is there already"* ]]
  }
  kept vfm-caption --from existing:member
  kept vfm-caption score
  rm a.score.*
  vfm-caption score a.tar >/dev/null
  kept vfm-embed
}

# written NAME KEY...: shards whose captions the model writes, their tokens kept; $of is how it is asked.
written() {
  make_shard "$1" "${@:2}"
  vfm-caption --force --from model:model "${of[@]}" --max-tokens 6 --seed 3 --temperature 1 --logprobs "$1.tar" >/dev/null
}

# bats test_tags=night
@test "what a model wrote with its tokens kept is scored without showing it the clip again" {
  of=(--frame-tokens 4)
  written a c1=x c2=x
  for key in c1 c2; do
    tar -xOf a.caption.tar $key.json | jq -e '.caption_model.logprobs and (.caption_written
      | (.ids | length > 0 and length <= 6) and (.logprobs | all(. <= 0)) and (has("picture") | not)
        and (.ids | length) == (.logprobs | length))'
  done
  vfm-caption score --model model --frame-tokens 4 a.tar >/dev/null
  [ "$(field a.score.tar c1 .caption_scored_by.written)" = true ]
  [ "$(field a.score.tar c1 .caption_tokens)" = "$(field a.caption.tar c1 '.caption_written.ids | length')" ]
  # As a pass says, where the tokens are those of the text: one letter.
  make_shard b c1=x
  caption() { vfm-caption --force --from model:model --frame-tokens 4 --max-tokens 1 --temperature 1 --seed "$@" b.tar >/dev/null; }
  seed=1
  until caption $seed && [[ "$(tar -xOf b.caption.tar c1.txt)" =~ ^[!-~]$ ]]; do
    [ $((++seed)) -le 30 ]
  done
  vfm-caption score --model model --frame-tokens 4 -o again b.tar >/dev/null
  caption $seed --logprobs
  vfm-caption score --model model --frame-tokens 4 -o kept b.tar >/dev/null
  [ "$(field kept/b.score.tar c1 .caption_scored_by.written)" = true ]
  [ "$(field again/b.score.tar c1 .caption_scored_by.written)" = null ]
  for name in tokens logprob logprob_blind gain gain_least; do
    jq -en --argjson a "$(field kept/b.score.tar c1 ".caption_$name")" \
      --argjson b "$(field again/b.score.tar c1 ".caption_$name")" '($a - $b) | fabs < 1e-4'
  done
}

@test "a score of what was written costs a quarter of writing it at most, counted" {
  of=(--prompt Look)
  written a c1=x c2=x
  captioning=$(vfm-caption --force --from model:model --prompt Look --max-tokens 6 --logprobs --dry-run a.tar |
    jq '.model.flops | .vision + .prompt + .text')
  run --separate-stderr vfm-caption score --model model --prompt Look --dry-run a.tar
  [ "$status" -eq 0 ]
  [[ "$stderr" == *"which it need not see again for 2 of 2"* ]]
  jq -e --argjson captioning "$captioning" '.model | .clips == 2 and .written == 2 and .flops.with_video == 0
    and .flops.alone > 0 and .flops.alone <= 0.25 * $captioning' <<<"$output"
  # Of a caption from elsewhere the pass with the video is told, too.
  vfm-caption --force --from existing:member a.tar >/dev/null
  vfm-caption score --model model --prompt Look --dry-run a.tar |
    jq -e '.model | .written == 0 and .flops.with_video > .flops.alone'
}

@test "options that scores do not have or that need a model, and folders that are no models, are refused before any work" {
  make_shard a "c1=A red circle."
  refused() {
    run --separate-stderr vfm-caption score "${@:2}" a.tar
    [ "$status" -eq 2 ]
    [[ "$stderr" == *"$1"* ]] || { echo "$stderr"; false; }
    [ ! -e a.score.tar ]
  }
  refused "The following argument was not expected: --from" --from existing
  refused "--max-tokens" --model model --max-tokens 4
  refused "--fps requires --model" --fps 4
  refused "--device is about a model" --device cpu
  refused "no such model folder" --model nowhere
  refused "has no part for texts" --clip "$VFM_ROOT/tests/golden/picture_encoders/dinov2"
  truncate -s -100 clip/model.safetensors
  refused "model.safetensors" --clip clip
}
