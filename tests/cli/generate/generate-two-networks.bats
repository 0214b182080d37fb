#!/usr/bin/env bats
# vfm-generate: folders with two networks that are chosen by noise level.
# SPDX-License-Identifier: Apache-2.0

load ../helpers
bats_require_minimum_version 1.5.0

# A Cosmos-1.0 pipeline, the same with a transformer_2, and one with that as its transformer.
setup_file() {
  local golden=$VFM_ROOT/tests/golden
  cd "$BATS_FILE_TMPDIR" || return 1
  cp -r "$golden/cosmos_pipeline" high
  cp -r "$golden/cosmos_vae" high/vae
  cp -r "$golden/t5/v1_0/text_encoder" "$golden/t5/v1_0/tokenizer" high
  cp -r high low
  weights low/transformer/diffusion_pytorch_model.safetensors proj_out.weight -0.5
  cp -r high two
  cp -r low/transformer two/transformer_2
  index two '.transformer_2 = .transformer | .boundary_ratio = 0.875'
}

setup() {
  setup_tools
  cp -r "$BATS_FILE_TMPDIR"/{high,low,two} .
  call=(--device cpu --negative blurry --size 48x32 --frames 5 --steps 4 --guidance 3 --encoder ffv1)
}

# index FOLDER FILTER: changes its model_index.json.
index() {
  jq "$2" "$1/model_index.json" >index.json
  mv index.json "$1/model_index.json"
}

# weights FILE NAME FACTOR: multiplies the tensors whose names end so, of f32.
weights() {
  python3 - "$@" <<'PY'
import array, json, struct, sys
path, end, factor = sys.argv[1], sys.argv[2], float(sys.argv[3])
data = bytearray(open(path, "rb").read())
size = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + size])
changed = [entry for name, entry in header.items() if name.endswith(end)]
assert changed and all(entry["dtype"] == "F32" for entry in changed)
for entry in changed:
    begin, stop = (8 + size + at for at in entry["data_offsets"])
    data[begin:stop] = array.array("f", [factor * value for value in array.array("f", data[begin:stop])]).tobytes()
open(path, "wb").write(data)
PY
}

# adapters FILE PREFIX: adapters for a matrix of the first block, of width 32.
adapters() {
  python3 - "$@" <<'PY'
import array, json, struct, sys
module = sys.argv[2] + "transformer_blocks.0.attn1.to_q"
header = {f"{module}.lora_A.weight": {"dtype": "F32", "shape": [1, 32], "data_offsets": [0, 128]},
          f"{module}.lora_B.weight": {"dtype": "F32", "shape": [32, 1], "data_offsets": [128, 256]}}
text = json.dumps(header).encode()
open(sys.argv[1], "wb").write(struct.pack("<Q", len(text)) + text + array.array("f", [0.5] * 64).tobytes())
PY
}

# make FOLDER NAME OPTION...: out-NAME/fox.mp4, with its record in NAME.jsonl.
make() {
  vfm-generate --model "$1" "${call[@]}" "${@:3}" -o "out-$2" <<<'{"prompt": "a red fox", "name": "fox"}' >"$2.jsonl"
}
same() { cmp "out-$1/fox.mp4" "out-$2/fox.mp4"; }
other() { run cmp "out-$1/fox.mp4" "out-$2/fox.mp4" && [ "$status" -eq 1 ]; }

@test "the network of the noise level makes each step, and a folder with one of the two has one" {
  make high high
  make low low
  make two two
  other high low
  other two high
  other two low
  # Boundaries above and below all noise levels.
  index two '.boundary_ratio = 0.9999'
  make two all-low
  same all-low low
  index two '.boundary_ratio = 0.000001'
  make two all-high
  same all-high high
  # null is a network that is not there.
  index two '.boundary_ratio = 0.875 | .transformer = [null, null]'
  make two second
  same second low
  index two '.transformer = .transformer_2 | .transformer_2 = [null, null]'
  make two first
  same first high
  [ "$(jq -r .model_hash <(records first.jsonl))" = "$(jq -r .model_hash <(records high.jsonl))" ]
}

