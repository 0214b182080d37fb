#!/usr/bin/env bash
# The memory that vfm-train cost tells, and what the run then takes, on the CPU with one thread, of tiny models that
# this makes. Prints a Markdown table: what, MiB reported, MiB measured, reported / measured (target: 0.8 to 1.3).
# Measured is the most that is resident at once, the program included, as .memory_bytes.peak of vfm-generate and
# .total of vfm-train count it. Of vfm-train also without the program: what is resident beyond what the dry run has;
# and of tensors alone, reported without .host: the most that their allocator hands out (memory_peak of timing.jsonl).
# Usage: tests/bench/dry_run_memory.sh [TOOLS]      folder of the programs (default: build/tools)
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
tools=$(cd "${1:-$root/build/tools}" && pwd)
export PATH="$tools:$PATH" LC_ALL=C.UTF-8
recipes=$root/examples/recipes golden=$root/tests/golden
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# resident COMMAND...: KiB that it had at once; what it says only where it fails.
resident() {
  python3 - "$@" <<'PY'
import os, subprocess, sys
with open("said", "w+b") as said:
    process = subprocess.Popen(sys.argv[1:], stdout=said, stderr=said)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        said.seek(0)
        sys.exit(said.read().decode())
print(usage.ru_maxrss)
PY
}

# row WHAT (TOLD MEASURED)...: all in KiB.
row() {
  printf '| %s ' "$1"
  shift
  echo "$@" | awk '{
    for (i = 1; i < NF; i += 2) {
      ratio = $i / $(i + 1)
      mark = (ratio < 0.8 || ratio > 1.3) ? "**" : ""
      printf "| %.1f | %.1f | %s%.2f%s ", $i / 1024, $(i + 1) / 1024, mark, ratio, mark
    }
    print "|"
  }'
}

# generates WHAT OPTION...: as a stream, and as a file.
generates() {
  local told output
  for output in - taken; do
    told=$(vfm-generate cost --device cpu "${@:2}" -q | jq '.memory_bytes.peak / 1024')
    row "$1, $([ $output = - ] && echo stream || echo file)" "$told" \
      "$(resident vfm-generate --device cpu "${@:2}" -o $output --force -j1 'a red circle moves left')"
  done
}

# trains WHAT ARGUMENT...
trains() {
  local cost idle took
  rm -rf run
  cost=$(vfm-train cost "${@:2}" --device cpu -q)
  told() { jq "(.memory_bytes | $1) / 1024" <<<"$cost"; }
  idle=$(resident vfm-train cost "${@:2}" --device cpu -q)
  took=$(resident vfm-train "${@:2}" --device cpu -j1 train.steps=3 train.log_every=1 validation.every=0 \
    schedule.warmup=0 -o run)
  row "$1" "$(told .total)" "$took" "$(told ".total - 1024 * $idle")" $((took - idle)) \
    "$(told '.total - .host')" "$(jq -s 'map(.memory_peak) | max / 1024' run/timing.jsonl)"
}

"$root/scripts/draw-corpus" raw --shots 12 >/dev/null
find raw -name '*.mp4' | LC_ALL=C sort | vfm-clip --min-length 1s -o clips | vfm-caption | vfm-embed |
  vfm-shard --keep-duplicates -o dataset >shards.jsonl
vfm-pack --size 64 --frames 17 --device cpu -o latents <shards.jsonl >/dev/null
vfm-pack --size 64 --frames 17 --device cpu --tokenizer builtin:fsq --space-factor 8 -o codes <shards.jsonl >/dev/null
cat >decoder.yaml <<'END'
model: {type: autoregressive, num_attention_heads: 4, attention_head_dim: 16, num_key_value_heads: 2, num_layers: 2, mlp_ratio: 2}
data: {tokens: 384}
END
sed '/adaln_lora_dim/d' "$recipes/tiny.yaml" >moviegen.yaml

