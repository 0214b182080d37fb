#!/usr/bin/env bats
# Names, captions and fields that would be markup in a page, orders to a terminal, or lines of their own: each page shows
# them as text, each message stays one line, each record one record.
# SPDX-License-Identifier: Apache-2.0
load helpers
bats_require_minimum_version 1.5.0

# Names of files. A folder "x<" makes the first one hold an end tag.
names=(
  'x</script><script>alert(1)<!--.mp4'
  '" onmouseover="alert(1)" x='\''y'\''.mp4'
  '&lt;b&gt;&#60;i&#62; {{7*7}} %s%n.mp4'
  $'\e]0;owned\a\e[2J\e[8m\x7f.mp4'
  $'\xc2\x9b2J\xc2\x9d0;owned\xc2\x9c.mp4'
  $'\xe2\x80\xaegpj.\xe2\x81\xa6exe.mp4'
  $'a\nvfm-clip: all is well\r.mp4'
  $'\xe2\x80\x8f\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d 12\xd8\x9c.mp4'
)
# Captions.
captions=(
  '</p></script><script>alert(1)</script><img src=x onerror=alert(1)>'
  '"><svg onload=alert(1)> '\'' onfocus='\''alert(1)'
  $'\e[31mred\xc2\x9b0m \xe2\x80\xaeleft \xd7\xa9\xd7\x9c\xe2\x80\x8f'
)

setup_file() {
  cd "$BATS_FILE_TMPDIR" || return 1
  mkdir 'x<'
  local i
  for i in "${!names[@]}"; do
    make_video video.mp4 1 "testsrc2=size=64x48:rate=12,hue=h=$i*40"
    mv video.mp4 "${names[i]}"
    printf '%s' "${captions[i % 3]}" >"${names[i]%.mp4}.txt"
  done
  : >no.mp4
}
setup() {
  setup_tools
  cp -r "$BATS_FILE_TMPDIR"/. .
}

# page PAGE [TEXT...]: tests/cli/check-page, with its words.
page() { "$BATS_TEST_DIRNAME/check-page" "$@"; }

# harmless FILE TOOL: every line is the tool's, in UTF-8, and steers nothing.
harmless() {
  python3 - "$@" <<'END'
import re, sys
text = open(sys.argv[1], "rb").read().decode("utf-8")
bad = re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]", text)
assert not bad, ascii(text[max(0, bad.start() - 60):bad.end() + 20])
assert text.endswith("\n"), "no line"
for line in text.splitlines():
    assert line.startswith(sys.argv[2] + ": "), line
END
}

@test "vfm-clip: pages, messages and records hold names as text" {
  run --separate-stderr vfm-clip -vv -j2 -o out --report r.html "${names[@]}" no.mp4 $'no\e[2J\nsuch.mp4'
  [ "$status" -eq 1 ]
  printf '%s\n' "$stderr" >err
  # FFmpeg has no tool's name before its words.
  harmless err vfm-clip
  page r.html "${names[@]}"
  printf '%s\n' "$output" >records.jsonl
  jq -rj 'select(.source) | .source, "\u0000"' records.jsonl | sort -z >sources
  cmp sources <(printf '%s\0' "${names[@]}" | sort -z)
  run ! grep -P '[\x00-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\x8e\x8f\xa8-\xae]|\xd8\x9c' records.jsonl
  jq -e '.input == "no\u001b[2J\nsuch.mp4" and .code == "open"' <(tail -n 1 out/errors.jsonl)
  vfm-clip shots --explain why.html "${names[@]}" >listed
  page why.html "${names[@]}"
  jq -rj 'select(.path) | .path, "\u0000"' listed | cmp - <(printf '%s\0' "${names[@]}")
}

@test "captions of sidecars: in the pages of vfm-caption, vfm-shard and vfm-pack" {
  export VFM_SLOTS=2 VFM_SHARE=slots
  printf '%s\0' "${names[@]}" | vfm-clip -0 -o out - | vfm-caption --report c.html | vfm-embed |
    VFM_SHARE_REPORT=s.html vfm-shard -o dataset --keep-duplicates --report d.html |
    vfm-pack --size 32 --frames 5 -o packed --report p.html >/dev/null 2>err
  unset VFM_SHARE
  local i shown=()
  for i in "${captions[@]}"; do shown+=("${i//$'\e'/ }"); done
  # A caption is one line: control characters in it are blanks.
  shown[2]=" [31mred 0m $(printf '\xe2\x80\xaeleft \xd7\xa9\xd7\x9c\xe2\x80\x8f')"
  page c.html "${shown[@]:0:2}" "${shown[2]# }"
  page d.html "${shown[@]:0:2}" "${shown[2]# }"
  page p.html
  page s.html vfm-clip vfm-pack
}