# bats test_tags=night
@test "guidance of low levels is an option, and part of the record; the hash is of both networks and the boundary" {
  make two same
  make two equal --guidance-low 3
  same same equal
  make two weaker --guidance-low 1
  other same weaker
  make two without --guidance-low 0
  other weaker without
  jq -e '.guidance == 3 and .guidance_low == 1' <(records weaker.jsonl)
  jq -e '.guidance == 3 and (has("guidance_low") | not)' <(records same.jsonl)
  # A record asks for the same clip.
  vfm-generate --model two "${call[@]}" -o again <<<"$(records weaker.jsonl)" >/dev/null
  cmp again/fox.mp4 out-weaker/fox.mp4
  hash() { jq -r .model_hash <(records "$1.jsonl"); }
  index two '.boundary_ratio = 0.88'
  make two moved
  same same moved  # no level is between the two
  weights two/transformer_2/diffusion_pytorch_model.safetensors proj_out.weight 2
  make two changed
  [ "$(printf '%s\n' "$(hash same)" "$(hash moved)" "$(hash changed)" | sort -u | wc -l)" -eq 3 ]
}

@test "what cannot be is refused" {
  refused "'guidance_low' is for models with another network for low noise levels" \
    vfm-generate --model high --guidance-low 2 -o out x
  refused "has two networks that are chosen by noise level, and a run trains one" \
    vfm-train "$VFM_ROOT/examples/recipes/quickstart.yaml" --init two --data nowhere -o run
  index two 'del(.boundary_ratio)'
  refused "names two networks, and its boundary_ratio is missing" vfm-generate --model two -o out x
  index two '.boundary_ratio = 0.875'
  jq '.mlp_ratio = 3.0' two/transformer/config.json >two/transformer_2/config.json
  refused "must have one configuration" vfm-generate cost --model two
  cp two/transformer/config.json two/transformer_2
  adapters third.safetensors transformer_3.
  refused "transformer_3" vfm-generate --model two --lora third.safetensors -o out x
}

@test "adapters are for both networks, or for the one that the file names" {
  adapters both.safetensors transformer.
  adapters second.safetensors transformer_2.
  make two two
  make two both --lora both.safetensors
  make two second --lora second.safetensors
  make two separate --lora second.safetensors --no-merge
  other two both
  other two second
  other both second
  other two separate
  jq -e '.lora.hash' <(records second.jsonl)
  # At the levels of the first network the second one's are not used.
  index two '.boundary_ratio = 0.000001'
  make two high
  make two high-second --lora second.safetensors
  make two high-both --lora both.safetensors
  same high high-second
  other high high-both
  # A model with one network has no place for them.
  refused "transformer_2" vfm-generate --model high --lora second.safetensors -o out x
}

