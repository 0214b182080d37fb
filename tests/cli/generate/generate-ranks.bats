#!/usr/bin/env bats
# vfm-generate on several ranks: prompts over ranks, and ranks that share a clip.
# SPDX-License-Identifier: Apache-2.0

load ../helpers
bats_require_minimum_version 1.5.0

setup_file() {
  draw_dataset 12
  vfm-pack --size 64 --frames 9 -o latents <shards.jsonl >latents.jsonl
  # With a few steps at a high rate its weights matter: a new model's last matrices are nearly zero.
  quick_recipe run latents train.steps=6 schedule.warmup=1 model.num_layers=2 model.num_attention_heads=4
}

setup() {
  setup_tools
  needs_mpi vfm-generate
  model=$BATS_FILE_TMPDIR/run
  fast=(--model "$model" --device cpu --steps 2 --guidance 3)
}

# on RANKS ARGUMENT...: vfm-generate on so many ranks.
on() { mpirun -np "$1" vfm-generate "${fast[@]}" "${@:2}"; }

# prompts: five lines, of which the third asks for what the model cannot make.
prompts() {
  printf '%s\n' 'a red circle' '{"prompt": "a blue square", "frames": 1}' '{"prompt": "x", "embedding": "none.npy"}' \
    'a red circle' '{"prompt": "a green bar", "name": "bar", "seed": 7, "label": "kept"}'
}

# difference ONE MANY: the greatest difference of the first latents of two folders, as a part of the largest number of ONE.
difference() {
  python3 - "$@" <<'PY'
import glob, json, struct, sys

def values(path):
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    name = next(n for n in header if n != "__metadata__" and header[n]["dtype"] == "F32")
    begin, end = header[name]["data_offsets"]
    return struct.unpack(f"<{(end - begin) // 4}f", data[8 + size + begin:8 + size + end])

one, many = (values(glob.glob(f"{folder}/*.safetensors")[0]) for folder in sys.argv[1:])
assert len(one) == len(many) > 0
print(max(abs(a - b) for a, b in zip(one, many)) / max(map(abs, one)))
PY
}

@test "prompts over ranks: files, records and errors of one rank, in its order" {
  fast=(--model "$model" --device cpu --guidance 3 --sampler lcm --sigmas 40,2)
  prompts | vfm-generate "${fast[@]}" -o one >one.jsonl || [ $? -eq 1 ]
  for ranks in 2 3; do
    status=0
    prompts | on "$ranks" -j1 -o many >many.jsonl 2>errors || status=$?
    cat errors
    [ "$status" -eq 1 ]
    diff <(sed 's/"one/"many/g' one.jsonl | records) <(records many.jsonl)
    tail -n 1 many.jsonl | jq -e '.kind == "end" and .status == 1'
    diff -r -x '*.json' -x errors.jsonl one many
    diff <(jq -S 'del(.path)' one/bar.json) <(jq -S 'del(.path)' many/bar.json)
    diff <(jq -c '[.input, .message]' one/errors.jsonl) <(jq -c '[.input, .message]' many/errors.jsonl)
    rm -r many
  done
}

# bats test_tags=night
@test "parts by several ranks, each with clips of its own or all with one: files and records of one rank without parts" {
  fast=(--model "$model" --device cpu --guidance 3 --sampler lcm --sigmas 40,2)
  prompts >prompts
  vfm-generate "${fast[@]}" -o one <prompts >one.jsonl || [ $? -eq 1 ]
  export VFM_LEASE_SECONDS=2
  # with RANKS OPTION...: in parts, joined in the folder many.
  with() {
    rm -rf many
    mpirun -np "$1" sh -c 'exec vfm-generate "$@" --part auto/3 -o many <prompts' sh "${fast[@]}" "${@:2}" >many.jsonl
    vfm-shard join many >joined.jsonl
    diff <(records many.jsonl | sort) <(records joined.jsonl | sort)
    [ -z "$(find many -name 'lease*' -o -name temporary -o -name '.*.tmp' -o -name '*.state*' -o -name failed.json)" ]
  }
  with 3 -j1
  diff <(sed 's/"one/"many/g' one.jsonl | records) <(records joined.jsonl)
  diff -r -x '*.json' -x errors.jsonl -x parts one many
  with 2 --parallel cfg=2
  [ "$(records joined.jsonl | jq -r .parallel | sort -u)" = cfg=2 ]
  # A pipe comes to rank 0 alone.
  run --separate-stderr mpirun -np 2 vfm-generate "${fast[@]}" --part auto/3 -o none <prompts
  [ "$status" -eq 2 ]
  [[ $stderr == *'--part reads the prompts more than once'* ]]
}