@test "fields and keys of a foreign shard: in the page of vfm-shard, in messages and records" {
  local i=0 name
  mkdir members
  for name in '<script>alert(1)<' '" onclick="alert(1)"' $'\e[2J\e]0;x\a' $'\xe2\x80\xaekey' $'\xd7\xa9\xd7\x93\xd7\x94\xe2\x80\x8f' $'line\nvfm-shard: forged'; do
    cp "${names[i]}" "members/$name.mp4"
    python3 - "$name" >"members/$name.json" <<'END'
import json, sys
name = sys.argv[1]
print(json.dumps({"caption": name, "source": name, "source_hash": name, name: len(name), "x</script>": 2 * len(name),
                  "caption_source": name, "media": name, "score": len(name)}))
END
    i=$((i + 1))
  done
  printf '{' >'members/<b>"bad".json'
  cp "${names[5]}" 'members/<b>"bad".mp4'
  tar --format=pax --sort=name -C members -cf foreign.tar .
  run --separate-stderr vfm-shard -vv -o dataset --keep-duplicates --report d.html foreign.tar
  printf '%s\n' "$stderr" >err
  [ -z "$stderr" ] || harmless err vfm-shard
  page d.html '<script>alert(1)<' '" onclick="alert(1)"' 'x</script>' $'\xd7\xa9\xd7\x93\xd7\x94\xe2\x80\x8f'
  for name in "vfm-caption --from builtin:measure --report c.html" "vfm-pack --size 32 --frames 5 --report p.html"; do
    # shellcheck disable=SC2086
    run --separate-stderr $name -vv -o "${name%% *}" foreign.tar
    printf '%s\n' "$stderr" >err
    [ -z "$stderr" ] || harmless err "${name%% *}"
  done
  page c.html
  page p.html
}

# bats test_tags=night
@test "folders, prompts and captions in the pages of vfm-train and vfm-generate" {
  local run=$'<script>alert(1)<\e[2J\xe2\x80\xae"onload=' prompt='<img src=x onerror="alert(1)"></figcaption><script>'
  printf '%s\0' "${names[@]:0:3}" | vfm-clip -0 -o out - | vfm-caption | vfm-embed | vfm-shard -o dataset >shards.jsonl
  vfm-pack --size 32 --frames 9 -o "latents$run" <shards.jsonl >/dev/null
  quick_recipe "$run" "latents$run" --report t.html
  page t.html "$run"
  vfm-generate --model "$run" --steps 1 -o made --report g.html --dataset dataset "$prompt" $'\e[31m\xc2\x9b0mred' \
    >made.jsonl 2>err || { cat err && false; }
  [ ! -s err ] || harmless err vfm-generate
  page g.html "$prompt" "${captions[0]}" "[31mred 0m $(printf '\xe2\x80\xaeleft \xd7\xa9\xd7\x9c\xe2\x80\x8f')"
}

# bats test_tags=night
@test "a name that is no UTF-8: an input is skipped and recorded, in every tool; an output is refused" {
  local tool bad
  bad=$(printf 'caf\xe9')
  cp "${names[2]}" "$bad.mp4"
  vfm-clip -o out "${names[1]}" >clips.jsonl
  cp out/*.tar "$bad.tar"
  mkdir "$bad"
  for tool in "vfm-clip -o a" "vfm-clip unique -o b" "vfm-clip shots"; do
    for way in argument lines names; do
      case $way in
        argument) run --separate-stderr $tool "$bad.mp4" "${names[1]}" ;;
        lines) run --separate-stderr $tool < <(printf '%s\n' "$bad.mp4" "${names[1]}") ;;
        names) run --separate-stderr $tool -0 < <(printf '%s\0' "$bad.mp4" "${names[1]}") ;;
      esac
      echo "$tool, $way: $status $stderr"
      [ "$status" -eq 1 ]
      [[ "$stderr" = *"the name 'caf\\xE9.mp4' is not in UTF-8, as names in records must be; rename it" ]]
      [ "$(wc -l <<<"$stderr")" -eq 1 ]
      only_records
      [ "${#lines[@]}" -eq 1 ]
    done
  done
  [ "$(jq -r .code a/errors.jsonl)" = line ]
  # The record has the bytes, too: another name would be that of another file.
  for tool in "vfm-clip -o a" "vfm-clip unique -o b"; do
    run $tool "$bad.mp4" "${names[1]}"
    [ "$(jq -r .input "${tool##* }/errors.jsonl")" = "argument 'caf\\xE9.mp4'" ]
  done
  # What vfm-clip unique lets pass is found by the next one.
  vfm-clip unique -o b "$bad.mp4" "${names[@]}" 2>/dev/null | vfm-clip -o c >c.jsonl
  [ ! -e c/errors.jsonl ]
  for tool in "vfm-caption --from builtin:measure" vfm-embed vfm-shard "vfm-pack --size 32"; do
    run --separate-stderr $tool -o "in-${tool%% *}" "$bad.tar" "$bad" - <clips.jsonl
    echo "$tool: $status $stderr"
    [ "$status" -eq 1 ]
    [ "$(grep -c "is not in UTF-8, as names in records must be; rename it" <<<"$stderr")" -eq 2 ]
    [ "$(jq -s 'map(select(.code == "line")) | length' "in-${tool%% *}"/*errors.jsonl)" -eq 2 ]
  done
  for tool in "vfm-clip x.mp4" "vfm-caption x.tar" "vfm-embed x.tar" "vfm-shard x.tar" "vfm-pack --size 32 x.tar" \
    "vfm-generate --model x prompt" "vfm-train --data x $VFM_ROOT/examples/recipes/quickstart.yaml"; do
    run --separate-stderr $tool -o "$bad"
    [ "$status" -eq 2 ]
    [[ "$stderr" = *"-o"*": the name 'caf\\xE9' is not in UTF-8"* ]]
  done
  # So is one in a value that says more.
  refused() {
    run --separate-stderr "$@"
    echo "$1: $status $stderr"
    [ "$status" -eq 2 ]
    [[ "$stderr" = *"caf\\xE9"*"' is not in UTF-8"* ]]
  }
  refused vfm-caption --from "model:$bad" x.tar
  refused vfm-generate --model x --lora "$bad:0.5" -o y prompt
}
