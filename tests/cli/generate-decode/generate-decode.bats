#!/usr/bin/env bats
# vfm-generate decode: latents into clips.
# SPDX-License-Identifier: Apache-2.0

load ../helpers
load ../generate/generate_models
bats_require_minimum_version 1.5.0

@test "in two stages, through a pipe: the bytes and the address of one" {
  vfm-generate "${fast[@]}" -o one 'a red circle' '{"prompt' >one.jsonl
  vfm-generate "${fast[@]}" --latents-only -o latents 'a red circle' '{"prompt' | tee latents.jsonl |
    vfm-generate decode -o two >two.jsonl
  jq -e -s 'length == 2 and all(.kind == "latents" and (.path | endswith(".latents.safetensors")))' <(records latents.jsonl)
  cmp <(jq -c '[.xxh3, .address, .prompt, .bytes, .name]' <(records one.jsonl)) <(jq -c '[.xxh3, .address, .prompt, .bytes, .name]' <(records two.jsonl))
  [ -f two/contact-sheet.png ]
  vfm-generate decode -o three latents/*.latents.json >three.jsonl
  cmp <(jq -c '[.xxh3, .name]' <(records one.jsonl)) <(jq -c '[.xxh3, .name]' <(records three.jsonl))
  # Run again, both keep what is there; the files alone do too, and a stream has the same frames.
  find latents two -type f -exec stat -c '%n %Y %i' {} + >stamps
  vfm-generate "${fast[@]}" --latents-only -o latents 'a red circle' '{"prompt' >again.jsonl
  cmp latents.jsonl again.jsonl
  vfm-generate decode -o two $(jq -r .path <(records latents.jsonl)) >/dev/null
  cmp stamps <(find latents two -type f -exec stat -c '%n %Y %i' {} +)
  vfm-generate "${fast[@]}" -o - 'a red circle' '{"prompt' | sha256sum >one.sum
  vfm-generate decode -o - <latents.jsonl | sha256sum | cmp one.sum
}

@test "in two stages: a line's own encoder and quality; another model is refused" {
  line='{"prompt":"a red circle","encoder":"ffv1","quality":30}'
  vfm-generate "${fast[@]}" -o one <<<"$line" >one.jsonl
  vfm-generate "${fast[@]}" --latents-only -o latents <<<"$line" >latents.jsonl
  vfm-generate decode -o two <latents.jsonl >two.jsonl
  cmp <(jq -c '[.xxh3, .address, .encoder, .quality]' <(records one.jsonl)) <(jq -c '[.xxh3, .address, .encoder, .quality]' <(records two.jsonl))
  run vfm-generate decode --model "$wide" -o three <latents.jsonl
  [ "$status" -eq 1 ]
  grep -q 'the latents were made by another model' three/errors.jsonl
  run --separate-stderr vfm-generate decode --model nowhere -o four <latents.jsonl
  [ "$status" -eq 2 ]
  [ ! -e four/errors.jsonl ]
  # The model of the records has moved.
  sed 's/"model":"[^"]*"/"model":"gone"/' latents.jsonl >moved.jsonl
  run --separate-stderr vfm-generate decode -o five <moved.jsonl
  [ "$status" -eq 1 ]
  echo "$stderr"
  [[ "$stderr" == *"no such model folder: 'gone'; if it has moved, name it with --model"*"no clip was made: all latents failed" ]]
  vfm-generate decode --model "$model" -o five <moved.jsonl >five.jsonl
  cmp <(jq .xxh3 <(records one.jsonl)) <(jq .xxh3 <(records five.jsonl))
}

@test "what is not latents, or was changed, is recorded; the rest is made" {
  vfm-generate "${fast[@]}" --latents-only -o latents 'a red circle' >latents.jsonl
  cp "$(jq -r .path <(records latents.jsonl))" list.latents.safetensors
  echo '[]' >list.latents.json
  { echo list.latents.safetensors; echo nowhere.latents.safetensors; echo '{"kind":'; jq -c '.seed = 5' <(records latents.jsonl)
    jq -c '.path = "none.latents.safetensors"' <(records latents.jsonl); echo video.mp4; cat latents.jsonl; } >records
  run --separate-stderr vfm-generate decode -o out <records
  only_records
  [ "$status" -eq 1 ]
  [ "${#lines[@]}" -eq 1 ]
  [ "$(jq -s length out/errors.jsonl)" -eq 6 ]
  grep -q 'the record was changed' out/errors.jsonl
  grep -q "give files of vfm-generate --latents-only" out/errors.jsonl
}

# elsewhere NAME: a record of latents, its numbers as they are, with another name and file.
elsewhere() { records | sed -E "s/\"(name|path)\":\"[^\"]*\"/\"\1\":\"$1\"/g; s/(\"path\":\"$1)/\1.latents.safetensors/"; }

@test "latents that hold no such clip, or are no numbers in the end, are left out of a stream too" {
  vfm-generate "${fast[@]}" --latents-only -o latents 'a red circle' >latents.jsonl
  # The same with fewer frames; and with numbers that overflow in the tokenizer.
  python3 - "$(jq -r .path <(records latents.jsonl))" <<'PY'
import json, struct, sys
data = open(sys.argv[1], "rb").read()
size = struct.unpack("<Q", data[:8])[0]
begin, end = json.loads(data[8:8 + size])["address"]["data_offsets"]
address = data[8 + size + begin:8 + size + end]
def write(name, shape, value):
    n = 4 * shape[0] * shape[1] * shape[2] * shape[3]
    header = json.dumps({"latent": {"dtype": "F32", "shape": shape, "data_offsets": [0, n]},
                         "address": {"dtype": "U8", "shape": [len(address)], "data_offsets": [n, n + len(address)]}})
    header += " " * (-len(header) % 8)
    with open(name + ".latents.safetensors", "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header.encode() + struct.pack("<f", value) * (n // 4) + address)
write("short", [24, 2, 8, 8], 0)
write("overflow", [24, 3, 8, 8], 3e38)
PY
  { for bad in short overflow; do elsewhere $bad <latents.jsonl; done
    cat latents.jsonl; } >records
  vfm-generate decode -o - <latents.jsonl >good.y4m
  run bash -c 'vfm-generate decode -o - <records >some.y4m'
  [ "$status" -eq 1 ]
  echo "$output"
  [ "${#lines[@]}" -eq 2 ]
  [[ "${lines[0]}" == *"a latent of 24 x 2 x 8 x 8 holds no clip of 17 frames of 64x64"* ]]
  [[ "${lines[1]}" == *"the tokenizer 'builtin:wavelet' makes values that are not finite"* ]]
  cmp good.y4m some.y4m
  run vfm-generate decode -o out <records
  [ "$status" -eq 1 ]
  [ "$(jq -s length out/errors.jsonl)" -eq 2 ]
  [ -f "out/$(jq -r .name <(records latents.jsonl)).mp4" ]
}

# bats test_tags=night
@test "what memory does not suffice for is recorded, and the next clip is made" {
  vfm-generate "${fast[@]}" --latents-only -o latents 'a red circle' >latents.jsonl
  # Files of 512 MiB, nearly all of it a hole.
  python3 - "$(jq -r .address <(records latents.jsonl))" <<'PY'
import json, struct, sys
n = 1 << 29
header = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }" % (n // 4)
header += " " * (63 - (10 + len(header)) % 64) + "\n"
with open("large.npy", "wb") as f:
    f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
    f.truncate(10 + len(header) + n)
address = sys.argv[1].encode()
header = json.dumps({"address": {"dtype": "U8", "shape": [len(address)], "data_offsets": [0, len(address)]},
                     "latent": {"dtype": "F32", "shape": [32, 16, 512, 512],
                                "data_offsets": [len(address), len(address) + n]}})
header += " " * (-len(header) % 8)
with open("large.latents.safetensors", "wb") as f:
    f.write(struct.pack("<Q", len(header)) + header.encode() + address)
    f.truncate(8 + len(header) + len(address) + n)
PY
  small() { (ulimit -v 1100000 && OMP_NUM_THREADS=1 timeout 60 vfm-generate "$@" -j1); }
  printf '%s\n' '{"prompt":"a red circle","noise":"large.npy"}' 'a red circle' >lines
  run --separate-stderr small "${fast[@]}" -o out - <lines
  only_records
  [ "$status" -eq 1 ]
  [ "${#lines[@]}" -eq 1 ]
  grep -q "line 1 of standard input.*too large for this machine's memory" out/errors.jsonl
  { elsewhere large <latents.jsonl; cat latents.jsonl; } >records
  run --separate-stderr small decode -o two - <records
  only_records
  [ "$status" -eq 1 ]
  [ "${#lines[@]}" -eq 1 ]
  cat two/errors.jsonl
  grep -q "line 1 of standard input.*too large for this machine's memory" two/errors.jsonl
}