# bats test_tags=night
@test "a part of several ranks of which one is killed is not done, and the next command makes what is missing" {
  fast=(--model "$model" --device cpu --steps 60 --save-every 0)
  export VFM_LEASE_SECONDS=2
  seq -f 'a red circle %g' 2 >prompts
  vfm-generate "${fast[@]}" -o one <prompts >one.jsonl
  # shellcheck disable=SC2016 # of the shell of each rank
  mpirun -np 2 sh -c 'echo $$ >pid$OMPI_COMM_WORLD_RANK && exec vfm-generate "$@" --part auto/1 -j1 -o many <prompts' \
    sh "${fast[@]}" >killed.jsonl 2>killed.said 3>&- &
  await sh -c "find many -name '*.state.safetensors' | grep -q ."
  kill -KILL "$(<pid1)"
  wait $! && return 1
  [ ! -e many/parts/generate/00000/done.json ]
  vfm-generate "${fast[@]}" --part auto -o many <prompts >many.jsonl
  vfm-shard join many >joined.jsonl
  diff <(sed 's/"one/"many/g' one.jsonl | records) <(records joined.jsonl)
  diff -r -x '*.json' -x errors.jsonl -x parts one many
  [ -z "$(find many -name 'lease*' -o -name temporary -o -name '.*.tmp' -o -name '*.state*' -o -name failed.json)" ]
}

@test "a stream of several ranks has the bytes of one rank's" {
  prompts | sed '/"frames": 1/d; /none.npy/d' >lines
  vfm-generate "${fast[@]}" -o - <lines >one.y4m
  on 3 -j1 -o - <lines >many.y4m
  [ "$(head -c 9 one.y4m)" = YUV4MPEG2 ]
  cmp one.y4m many.y4m
}

# How far *--fp8 linear* in a ring may be from one rank: instructions for bf16 round the weights of attention, too, beside the
# largest score of each part.
of_ring() { grep -q avx512_bf16 /proc/cpuinfo && echo 0.04 || echo 0.02; }

# shared RANKS PARALLEL [OPTION...]: the latent of ranks that share it, in the folder many, twice with the same bytes.
shared() {
  for folder in many again; do
    on "$1" --parallel "$2" "${@:3}" --latents-only -o $folder 'a red circle' >$folder.jsonl </dev/null
  done
  diff -r -x '*.json' many again
  rm -r again
}

@test "ranks that share a clip: the latent of one rank but for rounding, and the same each time" {
  vfm-generate "${fast[@]}" --latents-only -o one 'a red circle' >one.jsonl
  while read -r ranks parallel name; do
    shared "$ranks" "$parallel"
    apart=$(difference one many)
    echo "$parallel: $apart"
    jq -en "$apart < 1e-5"
    [ "$(records many.jsonl | jq -r .parallel)" = "$name" ]
    rm -r many
  done < <(by_time <<'LAYOUTS'
2 cfg=2 cfg=2
night 2 cp=2,cp_kind=gather cp=2 gather
night 2 cp=2,cp_kind=ring cp=2 ring
night 2 tp=2 tp=2
night 4 cfg=2,cp=2 cfg=2 cp=2 all_to_all
4 cp=2,tp=2 cp=2 all_to_all tp=2
night 4 cp=4,cp_kind=all_to_all+ring cp=4 all_to_all+ring
LAYOUTS
  )
  at_night || return 0
  vfm-generate "${fast[@]}" --compute bf16 --latents-only -o low 'a red circle' >low.jsonl
  shared 4 cfg=2,tp=2 --compute bf16
  jq -en "$(difference low many) < 0.02"
  rm -r many
  # Fresh noise on the way is that of one rank.
  fast=(--model "$model" --device cpu --guidance 0 --sampler lcm --sigmas 40,2)
  vfm-generate "${fast[@]}" --latents-only -o few 'a red circle' >few.jsonl
  shared 4 cp=2,tp=2
  jq -en "$(difference few many) < 1e-5"
}

