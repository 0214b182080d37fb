#!/usr/bin/env bats
# vfm-train plan: a layout chosen without a GPU.
# SPDX-License-Identifier: Apache-2.0

load ../helpers
bats_require_minimum_version 1.5.0

setup() {
  setup_tools
  cat >small.yaml <<'YAML'
model: {num_attention_heads: 8, num_layers: 6, adaln_lora_dim: 64, compute: bf16}
data: {tokens: 4096, packs: 32, micro_packs: 1}
ema: {mode: "off"}
YAML
}

# plan ARGUMENTS...: of the small recipe.
plan() {
  run --separate-stderr timeout 60 vfm-train plan small.yaml --synthetic 16x32x32 "$@"
}

@test "plan prints the ten best as JSON and in words, and writes nothing else" {
  plan --gpus 16 --gpu h100
  echo "$stderr"
  [ "$status" -eq 0 ] && [ -n "$stderr" ]
  jq -e '.kind == "plan" and .gpu == "H100" and .gpus == 16 and .per_node == 8 and .tokens_per_step == 131072
         and (.best | length == 10 and all(.fits and .seconds > 0 and .mfu > 0 and .mfu < 1))
         and (.best | [.[].seconds] == ([.[].seconds] | sort))
         and .best[0].why == "the fastest" and (.best[1].why | test("ms more of"))
         and .whole_differs < 0.01
         and .layouts.drawn == .layouts.fit + .layouts.too_big + .layouts.slower + ([.layouts.refused[]] | add // 0)' <<<"$output"
  # The terms are the whole of the time.
  jq -e '.best | all(([.terms[]] | add) - .seconds | fabs < 1e-9)' <<<"$output"
  [[ $stderr == *"16 H100, 8 on a node"*"predicted, not measured"*"the fastest"*"mpirun -np 16 vfm-train small.yaml parallel.tp="*" --synthetic 16x32x32 -o RUN"* ]]
  [ "$(ls -I 'separate-stderr-*')" = small.yaml ]
}

# bats test_tags=night
@test "plain data parallel is always told, with what it takes or why it cannot be" {
  plan --gpus 4 --gpu h100
  jq -e '.plain | .layout == "tp=1 cp=1 dp=4" and .fits and .seconds > 0 and .memory_bytes > 0' <<<"$output"
  [[ $stderr == *"plain data parallel, tp=1 cp=1 dp=4: fits, "* ]]
  echo '{"like": "h100", "title": "tiny", "memory": 4e9}' >tiny.json
  plan --gpus 8 --gpu ./tiny.json --report page.html
  [ "$status" -eq 0 ]
  jq -e '.plain | .fits == false and (.why | test("of memory.* are usable"))' <<<"$output"
  [[ $stderr == *"plain data parallel, tp=1 cp=1 dp=8: does not fit, "*" are usable"* ]]
  grep -q "plain data parallel, " page.html
}

@test "fewer packs than GPUs are noted, and the command to copy is whole" {
  plan --gpus 64 --gpu h100 data.packs=8 'data.captions=[a b]' parallel.pp=1
  echo "$stderr"
  [ "$status" -eq 0 ]
  [[ $stderr == *"plain data parallel, tp=1 cp=1 dp=64: left out, more ranks than packs a step"* ]]
  [[ $stderr == *"note: 8 packs a step for 64 GPUs: data.packs=64 has one for each"* ]]
  jq -e '.best[0].signs | any(test("data.packs=64"))' <<<"$output"
  command=$(jq -r .command <<<"$output")
  [[ $command == "mpirun -np 64 vfm-train small.yaml data.packs=8 'data.captions=[a b]' parallel.tp="*" --synthetic 16x32x32 -o RUN" ]]
  [ "$(grep -o parallel.pp <<<"$command" | wc -l)" -eq 1 ]
}

@test "given keys of parallel are kept, and those that plan chooses itself refused" {
  plan --gpus 16 --gpu h100 parallel.shard=none parallel.cp_kind=ring
  [ "$status" -eq 0 ]
  jq -e '.best | length == 10 and all(.layout | test("shard|gather|all_to_all") | not) and any(.layout | test("ring"))' <<<"$output"
  plan --gpus 16 --gpu h100 parallel.tp=3
  [ "$status" -eq 1 ]
  [[ $stderr == *"not as the given keys of 'parallel' say: "* ]]
  plan --gpus 16 --gpu h100 parallel.tp_chunks=2
  [ "$status" -eq 2 ]
  [[ $stderr == *"plan chooses 'parallel.tp_chunks' itself: leave it out"* ]]
}

# bats test_tags=night
@test "on a terminal plan prints the table alone" {
  script -qec 'vfm-train plan small.yaml --synthetic 16x32x32 --gpus 16 --gpu h100' /dev/null </dev/null | tr -d '\r' >table
  grep -qE '^  layout +s a step +tokens/s MFU, % +memory  why$' table
  [ "$(grep -cE '^  tp=[0-9]+ .* [0-9.]+ +[0-9.]+[kM]? +[0-9.]+ +[0-9.]+ [GM]iB  ' table)" -eq 10 ]
  run ! grep -q '^{' table
}

# bats test_tags=night
@test "the run takes each of the ten: its dry run has that layout, and stages, shards and hybrids are among them" {
  # Where nodes are far apart stages pay; where memory is small, shards.
  cat >far.json <<'JSON'
{"like": "h100", "title": "far", "memory": 4.5e9, "across": {"bandwidth": 2e8, "latency": 1e-3}}
JSON
  local count=0 all="" more layout settings
  kinds=("--gpu ./far.json --per-node 2 data.packs=16" "--gpu ./far.json --per-node 4 model.type=stdit")
  ! at_night || kinds+=("--gpu h100")
  for more in "${kinds[@]}"; do
    # shellcheck disable=SC2086
    plan --gpus 8 $more
    echo "$stderr"
    [ "$status" -eq 0 ]
    more=$(grep -oE '[a-z]+\.[a-z]+=.*' <<<"$more" || true)
    while read -r layout settings; do
      # shellcheck disable=SC2086
      [ "$(vfm-train cost small.yaml --ranks 8 --device cpu --synthetic 16x32x32 $more ${settings/model.offload=true/} 2>/dev/null |
        jq -r '.layout | "tp=\(.tp),cp=\(.cp),dp=\(.dp),pp=\(.pp // 1)"')" = "$layout" ]
      count=$((count + 1))
      all+=" $settings"
    done < <(jq -r '.best[] | (.layout | [scan("\\b(tp|cp|dp|pp)=([0-9]+)") | {(.[0]): .[1]}] | add |
      "tp=\(.tp),cp=\(.cp),dp=\(.dp),pp=\(.pp // 1)") + " " + (.settings | join(" "))' <<<"$output")
  done
  [ "$count" -eq $((10 * ${#kinds[@]})) ]
  [[ $all == *parallel.pp=* && $all == *parallel.shard=* && $all == *parallel.hybrid=true* ]]
}

# bats test_tags=night
@test "a plan says what stages compute anew, and what sending it would take" {
  plan --gpus 8 --gpu h100
  [ "$status" -eq 0 ]
  jq -e '.conditioning | .computed_seconds > 0 and .sent_seconds > 0 and (.layout | test(" pp="))' <<<"$output"
  [[ $stderr == *"each stage of tp="*" computes them again in "*" ms a step, and to send them would take "* ]]
}

# bats test_tags=night
@test "links decide: where nodes are far apart, ranks that share a pack stay on one" {
  cat >far.json <<'JSON'
{"like": "h100", "name": "far", "title": "far", "memory": 6e9, "across": {"bandwidth": 1e8, "latency": 1e-3}}
JSON
  plan --gpus 16 --gpu ./far.json --per-node 4
  echo "$stderr"
  [ "$status" -eq 0 ]
  jq -e '.gpu == "far" and .per_node == 4
         and (.best[0].layout | capture("tp=(?<tp>[0-9]+) cp=(?<cp>[0-9]+)") | (.tp | tonumber) * (.cp | tonumber) <= 4)' <<<"$output"
}

# bats test_tags=night
@test "a plan of 7 billion parameters on 8,192 GPUs takes seconds" {
  run --separate-stderr timeout 90 vfm-train plan "$VFM_ROOT/examples/recipes/7b.yaml" --gpus 8192 --gpu h200 \
    --synthetic 32x96x96 data.packs=512 data.tokens=73728 ema.mode=off
  [ "$status" -eq 0 ]
  jq -e '.gpus == 8192 and (.best | length == 10)' <<<"$output"
}

# bats test_tags=night
@test "groups that straddle nodes are priced as such: ranks that share most stay on one" {
  # Of 48 GPUs, 8 a node, tp of three would have every third group on two nodes.
  run --separate-stderr timeout 60 vfm-train plan "$VFM_ROOT/examples/recipes/28b.yaml" --gpus 48 --gpu h100 --synthetic 8x64x64 \
    data.packs=48 data.tokens=8192 ema.mode=off model.recompute=auto
  [ "$status" -eq 0 ]
  jq -e '.best | map(.layout | capture("tp=(?<tp>[0-9]+)").tp | tonumber) | all(8 % . == 0)' <<<"$output"
  cost() { # of a step of layout ARGUMENTS... on so many, the part of what $1 exchanges
    vfm-train cost small.yaml -q --synthetic 16x32x32 --ranks 48 --gpu ./far.json data.packs=16 model.num_attention_heads=12 \
      "${@:2}" | jq "[.predicted.lines[] | select(.name == \"$1\").seconds] | add"
  }
  echo '{"like": "h100", "per_node": 8, "across": {"bandwidth": 1e9, "latency": 1e-3}}' >far.json
  straddling=$(cost tp parallel.tp=3 parallel.tp_chunks=1)
  inside=$(cost tp parallel.tp=4 parallel.tp_chunks=1)
  echo "$straddling $inside"
  jq -n -e "$straddling > 20 * $inside"
}

@test "where no layout can be, why, and what to set" {
  # Of three GPUs only dp is left to two heads, two blocks and short packs, and there are two of these.
  none() {
    run --separate-stderr vfm-train plan small.yaml --synthetic 4x16x8 --gpus 3 --gpu h100 model.num_attention_heads=2 \
      model.num_layers=2 data.tokens=256 "$@"
  }
  none data.packs=2
  echo "$stderr"
  [ "$status" -eq 1 ]
  jq -e '(.best | length == 0) and (.too_big | length == 0)' <<<"$output"
  [[ $stderr == *"no layout can be, whatever the memory; why those that were drawn cannot:"*"more ranks than packs a step: "*"data.packs=3 has one for each GPU"* ]]
  [[ $stderr != *"the smallest"* ]]
  none data.packs=3
  [ "$status" -eq 0 ]
}

@test "what would help where memory is full, and only that" {
  echo '{"like": "h100", "title": "tiny", "memory": 3e9}' >tiny.json
  run --separate-stderr vfm-train cost small.yaml --ranks 4 --synthetic 16x32x32 --gpu ./tiny.json model.num_layers=40 model.recompute=block
  echo "$stderr"
  [ "$status" -eq 0 ]
  note=$(grep '^note: memory is full to ' <<<"$stderr")
  [[ $note == *"'parallel.shard' full"* && $note != *"'model.recompute'"* && $note != *"data.tokens"* ]]
}

@test "what does not fit is told with the smallest, and status 1" {
  cat >tiny.json <<'JSON'
{"like": "l40s", "title": "tiny", "memory": 2.5e9}
JSON
  plan --gpus 2 --gpu ./tiny.json
  [ "$status" -eq 1 ]
  jq -e '(.best | length == 0) and (.too_big | length > 0 and all(.why | test("are usable")))' <<<"$output"
  [[ $stderr == *"no layout fits; the smallest:"* ]]
}

@test "a page has the bars, the ten and what was refused" {
  plan --gpus 16 --gpu h200 --report page.html
  [ "$status" -eq 0 ]
  grep -q '<svg' page.html
  grep -q 'parallel.tp=' page.html
  grep -q 'Pipelines: ' page.html
  grep -q 'The time of a step' page.html
}

# bats test_tags=night
@test "the page of layouts is what plan says" {
  # All of it: tests/nightly/plan.bats.
  run "$VFM_ROOT/scripts/layouts" 2b 8192 8
  echo "$output"
  [ "$status" -eq 0 ]
  grep -qxF "$output" "$VFM_ROOT/examples/LAYOUTS.md"
}

@test "options that do not go together are refused, and wrong files of a GPU" {
  refused() {
    run --separate-stderr vfm-train "$2" small.yaml --synthetic 16x32x32 "${@:3}"
    echo "$stderr"
    [ "$status" -eq 2 ]
    [[ $stderr == *"$1"* ]]
  }
  refused "--gpus is required" plan --gpu h100
  refused "--gpu is required" plan --gpus 4
  refused "--per-node" cost --per-node 4
  refused "--output" plan --gpus 4 --gpu h100 --output run
  refused "there is no file './none.json'" plan --gpus 4 --gpu ./none.json
  echo '{"like": "h100", "speed": 1}' >odd.json
  refused "no 'speed'; there are like, name, title, memory" plan --gpus 4 --gpu ./odd.json
  echo '{"like": "h100", "memory": -1}' >odd.json
  refused "'memory' is -1" plan --gpus 4 --gpu ./odd.json
  echo '{"like": "h100", "peak": 1}' >odd.json
  refused "'peak_f32' is 6.69e+13, more than 'peak', which is 1: no GPU computes faster" plan --gpus 4 --gpu ./odd.json
  echo '{"like": "h100", "attention_forward": 0}' >odd.json
  refused "'attention_forward' is 0, and must be more" plan --gpus 4 --gpu ./odd.json
  refused "'parallel.cp_heads' is 2, and 'parallel.cp_kind' is ring" cost --ranks 4 parallel.cp=4 parallel.cp_kind=ring parallel.cp_heads=2
}
