#!/usr/bin/env bats
# vfm-caption --endpoint: further questions, answers as JSON, and those that do not fit or were cut.
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # stderr is of run --separate-stderr
load ../helpers
load endpoint
bats_require_minimum_version 1.5.0

@test "further questions are requests of their own, and their answers fields of the json" {
  shard a red green
  serve asked
  schema 0
  echo "A long
one." >long.txt
  ask --prompt "The caption." --also short="Say = it." --also long=@long.txt --also facts='```json {"n": 7} ```' \
    --schema facts=schema.json a.tar >out.jsonl
  [ "$(requests)" -eq 8 ]
  [ "$(caption_of ared)" = "The caption." ]
  json_of ared | jq -e '.caption == "The caption." and .caption_short == "Say = it." and .caption_long == "A long one."
    and .caption_facts == {"n": 7} and .caption_model.name == "m" and .caption_also_cut == null'
  records <out.jsonl | jq -e '.caption_usage.answers == 8 and .caption_usage.prompt_tokens == 800'
  # The schema goes to the server where the user says so, and with its question alone.
  jq -se 'all(.[]; .format == null)' log
  rm log
  with='{"schema": true}' ask --prompt "The caption." --also facts='{"n": 8}' --schema facts=schema.json a.tar
  jq -se 'map(.format.json_schema.name) == [null, "facts", null, "facts"]' log
  jq -se '.[1].format.json_schema.schema.required == ["n"] and .[1].format.type == "json_schema"' log
  json_of ared | jq -e '.caption_facts.n == 8 and (has("caption_short") | not)'
}

@test "an answer that does not fit is asked for with other seeds, and once where nothing is drawn" {
  shard a red
  serve asked
  schema 2
  local facts='{"n": SEED}'
  with='{"temperature": 0.5}' ask --also facts="$facts" --schema facts=schema.json a.tar
  [ "$(requests)" -eq 4 ]
  jq -se 'map(.seed) == [null, null, 1, 2]' log
  json_of ared | jq -e '.caption_facts.n == 2'
  # Never one that fits: the clip's caption is there, and what was paid for is not paid again.
  schema 9
  rm log
  with='{"temperature": 0.5}' run --separate-stderr ask --also facts="$facts" --schema facts=schema.json --schema-tries 4 a.tar
  [ "$status" -eq 1 ]
  [ "$(requests)" -eq 5 ]
  [[ "$stderr" = *"ared of 'a.tar': no answer 'facts', asked 4 times: \$.n is 3, out of its range"* ]]
  json_of ared | jq -e '.caption_source == "endpoint" and (has("caption_facts") | not)'
  records <<<"$output" | jq -e '.caption_usage.failed == 1'
  with='{"temperature": 0.5}' run --separate-stderr ask --force --also facts="$facts" --schema facts=schema.json --schema-tries 4 a.tar
  [ "$status" -eq 1 ]
  [ "$(requests)" -eq 5 ]
  # Greedy.
  rm log
  run --separate-stderr ask --also facts="$facts" --schema facts=schema.json a.tar
  [ "$status" -eq 1 ]
  [ "$(requests)" -eq 2 ]
  [[ "$stderr" = *"no answer 'facts': \$.n is 0, out of its range"* ]]
  run --separate-stderr ask -v --also facts="$facts" --schema facts=schema.json --schema-tries 9 a.tar
  [[ "$stderr" = *"is there already"* ]]
  # No JSON at all.
  run --separate-stderr ask --also facts="a red ball" --schema facts=schema.json a.tar
  [[ "$stderr" = *"no answer 'facts': the answer"* ]]
}

# bats test_tags=night
@test "a text that the server cut is marked and counted, also when it was paid before" {
  shard a red green
  serve cut 400
  run --separate-stderr ask a.tar
  [ "$status" -eq 1 ]
  serve ok
  ask --force a.tar >out.jsonl
  [ "$(requests)" -eq 1 ]
  [ "$(for key in ared agreen; do json_of "$key" | jq .caption_cut; done | sort | paste -sd' ')" = "null true" ]
  records <out.jsonl | jq -e '.caption_cut == 1'
  serve cut
  ask --also short=x --report r.html a.tar >out.jsonl
  json_of ared | jq -e '.caption_cut and .caption_also_cut == ["short"]'
  records <out.jsonl | jq -e '.caption_cut == 4'
  grep -q "4 texts of models were cut" r.html
  # What says so goes with the column.
  vfm-caption --from builtin:measure --report r.html out.jsonl >measured.jsonl
  records <measured.jsonl | jq -e '(has("caption_cut") or has("caption_usage")) | not'
  [ "$(grep -c "texts of models" r.html)" -eq 0 ]
  echo '{"kind":"shard","path":"a.tar","caption_cut":"x","caption_usage":1}' |
    vfm-caption --from builtin:measure --report r.html >measured.jsonl
  # An answer that does not fit, too.
  schema 0
  run --separate-stderr ask --also facts=x --schema facts=schema.json a.tar
  [ "$status" -eq 1 ]
  json_of ared | jq -e '.caption_also_cut == ["facts"] and (has("caption_facts") | not)'
}

@test "questions and schemas that cannot be are refused before any request" {
  shard a red
  serve ok
  local say
  refused() {
    say=$1
    run --separate-stderr ask "${@:2}" a.tar
    [ "$status" -eq 2 ]
    [[ "$stderr" = *"$say"* ]] || { echo "$stderr"; false; }
  }
  refused "is not NAME=TEXT" --also short
  refused "is not NAME=TEXT" --also short=
  refused "a name has 1 to 40" --also Short=x
  refused '"caption_model" names another field' --also model=x
  refused "--also x is given twice" --also x=1 --also x=2
  refused "cannot open 'nowhere'" --also x=@nowhere
  : >empty
  refused "'empty' has no text" --also x=@empty
  head -c 1048577 /dev/zero >large
  refused "the text in 'large' is larger than 1 MiB" --also x=@large
  refused "the text in 'large' is larger than 1 MiB" --prompt @large
  refused "no question has that name" --also x=1 --schema y=schema.json
  refused "cannot open 'schema.json'" --also x=1 --schema x=schema.json
  echo '{"anyOf":[]}' >schema.json
  refused "'schema.json': \"anyOf\" at $ is not supported" --also x=1 --schema x=schema.json
  echo '{' >schema.json
  refused "'schema.json'" --also x=1 --schema x=schema.json
  run --separate-stderr vfm-caption --also x=1 a.tar
  [ "$status" -eq 2 ]
  [[ "$stderr" = *"--also is about a model"* ]]
  [ "$(requests)" -eq 0 ]
}