# bats test_tags=night
@test "shards of the weights change no byte; FP8 on ranks is that of one rank" {
  # A rank of cfg=2 has half of the rows, and products of other sizes may add up in another order. Where a last bit of that
  # decides a rounding to FP8, the latent is other: with AVX2 by 4e-4 of seed 0 and 9e-3 of seed 3, not of 1 and 2.
  fp8=(--fp8 linear --seed 2 --latents-only)
  vfm-generate "${fast[@]}" "${fp8[@]}" -o one 'a red circle' >one.jsonl
  while read -r ranks parallel most; do
    on "$ranks" --parallel "$parallel" "${fp8[@]}" -o many 'a red circle' >many.jsonl </dev/null
    on "$ranks" --parallel "$parallel,shard" "${fp8[@]}" -o shards 'a red circle' >shards.jsonl </dev/null
    diff -r -x '*.json' many shards
    diff <(records many.jsonl | jq -S 'del(.path)') <(records shards.jsonl | jq -S 'del(.path)')
    [ "$(records one.jsonl | jq .fp8_error)" != 0 ]
    apart=$(difference one many)
    echo "$parallel: $apart"
    jq -en "$apart <= $most"
    rm -r many shards
  done < <(by_time <<LAYOUTS
2 cfg=2 1e-5
night 2 cp=2,cp_kind=ring $(of_ring)
night 4 cp=4,cp_kind=all_to_all+ring $(of_ring)
4 cp=2,tp=2 0.02
LAYOUTS
  )
}

# bats test_tags=night
@test "attention in FP8 on ranks is that of one rank, whatever they exchange for it" {
  quick_recipe wide "$BATS_FILE_TMPDIR/latents" train.steps=6 schedule.warmup=1 model.num_layers=2 model.attention_head_dim=64
  fast=(--model wide --device cpu --steps 2 --guidance 3 --fp8 all --tolerance 0.5 --latents-only)
  vfm-generate "${fast[@]}" -o one 'a red circle' >one.jsonl
  # A ring multiplies in bf16 what it received in FP8.
  while read -r ranks parallel most; do
    on "$ranks" --parallel "$parallel" -o many 'a red circle' >many.jsonl </dev/null
    records many.jsonl | jq -e '.fp8 == "all" and .fp8_error > 0'
    apart=$(difference one many)
    echo "$parallel: $apart"
    jq -en "$apart <= $most"
    rm -r many
  done < <(by_time <<'LAYOUTS'
night 2 cp=2,cp_kind=gather 0.02
2 cp=2,cp_kind=ring 0.06
night 4 cp=4,cp_kind=all_to_all+ring 0.06
4 cp=2,tp=2 0.02
LAYOUTS
  )
}

# bats test_tags=night
@test "ranks that share frames and pixels make the clip of one rank, and in FP8 that of its FP8" {
  quick_recipe frames "$BATS_FILE_TMPDIR/latents" model.type=stdit train.steps=6 schedule.warmup=1 model.attention_head_dim=64
  while read -r ranks parallel fp8 most name; do
    fast=(--model frames --device cpu --steps 2 --guidance 3 --latents-only)
    [ "$fp8" = off ] || fast+=(--fp8 "$fp8" --tolerance 0.5)
    [ -e "one-$fp8" ] || vfm-generate "${fast[@]}" -o "one-$fp8" 'a red circle' >"one-$fp8.jsonl"
    on "$ranks" --parallel "$parallel" -o many 'a red circle' >many.jsonl </dev/null
    apart=$(difference "one-$fp8" many)
    echo "$parallel, FP8 $fp8: $apart"
    jq -en "$apart <= $most"
    [ "$(records many.jsonl | jq -r .parallel)" = "$name" ]
    rm -r many
  done < <(by_time <<LAYOUTS
2 cp=2,hybrid,cp_kind=gather off 1e-5 cp=2 gather hybrid
night 2 cp=2,hybrid,cp_kind=ring linear $(of_ring) cp=2 ring hybrid
4 cp=2,tp=2,hybrid,cp_kind=gather linear 0.02 cp=2 gather hybrid tp=2
night 2 cp=2,hybrid,cp_kind=gather all 0.02 cp=2 gather hybrid
4 cfg=2,cp=2,hybrid,cp_kind=ring all 0.06 cfg=2 cp=2 ring hybrid
LAYOUTS
  )
  jq -en "$(difference one-off one-all) > 1e-3"
  # It is predicted, in FP8 too, where the same travels: faster than tokens for heads in all three attentions, and 'auto' knows it.
  predicted() {
    vfm-generate cost --model frames --guidance 3 --steps 2 -q --gpu h100 --compute bf16 --size 1024x1024 --frames 129 "$@"
  }
  predicted --fp8 linear --parallel cp=2 >cp.json
  predicted --fp8 linear --parallel cp=2,hybrid >hybrid.json
  predicted --parallel cp=2,hybrid >bf16.json
  predicted --fp8 linear --parallel auto=2 >auto.json
  jq -es '.[1].parallel == "cp=2 all_to_all hybrid" and .[1].predicted.seconds < .[0].predicted.seconds and
    .[3].predicted.seconds <= .[1].predicted.seconds and
    ([.[1].predicted.lines[].name] | index("scales of FP8") != null) and
    ([.[] | .predicted.lines[] | select(.name == "cp") | .bytes] | .[1] < .[0] and .[1] == .[2])' \
    cp.json hybrid.json bf16.json auto.json
}

