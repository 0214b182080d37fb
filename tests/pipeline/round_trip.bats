#!/usr/bin/env bats
# A checkpoint of vfm-train gives in diffusers what it gives in vfm: scripts/golden/round_trip.py recorded
# diffusers' values, and here vfm's are compared with them.
# SPDX-License-Identifier: Apache-2.0

# bats file_tags=night

load ../cli/helpers

setup_file() {
  export PATH="$VFM_BIN:$PATH"
  "$BATS_TEST_DIRNAME/round-trip" "$BATS_FILE_TMPDIR"
}

setup() {
  cd "$BATS_FILE_TMPDIR" || return
}

# compare NAME TYPE OFFSET <BYTES: the values of that type from OFFSET on, or before the end if it is
# negative, against those that diffusers gave. Another processor may round the few training steps otherwise: of the
# tokenizer, whose steps are large, AVX2 and AVX-512 differ by 2e-3 of the largest value.
compare() {
  python3 -c '
import json, struct, sys
name, kind, offset = sys.argv[2], sys.argv[3], int(sys.argv[4])
golden = json.load(open(sys.argv[1]))
for part in name.split("."):
    golden = golden[part]
data = sys.stdin.buffer.read()[offset:]
values = [v for (v,) in struct.iter_unpack("<" + kind, data)]
ours = values[::golden["stride"]][:64]
difference = max(abs(a - b) for a, b in zip(ours, golden["values"], strict=True))
if kind == "B":  # levels of 255
    assert golden["difference"] <= 0.51 and difference <= 1.5, difference
else:
    difference /= max(abs(v) for v in golden["values"])
    least, most = (1e-5, 1.5e-3) if kind == "f" else (1e-3, 1e-2)
    assert golden["difference"] < least and difference < most, difference
print(name, difference)' "$BATS_TEST_DIRNAME/../golden/round_trip.json" "$@"
}

# of_latent FILE: its values, f32.
of_latent() {
  python3 -c '
import json, struct, sys
data = open(sys.argv[1], "rb").read()
size = struct.unpack("<Q", data[:8])[0]
begin, end = json.loads(data[8:8 + size])["latent"]["data_offsets"]
sys.stdout.buffer.write(data[8 + size + begin:8 + size + end])' "$1"
}

@test "the round trip: vfm-generate gives what diffusers gave with the same checkpoint, and with its adapters" {
  for model in run adapters; do
    of_latent "latents-$model"/*.latents.safetensors | compare "$model" f 0
  done
}

@test "the round trip: vfm-pack and vfm-generate give what diffusers gave with the same tokenizer" {
  tar xOf tokens/*/clip.tar clip.latent.npy | compare tokenizer.latent e -$((2 * 5 * 3 * 8 * 8))
  compare tokenizer.frames B 0 <decoded.rgb
}

@test "what export writes is what diffusers and peft open, where they are installed" {
  local python=${TORCH_PYTHON:-python3} golden=$BATS_TEST_DIRNAME/../golden
  "$python" -c 'import diffusers, peft, torch, torchvision, transformers' 2>/dev/null || skip "no diffusers, peft, torch, torchvision and transformers"
  cp -r "$golden/cosmos_pipeline" cosmos
  cp -r "$golden/cosmos_vae" cosmos/vae
  cp -r "$golden/t5/v1_0/text_encoder" "$golden/t5/v1_0/tokenizer" cosmos
  find raw -name '*.mp4' | sort | head -n 1 | vfm-clip --min-length 1s -o pixels | vfm-caption |
    vfm-embed --text cosmos --device cpu | vfm-shard -o texts |
    vfm-pack --size 39 --frames 5 --tokenizer cosmos --device cpu -o tiny >tiny.jsonl
  printf 'optimizer: {lr: 0.001}\nschedule: {warmup: 1}\nvalidation: {every: 0}\ntrain: {steps: 4}\n' >tune.yaml
  vfm-train tune.yaml --init cosmos --data tiny -o tuned --device cpu >tuned.jsonl
  cp cosmos/noise.npy tuned/
  (cd "$BATS_TEST_DIRNAME/../../scripts/golden" && "$python" export.py "$BATS_FILE_TMPDIR" "$BATS_FILE_TMPDIR/tuned")
}
