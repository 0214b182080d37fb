#!/usr/bin/env bats
# A checkpoint of vfm-train gives in diffusers what it gives in vfm-generate: scripts/golden/way_back.py
# recorded diffusers' values, and here vfm's are compared with them.
# SPDX-License-Identifier: Apache-2.0

setup() {
  load ../cli/helpers
  setup_tools
}

@test "the way back: vfm-generate gives what diffusers gave with the same checkpoint, and with its adapters" {
  "$BATS_TEST_DIRNAME/way-back" .
  golden=$BATS_TEST_DIRNAME/../golden/way_back.json
  # What is recorded: the run, and its adapters.
  for model in $(jq -r 'to_entries[] | select(.value | type == "object") | .key' "$golden"); do
    python3 - "$golden" "$model" "latents-$model"/*.latents.safetensors <<'PY'
import json, struct, sys
golden = json.load(open(sys.argv[1]))[sys.argv[2]]
data = open(sys.argv[3], "rb").read()
size = struct.unpack("<Q", data[:8])[0]
begin, end = json.loads(data[8:8 + size])["latent"]["data_offsets"]
values = struct.unpack(f"<{(end - begin) // 4}f", data[8 + size + begin:8 + size + end])
ours = values[::golden["stride"]][:64]
largest = max(abs(v) for v in golden["values"])
difference = max(abs(a - b) for a, b in zip(ours, golden["values"], strict=True)) / largest
print("difference", difference)
# Another processor may round the few training steps otherwise.
assert difference < 1e-3
assert golden["difference"] < 1e-5
PY
  done
}