# bats test_tags=night
@test "attention in FP8 is predicted to be faster than in bf16 on GPUs with cuDNN; in a ring where links are slow" {
  quick_recipe wide "$BATS_FILE_TMPDIR/latents" model.attention_head_dim=64
  echo '{"like": "h100", "inside": {"bandwidth": 1e9, "latency": 1e-6}}' >slow.json
  seconds() {
    vfm-generate cost --model wide --guidance 3 --steps 2 --size 1024x1024 --frames 129 --fp8 "$1" --gpu "$2" --parallel "$3" \
      2>errors | jq .predicted.seconds
    if grep 'stays in bf16' errors; then return 1; fi
  }
  while read -r gpu parallel; do
    linear=$(seconds linear "$gpu" "$parallel") all=$(seconds all "$gpu" "$parallel")
    echo "$gpu, $parallel: $linear, $all"
    jq -en "$all < $linear"
  done <<'LAYOUTS'
h100 cfg=2
h100 cp=2,cp_kind=gather
h100 cp=2,cp_kind=all_to_all
./slow.json cp=2,cp_kind=ring
LAYOUTS
}

# bats test_tags=night
@test "weights in 8 bits on ranks are those of one rank; shards change no byte" {
  low=(--quantize int8 --latents-only)
  vfm-generate "${fast[@]}" "${low[@]}" -o one 'a red circle' >one.jsonl
  vfm-generate "${fast[@]}" --latents-only -o whole 'a red circle' >whole.jsonl
  jq -en "$(difference whole one) > 1e-4"
  while read -r ranks parallel; do
    on "$ranks" --parallel "$parallel" "${low[@]}" -o many 'a red circle' >many.jsonl </dev/null
    on "$ranks" --parallel "$parallel,shard" "${low[@]}" -o shards 'a red circle' >shards.jsonl </dev/null
    diff -r -x '*.json' many shards
    apart=$(difference one many)
    echo "$parallel: $apart"
    jq -en "$apart < 1e-5"
    jq -es '(.[0].quantize_error - .[1].quantize_error) | fabs < 1e-5' <(records one.jsonl many.jsonl)
    rm -r many shards
  done < <(by_time <<'LAYOUTS'
night 2 cfg=2
2 tp=2
2 cp=2
LAYOUTS
  )
  # Prompts over ranks: all of them round, and one of them measures.
  prompts | vfm-generate "${fast[@]}" "${low[@]}" -o one >one.jsonl || [ $? -eq 1 ]
  prompts | on 2 -j1 "${low[@]}" -o many >many.jsonl || [ $? -eq 1 ]
  diff <(sed 's/"one/"many/g' one.jsonl | records) <(records many.jsonl)
}