@test "the same bytes with -j1 and -j3, and after an end at any moment; 8 bits are those of both networks" {
  printf 'a red fox %s\n' 1 2 3 >prompts
  vfm-generate --model two "${call[@]}" -v -o one -j1 - <prompts >one.jsonl 2>log
  [ "$(grep -c "' is in memory, loaded in" log)" -eq 5 ]
  vfm-generate --model two "${call[@]}" -o three -j3 - <prompts >three.jsonl
  [ "$(cd one && sha256sum ./*.mp4)" = "$(cd three && sha256sum ./*.mp4)" ]
  slow=(--model two --device cpu --size 48x32 --frames 5 --steps 60 --encoder ffv1 --save-every 0)
  vfm-generate "${slow[@]}" -o whole - <prompts >whole.jsonl
  kill_at_random 3 bash -c "vfm-generate ${slow[*]} -o broken - <prompts"
  vfm-generate "${slow[@]}" -o broken - <prompts >broken.jsonl
  [ "$(cd whole && sha256sum ./*.mp4)" = "$(cd broken && sha256sum ./*.mp4)" ]
  make low low --quantize int8
  index two '.boundary_ratio = 0.9999'
  make two two --quantize int8
  same low two
  make low plain
  other low plain
}

@test "cost tells the passes of each network, what a switch reads, and the memory with one of them" {
  cost() { vfm-generate cost --model "$1" "${call[@]:0:12}" -q; }  # without --encoder
  cost high >high.json
  cost two >two.json
  bytes=$(jq .network.file_bytes high.json)
  jq -e --argjson bytes "$bytes" '.sampling.passes == 3 and
    .switch == {level: 7, passes: [2, 1], samples: [2, 2], file_bytes: $bytes}' two.json
  jq -e '[.network, .tokenizer, .flops] == ($high[0] | [.network, .tokenizer, .flops])' --slurpfile high high.json two.json
  # Never both in memory.
  jq -es --argjson bytes "$bytes" 'map(.memory_bytes | .peak - .program) | .[1] - .[0] | . >= 0 and . <= $bytes' \
    high.json two.json
  vfm-generate cost --model two "${call[@]:0:12}" 2>&1 >/dev/null |
    grep -q '^switch  *after 2 of the passes, below the level 7.0, to another network: '
}

@test "cost: passes of a network without guidance have one sample" {
  cost() { vfm-generate cost --model two --gpu h100 "${call[@]:2:8}" "$@"; }
  cost -q --guidance 3 >both.json
  cost --guidance 3 --guidance-low 0 >high.json 2>words
  cost -q --guidance 0 --guidance-low 3 >low.json
  jq -es 'map([.sampling.samples, .switch.samples]) == [[2, [2, 2]], [2, [2, 1]], [2, [1, 2]]]' {both,high,low}.json
  # Of six samples five, and four. Memory is of two samples.
  jq -es 'map(.network.flops) | .[0] as $six | map(. * 6e6 / $six | round) == [6e6, 5e6, 4e6]' {both,high,low}.json
  jq -es 'map(.predicted.seconds) | .[0] > .[1] and .[1] > .[2]' {both,high,low}.json
  jq -es 'map(.memory_bytes.peak) | .[0] == .[1] and .[1] == .[2]' {both,high,low}.json
  grep -q '^passes  *2 of 2 samples, then 1 of 1 sample$' words
}

# bats test_tags=night
@test "ranks that share clips: those of one clip at a time, and of one rank but for rounding" {
  needs_mpi vfm-generate
  on() { mpirun -np 2 vfm-generate --model two "${call[@]}" --parallel cfg=2 "$@"; }
  seq -f 'a red fox %g' 5 >prompts
  on -v -o many - <prompts >many.jsonl 2>log
  # Four clips are begun before the first is finished, and the fifth goes alone: three switches of each rank.
  loads=$(grep -c "' is in memory, loaded in" log)
  [ "$loads" -eq 3 ] || [ "$loads" -eq 6 ]
  for number in 2 5; do
    on -o alone "a red fox $number" </dev/null >/dev/null
  done
  [ "$(find alone -name "*.mp4" | wc -l)" -eq 2 ]
  for file in alone/*.mp4; do cmp "$file" "many/${file#*/}"; done
  # What is there is not begun again.
  on -v -o many - <prompts 2>log >again.jsonl
  run ! grep -q "' is in memory, loaded in" log
  cmp <(records many.jsonl) <(records again.jsonl)
  make two one
  on -o both - <<<'{"prompt": "a red fox", "name": "fox"}' >/dev/null
  for one in out-one both; do ffmpeg -v error -i $one/fox.mp4 -f rawvideo -pix_fmt rgb24 $one.rgb; done
  python3 -c 'if max(abs(a - b) for a, b in zip(open("out-one.rgb", "rb").read(), open("both.rgb", "rb").read())) > 1: exit(1)'
}
