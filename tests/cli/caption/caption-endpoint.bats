#!/usr/bin/env bats
# vfm-caption --endpoint: captions from a server, which fails in every way (caption-server).
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # stderr is of run --separate-stderr
load ../helpers
load endpoint
bats_require_minimum_version 1.5.0

@test "each clip is one request with its frames as JPEG, and the record counts tokens and cost" {
  local with='{"frames": 3, "price": [2, 30], "tokens": 77}'
  shard a red green
  serve ok
  VFM_ENDPOINT_KEY=sk-secret-1 run --separate-stderr ask --prompt "What is it?" a.tar
  [ "$status" -eq 0 ]
  [ "$(requests)" -eq 2 ]
  jq -se 'all(.[]; .path == "/v1/chat/completions" and .model == "m" and .prompt == "What is it?" and .tokens == 77
    and .key == "Bearer sk-secret-1" and .frames == ["ffd8ffd9", "ffd8ffd9", "ffd8ffd9"])' log
  [[ "$(caption_of ared)" = "caption of "*", 3 frames" ]]
  [ "$(caption_of ared)" != "$(caption_of agreen)" ]
  tar -xOf a.caption.tar ared.json | jq -e '.caption_source == "endpoint" and .caption_model.name == "m"'
  records <<<"$output" | jq -e '.caption_usage == {"answers":2,"failed":0,"prompt_tokens":200,"completion_tokens":20,"cost":0.001}'
  [ ! -e a.caption.answers.jsonl ]
  # The key is nowhere.
  [[ "$output$stderr" != *sk-secret* ]] || false
  local first=$output
  run ! grep -r sk-secret . --include='*.json*' --include='*.tar'
  # Kept: nothing is asked, and the record is the same.
  VFM_ENDPOINT_KEY=sk-secret-1 run --separate-stderr ask --prompt "What is it?" a.tar
  [ "$(requests)" -eq 2 ]
  [ "$(records <<<"$output")" = "$(records <<<"$first")" ]
}

@test "what may pass is tried again" {
  shard a red
  local fault faults=(503 close badjson)
  ! at_night || faults+=(500 429 408 truncated nochoices wrong huge)
  for fault in "${faults[@]}"; do
    serve "$fault" ok
    run --separate-stderr ask --force a.tar
    [ "$status" -eq 0 ] || { echo "$fault: $stderr"; false; }
    [ "$(requests)" -eq 2 ] || { echo "$fault"; false; }
    [[ "$(caption_of ared)" = "caption of "* ]]
  done
  serve hang ok
  with='{"timeout": 0.3}' run --separate-stderr ask --force a.tar
  [ "$status" -eq 0 ]
  [ "$(requests)" -eq 2 ]
  serve parts
  ask --force a.tar
  [ "$(caption_of ared)" = "in parts" ]
}

# bats test_tags=night
@test "no sooner than the server asks, in seconds or as a date" {
  shard a red
  local kind
  for kind in wait:429 date:503; do
    serve "$kind:2" ok
    ask --force a.tar
    [ "$(requests)" -eq 2 ]
    jq -se '.[1].at - .[0].at > 0.9' log
  done
}

@test "a shard of which no clip has an answer gets no column" {
  shard a red
  shard aa blue green
  local does
  for does in 400 500; do
    serve "$does" ok "$does" ok
    with='{"retries": 0}' run --separate-stderr ask -j 1 a.tar aa.tar
    [ "$status" -eq 1 ]
    [ ! -e a.caption.tar ]
    [[ "$stderr" = *"a.tar: no sample of it has an answer: 'http://"*"status $does: no"* ]]
    records <<<"$output" | jq -e '.path == "aa.tar" and .caption_usage.failed == 1'
    rm aa.caption.tar aa.caption.json aa.caption.answers.jsonl
  done
  ask -j 1 a.tar aa.tar
  for key in ared aablue aagreen; do [[ "$(caption_of "$key")" = "caption of "* ]]; done
}

# bats test_tags=night
@test "halves of characters in an answer that was paid for become U+FFFD" {
  shard a red
  serve half
  ask a.tar
  [ "$(requests)" -eq 1 ]
  [ "$(caption_of ared)" = "a 😀 and �, \\ud83d ��" ]
  serve halfobject
  schema 2
  ask --force --also facts=x --schema facts=schema.json a.tar
  json_of ared | jq -e '.caption_facts.says == "\ufffd"'
}

@test "what the server says is shown where it gives no caption" {
  shard a red
  serve said
  with='{"retries": 0}' VFM_ENDPOINT_KEY=sk-secret-6 run --separate-stderr ask a.tar
  [ "$status" -eq 1 ]
  [[ "$stderr" = *"the answer has no choices[0].message: the model is asleep, Bearer [key]"* ]]
  jq -e '.code == "server"' caption-errors.jsonl
  serve refusal
  run --separate-stderr ask a.tar
  [ "$status" -eq 1 ]
  [[ "$stderr" = *"the server's caption for it is empty: I will not look at this."* ]]
  # Paid for, so it is not asked again, and says the same.
  run --separate-stderr ask --force a.tar
  [ "$(requests)" -eq 1 ]
  [[ "$stderr" = *"is empty: I will not look at this."* ]]
  kill "$server"
  wait "$server" || true
  server=
  with='{"retries": 0}' run --separate-stderr ask --prompt other a.tar
  [[ "$stderr" = *"Failed to connect to 127.0.0.1 port"* ]]
}