# bats test_tags=night
@test "the layout that is chosen is told, and is in name and record as if it were asked for" {
  on 2 --parallel auto -v --latents-only -o many 'a red circle' >many.jsonl 2>errors
  cat errors
  [ "$(grep -c -- '--parallel auto: .* is predicted to be the fastest of [0-9]* layouts of 2 ranks' errors)" -eq 1 ]
  name=$(records many.jsonl | jq -r .parallel)
  option=$(sed -E 's/(cp=[0-9]+) ([a-z_+]+)/\1,cp_kind=\2/; s/ /,/g' <<<"$name")
  on 2 --parallel "$option" --latents-only -o again 'a red circle' >again.jsonl
  diff -r -x '*.json' many again
  predicted() {
    vfm-generate cost --model "$model" --guidance 3 --steps 2 -q --gpu h100 --compute bf16 --size 1024x1024 --frames 129 "$@"
  }
  predicted --parallel auto=8 >auto.json
  predicted --parallel cfg=2 >cfg.json
  predicted >one.json
  # As fast as any; and two halves take more than half.
  jq -es '.[0].predicted.seconds <= .[1].predicted.seconds and .[0].ranks >= 2 and
    .[1].predicted.seconds < .[2].predicted.seconds and .[1].predicted.seconds > .[2].predicted.seconds / 2 and
    ([.[1].predicted.lines[].name] | index("output") != null)' auto.json cfg.json one.json
}

# bats test_tags=night
@test "prompts are dealt to ranks that share clips; a record asks for the same again, on the same layout" {
  prompts | on 4 --parallel cfg=2 -o many >many.jsonl || [ $? -eq 1 ]
  [ "$(records many.jsonl | jq -r .prompt | paste -sd,)" = 'a red circle,a blue square,a red circle,a green bar' ]
  [ "$(records many.jsonl | jq -r .parallel | sort -u)" = cfg=2 ]
  [ "$(jq -r .input many/errors.jsonl)" = 'line 3 of standard input' ]
  records many.jsonl | on 2 --parallel cfg=2 -o again >again.jsonl
  diff -r -x '*.json' -x errors.jsonl many again
  run --separate-stderr bash -c 'vfm-generate "$@" -o other < <(head -n 2 many.jsonl | tail -n 1)' - "${fast[@]}"
  echo "$stderr"
  [ "$status" -eq 1 ]
  [[ $(<other/errors.jsonl) == *"by ranks that share a clip as 'cfg=2'"*"give the same --parallel"* ]]
}