# make FOLDER RECIPE DATA SETTING...: a model that has seen one step.
make() {
  vfm-train "$2" --data "$3" --device cpu -j1 train.steps=1 validation.every=0 -o "$1" "${@:4}" >/dev/null 2>&1
}
make dit "$recipes/quickstart.yaml" latents
make stdit "$recipes/tiny.yaml" latents model.type=stdit data.tokens=384
make moviegen moviegen.yaml latents model.type=moviegen data.tokens=384
make autoregressive decoder.yaml codes
for name in pipeline v2w; do
  cp -r "$golden/cosmos_$name" cosmos_$name
  cp -r "$golden/cosmos_vae" cosmos_$name/vae
  cp -r "$golden/t5/v1_0/text_encoder" "$golden/t5/v1_0/tokenizer" cosmos_$name
done

printf '| vfm-generate | reported, MiB | measured, MiB | reported / measured |\n|---|---:|---:|---:|\n'
for size in 48x32 96x64 192x128 384x256; do
  generates "Cosmos, $size, 9 frames" --model cosmos_pipeline --steps 2 --size $size --frames 9
done
generates "Cosmos, 192x128, 33 frames" --model cosmos_pipeline --steps 2 --size 192x128 --frames 33
generates "Cosmos video to world, 192x128, 9 frames" --model cosmos_v2w --steps 2 --size 192x128 --frames 9
generates "quickstart, 64x64, 17 frames" --model dit --steps 2
generates "quickstart, 256x256, 33 frames" --model dit --steps 2 --size 256x256 --frames 33
generates "quickstart in bf16, 256x256, 33 frames" --model dit --steps 2 --size 256x256 --frames 33 --compute bf16
generates "quickstart without guidance, 512x512, 17 frames" --model dit --steps 2 --size 512x512 --guidance 0
generates "ST-DiT, 64x64, 17 frames" --model stdit --steps 2
generates "ST-DiT, 256x256, 33 frames" --model stdit --steps 2 --size 256x256 --frames 33
generates "MovieGen, 64x64, 17 frames" --model moviegen --steps 2
generates "MovieGen, 256x256, 33 frames" --model moviegen --steps 2 --size 256x256 --frames 33
generates "autoregressive, 64x64, 17 frames" --model autoregressive

printf '\n| vfm-train | reported, MiB | resident, MiB | ratio | without an idle one: reported | resident | ratio '
printf '| of tensors: reported | handed out | ratio |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n'
tiny=("$recipes/tiny.yaml" --synthetic)
trains "tiny, 2x8x8" "${tiny[@]}" 2x8x8
for recompute in none elementwise block; do
  trains "tiny, 4x16x16, recompute $recompute" "${tiny[@]}" 4x16x16 model.recompute=$recompute
  trains "tiny in bf16, 4x16x16, recompute $recompute" "${tiny[@]}" 4x16x16 model.recompute=$recompute model.compute=bf16
done
trains "tiny, 4x16x16, four packs a step" "${tiny[@]}" 4x16x16 data.packs=4
trains "tiny, 4x16x16, four packs one by one" "${tiny[@]}" 4x16x16 data.packs=4 data.micro_packs=1
trains "quickstart's latents" "$recipes/quickstart.yaml" --data latents
for recompute in none elementwise block; do
  trains "ST-DiT, 4x16x16, recompute $recompute" "${tiny[@]}" 4x16x16 model.type=stdit model.recompute=$recompute
  trains "MovieGen, 4x16x16, recompute $recompute" moviegen.yaml --synthetic 4x16x16 model.type=moviegen model.recompute=$recompute
  trains "autoregressive, recompute $recompute" decoder.yaml --data codes model.recompute=$recompute
done
for recompute in none block; do
  trains "LoRA of quickstart, recompute $recompute" "$recipes/quickstart.yaml" --data latents --init dit lora.rank=4 model.recompute=$recompute
  trains "LoRA of all matrices, recompute $recompute" "$recipes/quickstart.yaml" --data latents --init dit lora.rank=16 \
    'lora.targets=[to_q, to_k, to_v, to_out.0, proj, "2"]' model.recompute=$recompute
  trains "tokenizer, 9x32x32, recompute $recompute" "$recipes/tokenizer-tiny.yaml" --synthetic 9x32x32 model.recompute=$recompute
  trains "tokenizer, 17x64x64, recompute $recompute" "$recipes/tokenizer-tiny.yaml" --synthetic 17x64x64 data.tokens=384 \
    model.recompute=$recompute
done