@test "what was paid before a kill is not paid again" {
  shard a blue green red
  serve ok ok slow:20
  endpoint
  vfm-caption --endpoint endpoint.json a.tar 3>&- &
  local pid=$!
  until [ "$(requests)" -eq 3 ]; do sleep 0.05; done
  kill -KILL "$pid"
  wait "$pid" || true
  [ ! -e a.caption.tar ]
  [ "$(wc -l <a.caption.answers.jsonl)" -eq 2 ]
  # A line that is broken off is no answer.
  printf '{"request":"' >>a.caption.answers.jsonl
  serve ok
  ask a.tar
  [ "$(requests)" -eq 1 ]
  [ "$(tar -tf a.caption.tar | wc -l)" -eq 6 ]
  [ ! -e a.caption.answers.jsonl ]
}

@test "requests at once are bounded, and captions are in the order of the shard" {
  shard a blue green red white
  serve slow:0.2
  with='{"parallel": 3}' ask a.tar
  jq -se 'map(.most) | max == 3' log
  cp a.caption.tar parallel.tar
  serve ok
  ask --force a.tar
  cmp a.caption.tar parallel.tar
  jq -se 'map(.most) | max == 1' log
}

@test "other sources come first, a stop ends a request, and wrong options are refused before any" {
  shard a red
  echo "mine" >in-a/ared.txt
  tar --format=ustar --sort=name -C in-a -cf a.tar .
  serve hang
  ask --from existing a.tar
  [ "$(caption_of ared)" = mine ]
  [ "$(requests)" -eq 0 ]
  endpoint
  vfm-caption --endpoint endpoint.json a.tar --force 3>&- &
  local pid=$!
  until [ "$(requests)" -eq 1 ]; do sleep 0.05; done
  kill -TERM "$pid"
  status=0
  wait "$pid" || status=$?
  [ "$status" -eq 143 ]
  refused() {
    run --separate-stderr vfm-caption "$@" a.tar
    [ "$status" -eq 2 ]
  }
  refused --endpoint ftp://x
  refused --endpoint http://u:geheim@x
  [[ "$stderr" != *geheim* ]] || false
  refused --from existing,endpoint --endpoint "$url"
  [[ "$stderr" = *"--endpoint is asked after them"* ]]
  refused --endpoint "$url" --dry-run
  jq -n --arg url "$url" '{$url, key: "NOT_SET"}' >key.json
  refused --endpoint key.json
  [[ "$stderr" = *"'NOT_SET' has no key"* ]]
  [ "$(requests)" -eq 1 ]
}

@test "who waits for the server leaves the shared slot to others" {
  shard a red
  serve hang
  endpoint
  export VFM_SLOTS=1 VFM_SHARE=slots
  vfm-caption --endpoint endpoint.json a.tar >/dev/null 2>&1 3>&- &
  local pid=$!
  until [ "$(requests)" -eq 1 ]; do sleep 0.05; done
  timeout 8 vfm-caption --from existing --keep-empty -o others a.tar
  kill -TERM "$pid"
  wait "$pid" || true
}

@test "a prompt comes from a file" {
  shard a red
  serve ok
  printf 'One line.\nTwo.\n' >prompt.txt
  ask --prompt @prompt.txt a.tar
  jq -se '.[0].prompt == "One line.\nTwo."' log
}

@test "an address alone asks the only model of the server, and several are told" {
  shard a red
  serve ok
  vfm-caption --endpoint "$url" a.tar >/dev/null
  json_of ared | jq -e '.caption_model.name == "m" and .caption_source == "endpoint"'
  vfm-caption --endpoint "$url/chat/completions" -o again a.tar >/dev/null
  cmp a.caption.tar again/a.caption.tar
  echo one two >log.models
  VFM_ENDPOINT_KEY=two run --separate-stderr vfm-caption --endpoint "$url" -o several a.tar
  [ "$status" -eq 2 ]
  [[ "$stderr" = *"the server has 2 models; name one in a JSON file, vfm-endpoint(5): one, [key]" ]]
  echo none >log.models
  VFM_ENDPOINT_KEY=sk-secret-7 run --separate-stderr vfm-caption --endpoint "$url" -o several a.tar
  [ "$status" -eq 1 ]
  [[ "$stderr" = *"'$url/models' does not list the server's models: status 404: no, Bearer [key]; name the model"* ]]
  [ "$(requests)" -eq 2 ]
}

@test "the example of vfm-endpoint(5) asks a server" {
  shard a red
  serve asked
  sed -n '/^# EXAMPLE/,/^# [^E]/p' "$VFM_ROOT/man/vfm-endpoint.5.scd" | sed -n '/^```/,/^```/p' | sed '/^```/d' >captions.json
  jq -e '.url == "https://captions.example.org/v1"' captions.json
  sed -i "s#https://captions.example.org/v1#$url#" captions.json
  local key
  key=$(jq -r .key captions.json)
  echo '{"type": "object"}' >facts.json
  env "$key=sk-secret-8" vfm-caption --endpoint captions.json --also facts='{"n": 1}' --schema facts=facts.json a.tar >out.jsonl
  jq -se --slurpfile file captions.json 'length == 2 and all(.[]; .model == $file[0].model and .key == "Bearer sk-secret-8"
    and .tokens == $file[0].tokens and (.frames | length) == 8) and any(.[]; .format.type == "json_schema")' log
  records <out.jsonl | jq -e '.caption_usage.cost > 0'
}