@test "frames of a shared clip are those of one rank, within one level" {
  vfm-generate "${fast[@]}" --encoder ffv1 -o one 'a red circle' >one.jsonl
  on 2 --parallel cfg=2 --encoder ffv1 -o many 'a red circle' >many.jsonl
  for folder in one many; do
    quiet_ffmpeg -i $folder/*.mp4 -f rawvideo -pix_fmt rgb24 $folder.rgb
  done
  python3 -c '
one, many = (open(name, "rb").read() for name in ("one.rgb", "many.rgb"))
assert len(one) == len(many) == 9 * 64 * 64 * 3
assert max(abs(a - b) for a, b in zip(one, many)) <= 1'
}

# bats test_tags=night
@test "ranks that share a clip decode its frames together, to the bytes of one rank" {
  cp -r "$VFM_ROOT/tests/golden/cosmos_vae" vae
  (cd "$BATS_FILE_TMPDIR" && find clips -name '*.tar') | sed "s|^|$BATS_FILE_TMPDIR/|" |
    vfm-shard --keep-duplicates -o dataset | vfm-pack --tokenizer vae --device cpu --size 32 --frames 17 -o latents >latents.jsonl
  quick_recipe run latents train.steps=2 --device cpu
  known=(--model run --device cpu --steps 2 --guidance 3)
  fast=("${known[@]}" --encoder ffv1)
  on 3 --parallel cp=3,cp_kind=gather -o many 'a red circle' >many.jsonl
  on 3 --parallel cp=3,cp_kind=gather --latents-only -o latent 'a red circle' >latent.jsonl
  vfm-generate decode --device cpu --encoder ffv1 -o one latent/*.latents.json >one.jsonl
  cmp one/*.mp4 many/*.mp4
  # Five latent frames of which one rank takes the first, another the second, and so on in turn.
  on 2 --parallel cfg=2 -o - 'a red circle' >stream.y4m
  [ "$(grep -ac FRAME stream.y4m)" -eq 17 ]
  # Of a still, and of a clip of which one latent frame is too large for a rank, each has a band of rows.
  tell() { vfm-generate cost "${known[@]}" -q "$@"; }
  tell --frames 1 --parallel cfg=2 | jq -e '.decoding == {latent_frames: 1, chunks: 1, bands: 2}'
  least() { tell --tokenizer-memory 1KiB "$@" 2>&1 >/dev/null | sed -n 's/.*the tokenizer needs \([0-9.]*\) KiB at least.*/\1/p'; }
  bands=$(least --parallel cfg=2) alone=$(least)
  awk -v bands="$bands" -v alone="$alone" 'BEGIN { exit !(bands > 0 && bands < 0.8 * alone) }'
  enough=$(awk -v kib="$bands" 'BEGIN { printf "%d", (kib + 0.1) * 1024 }')
  tell --parallel cfg=2 --tokenizer-memory "$enough" |
    jq -e --argjson most "$enough" '.decoding.bands == 2 and .tokenizer.activation_bytes <= $most'
  for size in '--frames 1' '--frames 17'; do
    rm -rf one many two latent
    on 2 --parallel cfg=2 $size --tokenizer-memory "$enough" -o many 'a red circle' >many.jsonl
    on 2 --parallel cfg=2 $size --latents-only -o latent 'a red circle' >latent.jsonl
    vfm-generate decode --device cpu --encoder ffv1 -o one latent/*.latents.json >one.jsonl
    cmp one/*.mp4 many/*.mp4
    # One latent for two ranks, which have less than it takes alone.
    mpirun -np 2 vfm-generate decode --device cpu --encoder ffv1 --tokenizer-memory "$enough" -o two latent/*.latents.json \
      >two.jsonl
    cmp one/*.mp4 two/*.mp4
    diff <(records one.jsonl | sed 's|"one/|"two/|') <(records two.jsonl)
  done
}

# bats test_tags=night
@test "what ranks cannot share is refused before any work, once" {
  refused() {
    run --separate-stderr on "$1" "${@:3}" -o out 'a red circle'
    echo "$stderr"
    [ "$status" -eq 2 ] && [ ! -e out ]
    [[ $stderr == *"$2"* ]]
  }
  refused 3 '--parallel cfg=2 shares a clip among 2 ranks: start a multiple of that, not 3' --parallel cfg=2
  [ "$(grep -c '^vfm-generate: ' <<<"$stderr")" -eq 1 ]
  refused 3 '4 attention heads are not shared by 3 ranks' --parallel tp=3
  [ "$(grep -c '^vfm-generate: ' <<<"$stderr")" -eq 1 ]
  refused 2 '--parallel shard needs ranks that share a clip' --parallel shard
  # Each is a start of ranks.
  at_night || return 0
  refused 2 '--parallel auto chooses the layout' --parallel auto=2,tp=2
  refused 2 '--parallel auto=4: start a multiple of that number of ranks, not 2' --parallel auto=4
  refused 1 'cfg must be 1 or 2' --parallel cfg=3
  refused 1 "--parallel has pp, cfg, cp, tp, cp_kind, hybrid, shard and auto, and not 'dp=2'" --parallel dp=2
  refused 1 '--parallel hybrid needs cp' --parallel hybrid
  refused 2 '--parallel pp is for autoregressive models' --parallel pp=2
  refused 2 'attention in frames and pixels, which a dit does not have' --parallel cp=2,hybrid
  [ "$(grep -c '^vfm-generate: ' <<<"$stderr")" -eq 1 ]
  run --separate-stderr mpirun -np 2 vfm-generate decode -o - x.safetensors
  echo "$stderr"
  [ "$status" -eq 2 ]
  [ "$(grep -c 'a stream (-o -) is written by one process' <<<"$stderr")" -eq 1 ]
}

# bats test_tags=night
@test "what all ranks refuse one says: options, files that they name, the model" {
  refused() {
    run --separate-stderr mpirun -np 4 vfm-generate "${@:2}" 'a red circle'
    echo "$stderr"
    [ "$status" -eq 2 ] && [ ! -e out ]
    [ "$(grep -c '^vfm-generate: ' <<<"$stderr")" -eq 1 ]
    [[ $stderr == *"$1"* && $stderr != *MPI_ABORT* && $stderr != *"on host"* ]]
  }
  refused 'was not expected: --frobnicate' --model "$model" --frobnicate -o out
  refused '--output is required' --model "$model"
  refused "unknown encoder 'none'" --model "$model" --encoder none -o out
  refused 'cannot open' --model "$model" --negative @none.txt -o out
  refused 'a list starts a worker for each GPU by itself' --model "$model" --device cpu,cpu -o out
  refused "no such model folder: 'none'" --model none -o out
  # Each is a start of ranks.
  at_night || return 0
  refused 'is not a number from 1 to' --model "$model" -j 0 -o out
  VFM_SHARE=none/slots refused 'for VFM_SHARE' --model "$model" -o out
  VFM_SLOTS=x refused "VFM_SLOTS is 'x'" --model "$model" -o out
}

@test "a dry run tells what one of the ranks holds and computes" {
  tell() { vfm-generate cost "${fast[@]}" -q "$@"; }
  tell >one.json
  tell --parallel tp=2 >tp.json
  tell --parallel cfg=2 >cfg.json
  tell --parallel cp=4 >cp.json
  jq -es '.[1].parallel == "tp=2" and .[1].network.parameters < 0.75 * .[0].network.parameters and
    .[1].network.flops < 0.6 * .[0].network.flops and .[2].network.parameters == .[0].network.parameters and
    .[2].network.flops <= .[0].network.flops / 2 and .[3].parallel == "cp=4 all_to_all" and
    .[3].network.flops < 0.6 * .[0].network.flops and .[3].network.activation_bytes < .[0].network.activation_bytes' \
    one.json tp.json cfg.json cp.json
  tell --parallel cfg=2,cp=2,shard >shard.json
  tell --parallel cfg=2,cp=2 >whole.json
  jq -es '.[0].shard and (.[1].shard | not) and .[0].network.parameters < 0.6 * .[1].network.parameters and
    .[0].network.weight_bytes < 0.6 * .[1].network.weight_bytes and .[0].network.flops == .[1].network.flops' shard.json whole.json
  for wrong in tp=3 auto; do
    run vfm-generate cost "${fast[@]}" --parallel $wrong
    [ "$status" -eq 2 ]
  done
}

# bats test_tags=night
@test "latents are dealt to ranks that decode: files, records and errors of one rank, in its order" {
  prompts | vfm-generate "${fast[@]}" --latents-only -o latents >latents.jsonl || [ $? -eq 1 ]
  { records latents.jsonl; echo none.latents.json; records latents.jsonl | head -n 1; } >lines
  for ranks in 1 3; do
    status=0
    mpirun -np $ranks vfm-generate decode --device cpu -j1 -o clips <lines >$ranks.jsonl || status=$?
    [ "$status" -eq 1 ]
    mv clips clips$ranks
  done
  [ "$(records 3.jsonl | wc -l)" -eq 4 ]
  diff <(records 1.jsonl) <(records 3.jsonl)
  diff -r -x errors.jsonl clips1 clips3
  diff <(jq -c '[.input, .message]' clips1/errors.jsonl) <(jq -c '[.input, .message]' clips3/errors.jsonl)
  [ "$(wc -l <clips3/errors.jsonl)" -eq 2 ]
}

@test "damage of the model is found by the rank that reads it, and said once" {
  cp -r "$model" run
  printf x | dd of="$(ls run/checkpoints/*/state/ema.safetensors)" bs=1 seek=40000 conv=notrunc 2>/dev/null
  run --separate-stderr mpirun -np 3 vfm-generate --model run --device cpu -o out 'a red circle'
  echo "$stderr"
  [ "$status" -eq 2 ] && [ ! -e out ]
  [ "$(grep -c '^vfm-generate: ' <<<"$stderr")" -eq 1 ]
  [[ $stderr == *"is damaged: 'state/ema.safetensors' is not as it was written (rank "* ]]
}

@test "a signal, and the death of one rank, end all of them" {
  for how in TERM KILL; do
    mpirun -np 2 vfm-generate --model "$model" --device cpu --parallel cfg=2 --steps 10000 -o "$how" 'a red circle' \
      >"$how.jsonl" 2>"$how.err" 3>&- &
    launcher=$!
    until [ -e "$how" ] && pids=$(pgrep -P "$launcher" vfm-generate) && [ "$(wc -l <<<"$pids")" -eq 2 ]; do
      kill -0 "$launcher"
      sleep 0.1
    done
    if [ $how = TERM ]; then kill -TERM "$launcher"; else kill -KILL "$(tail -n 1 <<<"$pids")"; fi
    status=0
    wait "$launcher" || status=$?
    [ "$status" -ne 0 ]
    for pid in $pids; do ! kill -0 "$pid" 2>/dev/null; done
    [ ! -e "$how"/*.mp4 ]
  done
}
