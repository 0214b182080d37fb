#!/usr/bin/env bats
# Shards and lists whose names lead elsewhere, whose sizes lie, or whose JSON is made to hurt: the samples around them are
# used, what is wrong is recorded, nothing else is touched, and memory and time have their bounds.
# SPDX-License-Identifier: Apache-2.0
load helpers
bats_require_minimum_version 1.5.0

setup_file() {
  cd "$BATS_FILE_TMPDIR" || return 1
  make_video good.mp4 0.5 testsrc2=size=32x32:rate=8
  "$BATS_TEST_DIRNAME/make-hostile-shards" good.mp4 shards >table
}
setup() {
  setup_tools
  mkdir -p outside/inside/shards
  cp "$BATS_FILE_TMPDIR/good.mp4" outside/secret.mp4
  echo in-confidence >outside/secret.txt
  cd outside/inside || return 1
  ln "$BATS_FILE_TMPDIR"/shards/*.tar shards
  cp "$BATS_FILE_TMPDIR"/{table,good.mp4} .
}

# endures NAME READABLE TOOL...: that shard through it. It ends by itself with 0 or 1, takes no memory for what is only
# promised, and gives each fault a code.
endures() {
  local name=$1 readable=$2 status=0 keys
  shift 2
  (ulimit -v 4000000 && timeout 60 "$@" -o "out-$name" "shards/$name.tar" >"$name.jsonl" 2>"$name.err") || status=$?
  keys=$(find "out-$name" -name '*.tar' -exec tar -tf {} \; | grep -oE '^(good|last)\.' | sort -u | wc -l)
  if [ "$status" -gt 1 ] || [ "$keys" -ne "$readable" ] || grep -q 'internal error\|out of memory' "$name.err"; then
    echo "$name: status $status, $keys of $readable samples; $(head -c 2000 "$name.err")"
  fi
  [ "$status" -eq 0 ] || jq -se 'length > 0 and all(.code != "other" and .code != null)' "out-$name"/*errors.jsonl >/dev/null ||
    echo "$name: $(head -c 2000 "out-$name"/*errors.jsonl)"
}

# through TOOL...: each shard alone, several at once, as most of the time is the disk's. Nothing is written elsewhere.
through() {
  local name readable count=0
  while read -r name readable; do
    endures "$name" "$readable" "$@" >>bad &
    [ $((++count % 8)) -ne 0 ] || wait
  done <table
  wait
  [ "$(wc -l <table)" -eq "$count" ]
  [ "$(cd .. && echo *)" = "inside secret.mp4 secret.txt" ]
  run ! grep -rl in-confidence --include='*.tar' --exclude-dir=shards .
  cat bad
  [ ! -s bad ]
}

# bats test_tags=night
@test "hostile shards through vfm-caption" { through vfm-caption -j1 --sidecars ..; }
# bats test_tags=night
@test "hostile shards through vfm-embed" { through vfm-embed -j1; }
@test "hostile shards through vfm-shard" { through vfm-shard -j1 --keep-duplicates; }
@test "hostile shards through vfm-pack" { through vfm-pack -j1 --size 32 --frames 1 --windows middle; }

@test "what stands behind the end of a tar is told, in every tool, and zeros are nothing" {
  tar -C shards -xf shards/twice.tar
  local tool
  for tool in a b; do
    mkdir $tool
    cp shards/last.mp4 $tool/$tool.mp4
    tar --format=ustar -b 20 -C $tool -cf $tool.tar $tool.mp4
  done
  cat a.tar b.tar >joined.tar
  cp a.tar padded.tar
  truncate -s 10M padded.tar
  while read -r tool; do
    run --separate-stderr $tool -o padded padded.tar
    [ "$status" -eq 0 ]
    run --separate-stderr $tool -o joined joined.tar
    [ "$status" -eq 1 ]
    jq -e '.code == "format" and (.error | test("joined.tar. goes on behind its end"))' joined/*errors.jsonl
    [ "$(jq -r 'select(.kind == "end" | not) | .samples // empty' <<<"$output")" = 1 ]
    rm -r padded joined
  done <<END
vfm-caption -j1
vfm-embed -j1
vfm-shard -j1
vfm-pack -j1 --size 32 --frames 1 --windows middle
END
}

# texts_in FOLDER: how many samples of the shards there have a text.
texts_in() { find "$1" -name '*.tar' -exec tar -tf {} \; | grep -c '\.txt$'; }

# indexed_tar: foreign.tar of six samples of two members, with an index beside it.
indexed_tar() {
  local i
  mkdir members
  tar -C members -xf shards/twice.tar last.mp4
  for i in 1 2 3 4 5 6; do
    cp members/last.mp4 members/k$i.mp4
    echo "caption $i" >members/k$i.txt
  done
  rm members/last.mp4
  tar --format=ustar -C members -cf foreign.tar $(cd members && echo k*)
  python3 - <<'PY'
import struct, tarfile
members = tarfile.open("foreign.tar").getmembers()
end = members[-1].offset_data + 512  # of a short text
open("foreign.tar.idx", "wb").write(struct.pack("<7Q", *[m.offset for m in members[::2]], end))
PY
}

# bats test_tags=night
@test "vfm-shard: an index with a number that changed is made anew, and no sample lacks a member" {
  indexed_tar
  shard() { vfm-shard -j1 --keep-duplicates -o "$1" foreign.tar >"$1.jsonl" 2>"$1.err"; }
  shard whole
  [ ! -s whole.err ]
  [ "$(texts_in whole)" -eq 6 ]
  cp foreign.tar.idx good.idx
  local number by
  for number in 1 3 5; do
    # To the member before or behind, to what is no header, and out of the tar.
    for by in -1024 $((512 + ($(stat -c %s members/k1.mp4) + 511) / 512 * 512)) 512 7 9000000000; do
      rm -rf bad
      python3 - $number $by <<'PY'
import struct, sys
numbers = list(struct.unpack("<7Q", open("good.idx", "rb").read()))
numbers[int(sys.argv[1])] += int(sys.argv[2])
open("foreign.tar.idx", "wb").write(struct.pack("<7Q", *numbers))
PY
      shard bad
      grep -F "'foreign.tar.idx' does not fit 'foreign.tar'" bad.err
      [[ "$(cat bad.err)" == *"; reading the tar without it" ]]
      [ "$(wc -l <bad.err)" -eq 1 ]
      diff -r whole bad
    done
  done
}

@test "a tar with its index that was cut, or goes on behind the end, gives what is whole before" {
  indexed_tar
  cp foreign.tar good.tar
  local end tool at
  end=$(od -An -t u8 -j 48 foreign.tar.idx)
  # Within data; between two samples, where the tar itself does not tell it; and behind the first member of one.
  for at in $((end / 2 + 700)):3 $((end * 2 / 3)):4 $((end - 1024)):5; do
    head -c "${at%:*}" good.tar >foreign.tar
    for tool in "vfm-shard --keep-duplicates" vfm-caption vfm-embed; do
      rm -rf cut
      fails 1 $tool -j1 -o cut foreign.tar
      jq -e '.code == "format" and (.error | test("Truncated|breaks off"))' cut/*errors.jsonl
      [ "$(jq -r 'select(.kind == "end" | not) | .samples // empty' out.txt)" = "${at#*:}" ]
    done
  done
  cat good.tar good.tar >foreign.tar
  fails 1 vfm-shard -j1 --keep-duplicates -o joined foreign.tar
  jq -e '.error | test("goes on behind its end")' joined/errors.jsonl
  [ "$(texts_in joined)" -eq 6 ]
}

@test "hostile lines: each is one error, and the others are used" {
  {
    head -c 100000 /dev/zero | tr '\0' '['
    echo
    head -c 100000 /dev/zero | tr '\0' '[' | sed 's/^/{"kind":"video","path":"good.mp4","x":/'
    echo
    echo '{"kind":"video","path":"good.mp4","n":1e999}'
    printf '{"kind":"video","path":"good.mp4\xff"}\n'
    echo '{"kind":"video","path":"good.mp4\u0000.mkv"}'
    echo '{"kind":"video","path":"good.mp4\ud800"}'
    echo '{"kind":"video","path":["good.mp4"]}'
    echo '{"kind":1,"path":"good.mp4"}'
    echo '{"kind":"shard","path":"x.tar","columns":["y.tar"]}'
    echo '{"kind":"end","records":-1}'
    echo '{"kind":"video","path":"good.mp4"'
    head -c 17000000 /dev/zero | tr '\0' ' '
    echo x
    python3 -c 'print("{" + ",".join("\"n%07d\":0" % i for i in range(1_200_000)) + "}")'
    # These are good: of equal names the last counts, numbers may be large, and so may the number of names.
    python3 -c 'print("{\"kind\":\"x\",\"path\":1,\"kind\":\"video\",\"path\":\"good.mp4\",\"n\":" + "9" * 300 + "}")'
    python3 -c 'print("{\"kind\":\"video\",\"path\":\"other.mp4\"," + ",".join("\"n%06d\":0" % i for i in range(300_000)) + "}")'
  } >list
  make_video other.mp4 0.5 testsrc=size=32x32:rate=8
  (ulimit -v 4000000 && timeout 60 vfm-clip -j1 -o out <list >clips.jsonl 2>err) || [ $? -eq 1 ]
  [ "$(jq -c 'select(.source) | .source' clips.jsonl | tr '\n' ' ')" = '"good.mp4" "other.mp4" ' ]
  jq -r '[.code, .input[:60]] | join(" ")' out/errors.jsonl
  # The first is a path, and no file has it.
  [ "$(jq -r .code out/errors.jsonl | head -n 1)" = open ]
  [ "$(jq -r '.code + " " + .input' out/errors.jsonl | grep -c '^line line [0-9]* of standard input$')" -eq 12 ]
  [ "$(wc -l <out/errors.jsonl)" -eq 13 ]
  [ "$(wc -l <err)" -eq 13 ]
}

@test "what stands under the name of a temporary file is neither emptied nor waited for" {
  echo kept >kept.html
  ln -s kept.html .page.html.tmp
  fails 1 vfm-shard report -o page.html shards/twice.tar
  grep -F "cannot create 'page.html': '.page.html.tmp' is a link or a pipe, which vfm does not make; remove it" err
  [ "$(cat kept.html)" = kept ]
  [ ! -e page.html ]
  rm .page.html.tmp
  mkfifo .page.html.tmp
  fails 1 timeout 20 vfm-shard report -o page.html shards/twice.tar
  grep -F 'is a link or a pipe' err
  # Left by a run that was killed, and kept by another name: a backup of links.
  rm .page.html.tmp
  ln kept.html .page.html.tmp
  vfm-shard report -o page.html shards/twice.tar 2>err || [ $? -eq 1 ]
  [ "$(cat kept.html)" = kept ]
  grep -q '<html' page.html
}

@test "a dataset whose plan names shards outside of its folder is none" {
  vfm-shard -o set shards/twice.tar >/dev/null 2>&1 || [ $? -eq 1 ]
  cp -r set ../set
  local name plan
  for name in ../../set/train/00000.tar /etc/passwd train/../../x.tar ''; do
    plan=$(jq -c --arg name "$name" '.shards[0].path = $name' ../set/plan.json)
    echo "$plan" >set/plan.json
    run --separate-stderr vfm-embed -o never set
    echo "$name: $status $stderr"
    [ "$status" -eq 2 ]
    [[ "$stderr" = *"'set' is not a finished dataset of vfm-shard: its plan names a shard outside of it, '$name'" ]]
  done
}
