# Models and files that the tests of vfm-generate and its verbs use.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash

setup_file() { make_models; }

# What the tests call these models, and a quick command.
setup() {
  setup_tools
  model=$BATS_FILE_TMPDIR/run
  wide=$BATS_FILE_TMPDIR/wide
  fast=(--model "$model" --steps 2)
}

# make_models: the runs "run" and "wide" in the current folder, and the latents that they were trained on.
make_models() {
  local plain
  draw_dataset 12
  vfm-pack --size 64 --frames 17 -o latents <shards.jsonl >latents.jsonl
  # Sampled as a recipe without the section `sampling` has it.
  plain=(sampling.steps=16 sampling.guidance=1 sampling.sigma_min=0.02)
  quick_recipe run latents "${plain[@]}" train.steps=3
  # A model that FP8 takes, with weights that matter: a new one's last matrices are nearly zero.
  quick_recipe wide latents "${plain[@]}" train.steps=8 schedule.warmup=1 model.num_attention_heads=1 model.attention_head_dim=64
}

# make_npy FILE SHAPE SEED: floats that depend on SEED.
make_npy() {
  python3 - "$@" <<'PY'
import struct, sys
shape, seed, n = tuple(map(int, sys.argv[2].split(","))), int(sys.argv[3]), 1
for size in shape:
    n *= size
header = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % (shape,)
header += " " * (63 - (10 + len(header)) % 64) + "\n"
with open(sys.argv[1], "wb") as f:
    f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
    f.write(struct.pack("<%df" % n, *[(((i + 131 * seed) * 7919) % 1001) / 300 - 1.6 for i in range(n)]))
PY
}
