#!/usr/bin/env bats
# A chain of programs in parts, and vfm-shard join: the same files for any number of parts.
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # stderr is of run --separate-stderr
load ../helpers
bats_require_minimum_version 1.5.0

setup_file() {
  export LC_ALL=C.UTF-8 PATH="${VFM_BIN:?}:$PATH" MEDIA="$BATS_FILE_TMPDIR/media" VFM_LEASE_SECONDS=0.3
  mkdir "$MEDIA"
  cd "$MEDIA" || return 1
  make_shots shots.mp4
  make_video plain.mp4 0.7
  local i
  # Sources that differ in a box that no reader looks at: small ones, and some above a sixteenth of a shard.
  for i in $(seq -w 12); do { cat plain.mp4; printf '\0\0\0\014free00%s' "$i"; } >"v$i.mp4"; done
  for i in 1 2 3; do
    { cat shots.mp4; printf '\0\1\0\010free'; head -c 65536 /dev/zero | tr '\0' $i; } >large$i.mp4
  done
  quiet_ffmpeg -f lavfi -i testsrc2=size=64x48:rate=12 -frames:v 3 p%d.bmp
  rm plain.mp4 shots.mp4
  for i in v03.mp4 large2.mp4 p2.bmp; do cp $i twin-$i; done
  echo no video >none.mp4
  echo 'a red wall' >large1.txt
  find "$MEDIA" -type f ! -name '*.txt' | sort >../names
  for i in 1 3; do chain $i; done
}

setup() {
  setup_tools
  export VFM_LEASE_SECONDS=0.3
}

# in_parts N COMMAND...: with --part for each part, the last one first.
in_parts() {
  local i
  for i in $(seq $(($1 - 1)) -1 0); do "${@:2}" --part "$i/$1" -j2 || return 1; done
}
# cut N: the folder clips, of N parts.
cut() {
  vfm-clip list --shard-size 256KiB -o clips -n "$1" <"$BATS_FILE_TMPDIR/names" >/dev/null
  in_parts "$1" vfm-clip -o clips >/dev/null
}
# chain N: the whole chain of N parts in the folder N.
chain() {
  mkdir "$BATS_FILE_TMPDIR/$1" && cd "$BATS_FILE_TMPDIR/$1" || return 1
  {
    cut "$1"
    in_parts "$1" vfm-caption clips >captioned.jsonl
    in_parts "$1" vfm-embed clips >embedded.jsonl
    vfm-shard join clips >clips.jsonl
    in_parts "$1" vfm-pack --size 32 -o latents clips >packed.jsonl
    vfm-shard join latents >latents.jsonl
  } 2>said || { cat said && return 1; }
}
# copy_of N: what the chain of N parts made, in a new current folder beside that. The same names lead to the media.
copy_of() { cp -r "$BATS_FILE_TMPDIR/$1" "$BATS_FILE_TMPDIR/t$BATS_TEST_NUMBER" && cd "$BATS_FILE_TMPDIR/t$BATS_TEST_NUMBER" || return 1; }
# whole DIR: name and hash of each file that does not tell who did what.
whole() { (cd "$1" && find . -path ./parts -prune -o -type f -print | sort | xargs sha256sum); }
# times DIR: what changes when a file is written.
times() { find "$1" -type f -printf '%p %i %T@\n' | sort; }
# sorted FILE...: records without the begin and end of output.
sorted() { records "$@" | sort; }

@test "one part and three give the same clips, columns and latents" {
  local one=$BATS_FILE_TMPDIR/1 three=$BATS_FILE_TMPDIR/3 file
  for file in clips latents; do diff <(whole "$one/$file") <(whole "$three/$file"); done
  for file in captioned embedded packed; do diff <(sorted "$one/$file.jsonl") <(sorted "$three/$file.jsonl"); done
  for file in clips latents; do diff <(records "$one/$file.jsonl") <(records "$three/$file.jsonl"); done
  [ -z "$(find "$three" -name 'lease*' -o -name temporary -o -name failed.json -o -name '.*.tmp')" ]
  # The folder of clips is an input, and stays it where it is moved to.
  vfm-shard -o dataset "$one/clips" >/dev/null
  cp -r "$three" moved
  (cd moved && vfm-shard -o ../other clips >/dev/null)
  diff <(whole dataset) <(whole other)
}

@test "clips.jsonl has all shards in the order of the list, with their columns, and no duplicates" {
  copy_of 3
  jq -es 'all(.[]; .columns | keys == ["caption", "clip", "embed"])' clips/clips.jsonl
  jq -es '[.[] | (.place // (.places | min))] | . == sort' clips/clips.jsonl
  jq -r '.columns[]' clips/clips.jsonl | (cd clips && xargs ls) >/dev/null
  diff <(records clips.jsonl) <(sed -E 's#"(path|clip|caption|embed)":"([0-9a-f]{2}/)#"\1":"clips/\2#g' clips/clips.jsonl)
  jq -es '[.[] | select(.source | test("large"))] | length == 1 and (.[0].source | endswith("/twin-large2.mp4")) and
    (.[0].first | endswith("/large2.mp4"))' clips/duplicates.jsonl
  # Each contents once: in the record, and in what the next program makes of it.
  [ "$(jq -r 'if .source then .source_hash else (.source_hashes - (.duplicate_hashes // []))[] end' clips/clips.jsonl |
    sort | uniq -d | wc -l)" -eq 0 ]
  [ -z "$(jq -r .key latents/train/index.jsonl | sort | uniq -d)" ]
  jq -e '.tool == "vfm-clip" and (.input | endswith("/none.mp4"))' clips/errors.jsonl
}

@test "the latents are those of one command without parts" {
  copy_of 3
  vfm-pack --size 32 -o again clips >again.jsonl
  diff <(whole latents) <(whole again)
  vfm-caption clips >/dev/null
  diff <(whole "$BATS_FILE_TMPDIR/1/clips" | grep -v errors.jsonl) <(whole clips | grep -v errors.jsonl)
}

# bats test_tags=night
@test "commands with --part auto share out the parts" {
  local tool
  mkdir "$BATS_FILE_TMPDIR/auto" && cd "$BATS_FILE_TMPDIR/auto"
  cut 3 2>said
  for tool in caption embed; do
    vfm-$tool --part auto/3 clips >a.jsonl 2>said 3>&- &
    vfm-$tool --part auto/3 clips >b.jsonl 2>>said || { cat said && return 1; }
    wait $!
    [ "$(find clips/parts/$tool -name done.json | wc -l)" -eq 3 ]
    diff <(sorted a.jsonl b.jsonl) <(sorted "$BATS_FILE_TMPDIR/1/$tool"*d.jsonl)
  done
  vfm-shard join clips >/dev/null
  diff <(whole "$BATS_FILE_TMPDIR/1/clips") <(whole clips)
  vfm-pack --size 32 --part auto/3 -o latents clips >/dev/null
  vfm-shard join latents >/dev/null
  diff <(whole "$BATS_FILE_TMPDIR/1/latents") <(whole latents)
}

@test "what is done is not done again, and its records are printed" {
  copy_of 3
  times clips >before
  times latents >>before
  in_parts 3 vfm-caption clips >captioned.again
  in_parts 3 vfm-embed clips >embedded.again
  # What another host left in a finished part is removed.
  echo '{"host":"n2","pid":77,"machine":"far","begun":"2026-01-01T00:20:00Z","beat_seconds":0.4,"patience":1.2}' \
    >clips/parts/embed/00001/lease-1-0
  vfm-shard join clips >clips.again
  in_parts 3 vfm-pack --size 32 -o latents clips >packed.again
  vfm-shard join latents >latents.again
  { times clips && times latents; } | diff before -
  local name
  for name in captioned embedded packed clips latents; do diff <(records $name.jsonl) <(records $name.again); done
  # Other options are another work.
  fails 3 vfm-embed --text-dim 32 --part 0/3 clips
  grep -q "text_encoder.dim is 64 there, and 32 here; give --text-dim here as there, or remove 'clips/parts/embed'" err
  fails 3 vfm-pack --size 64 --part 0/3 -o latents clips
  grep -q 'size is 32 there, and 64 here; give --size here as there' err
  [ -e clips/parts/embed/00000/done.json ]
  [ -e latents/parts/pack/00000/done.json ]
}

@test "parts that are missing are named, and nothing is called complete" {
  copy_of 3
  rm clips/parts/clip/00001/done.json clips/clips.jsonl
  fails 1 vfm-shard join clips
  grep -q "of vfm-clip, 1 of the 3 parts of 'clips' is not complete: 1; nothing is joined" err
  [ ! -e clips/clips.jsonl ]
  rm clips/parts/caption/00000/done.json clips/parts/embed/00002/done.json
  fails 1 vfm-shard join clips
  grep -q 'of vfm-caption' err
  # A part needs its own part of the clips. That of latents needs all, because of equal contents.
  vfm-caption --part 0/3 clips >/dev/null
  fails 1 vfm-caption --part 1/3 clips
  grep -q "of vfm-clip, 1 of the 3 parts of 'clips' is not complete: 1" err
  [ -e clips/parts/caption/00001/done.json ]
  fails 1 vfm-pack --size 32 --part 0/3 -o latents clips
  grep -q "of vfm-clip, 1 of the 3 parts of 'clips' is not complete: 1" err
  fails 1 vfm-caption clips
  fails 1 vfm-shard -o dataset clips
  [ ! -e dataset/dataset.json ]
  rm latents/parts/pack/00002/done.json latents/latents.json
  fails 1 vfm-shard join latents
  [ ! -e latents/latents.json ]
  # When the parts are there, so is all.
  vfm-clip -o clips --part auto >/dev/null 2>said
  in_parts 3 vfm-caption clips >/dev/null
  in_parts 3 vfm-embed clips >/dev/null
  vfm-shard join clips >/dev/null
  diff <(whole "$BATS_FILE_TMPDIR/1/clips") <(whole clips)
  vfm-pack --size 32 --part 2/3 -o latents clips >/dev/null
  vfm-shard join latents >/dev/null
  diff <(whole "$BATS_FILE_TMPDIR/1/latents") <(whole latents)
}

# bats test_tags=night
@test "a program does not go on without parts of one before it" {
  copy_of 3
  rm clips/parts/caption/00001/done.json
  fails 1 vfm-embed clips
  grep -q "of vfm-caption, 1 of the 3 parts of 'clips' is not complete: 1" err
  vfm-embed --part 0/3 clips >/dev/null
  fails 1 vfm-embed --part 1/3 clips
  grep -q "of vfm-caption, 1 of the 3 parts of 'clips' is not complete: 1" err
  in_parts 3 vfm-caption clips >/dev/null
  rm clips/parts/embed/00002/done.json
  vfm-caption clips >/dev/null
  fails 1 vfm-shard -o dataset clips
  [ ! -e dataset/dataset.json ]
  fails 1 vfm-pack --size 32 -o again clips
  grep -q 'of vfm-embed, 1 of the 3 parts' err
  [ ! -e again/latents.json ]
}

# bats test_tags=night
@test "more videos make more parts, and columns made before them are not complete" {
  copy_of 1
  cp "$MEDIA/large1.mp4" more.mp4
  printf more >>more.mp4
  vfm-clip list -o clips -n 1 "$PWD/more.mp4" >/dev/null
  fails 1 vfm-shard join clips
  # What is done stays so, and says nothing of the new part.
  VFM_PART=0 vfm-caption --part env clips >again.jsonl
  diff <(records captioned.jsonl) <(records again.jsonl)
  fails 3 vfm-caption --part 0/1 clips
  grep -q 'has 2 parts, not 1' err
  vfm-clip -o clips --part 1/2 >/dev/null
  fails 1 vfm-shard join clips
  grep -q "of vfm-caption, 1 of the 2 parts of 'clips' is not complete: 1; of vfm-embed" err
  fails 1 vfm-embed --part 1/2 clips
  vfm-caption --part 1/2 clips >/dev/null
  vfm-embed --part auto clips >/dev/null
  vfm-shard join clips >/dev/null
  [ "$(wc -l <clips/clips.jsonl)" -eq $(($(wc -l <"$BATS_FILE_TMPDIR/1/clips/clips.jsonl") + 1)) ]
}

# bats test_tags=night
@test "vectors of captions that were made again later are not joined" {
  copy_of 3
  rm -r clips/parts/caption
  in_parts 3 vfm-caption --from builtin:measure clips >/dev/null
  fails 1 vfm-shard join clips
  grep -q 'vfm-embed read columns that were made again later; do its parts [0-9][0-9, ]* again' err
  in_parts 3 vfm-embed clips >/dev/null
  vfm-shard join clips >/dev/null
}

@test "a shard that cannot be read fails its part" {
  copy_of 1
  local tar
  tar=$(jq -r .path clips/clips.jsonl | tail -n 1)
  rm -r clips/parts/caption/00000 "clips/${tar%.tar}".caption.*
  mv "clips/$tar" gone.tar
  fails 1 vfm-caption --timeout 200ms --part 0/1 clips
  [ ! -e clips/parts/caption/00000/done.json ]
  grep -q "$(basename "$tar")" clips/parts/caption/00000/errors.jsonl
  mv gone.tar "clips/$tar"
  vfm-caption --part 0/1 clips >/dev/null
  vfm-shard join clips >/dev/null
  diff <(whole "$BATS_FILE_TMPDIR/1/clips") <(whole clips)
}

@test "a long error of a part is joined" {
  copy_of 3
  { printf '{"input":"long.tar","message":"' && head -c 3145728 /dev/zero | tr '\0' x && echo '"}'; } \
    >>clips/parts/clip/00000/errors.jsonl
  vfm-shard join clips >/dev/null
  grep -q '^{"input":"long.tar"' clips/errors.jsonl
}

@test "a file that a complete part no longer has is named, with what to do" {
  copy_of 3
  rm "clips/$(jq -r .columns.caption clips/clips.jsonl | head -n 1)"
  fails 1 vfm-shard join clips
  rm "$(grep -o 'clips/parts/caption/[0-9]*/done.json' err)"
  in_parts 3 vfm-caption clips >/dev/null
  vfm-shard join clips >/dev/null
  local tar
  tar=$(jq -r .columns.clip clips/clips.jsonl | head -n 1)
  rm "clips/$tar"
  fails 1 vfm-shard join clips
  grep -q "remove the done.json that names it below 'clips/parts/clip'" err
  rm "$(grep -l "$tar" clips/parts/clip/*/done.json)"
  vfm-clip -o clips --part auto >/dev/null 2>said
  vfm-shard join clips >/dev/null
  diff <(whole "$BATS_FILE_TMPDIR/1/clips") <(whole clips)
}

@test "a damaged file of a part is named, with what to do" {
  copy_of 3
  local notes
  cp clips/parts/caption/00000/manifest.jsonl kept
  echo '{"kind":"shard","path":"a","columns":[7]}' >>clips/parts/caption/00000/manifest.jsonl
  fails 1 vfm-shard join clips
  grep -q "remove 'clips/parts/caption/00000/done.json', and do this part again" err
  mv kept clips/parts/caption/00000/manifest.jsonl
  echo '{"input":7}' >>clips/parts/embed/00001/errors.jsonl
  fails 1 vfm-shard join clips
  grep -q "'clips/parts/embed/00001/errors.jsonl' is not as its part wrote it" err
  notes=$(jq -r '.outputs[].path' latents/parts/pack/*/done.json | grep '\.json$' | head -n 1)
  jq -c '.splits = 7' "latents/$notes" >damaged && mv damaged "latents/$notes"
  fails 1 vfm-shard join latents
  grep -q "'latents/$notes' is not as its part wrote it" err
}

# bats test_tags=night
@test "--prune removes what no part wrote, and nothing of others" {
  local made tar stale
  copy_of 3
  # Clips of other options, which then are made again with these.
  cp -r clips other
  rm -r clips/parts/clip
  in_parts 3 vfm-clip --min-length 0.2s -o clips >/dev/null 2>said
  rm -r clips/parts/clip
  in_parts 3 vfm-clip -o clips >/dev/null 2>said
  # In a folder that is no subfolder of this list, nothing is removed.
  stale=$(comm -13 <(cd other && find ?? -name '*.json' | sort) <(cd clips && find ?? -name '*.json' | sort) | head -n 1)
  mkdir clips/dead && cp "clips/${stale%.json}"* clips/dead
  made=$(find clips -name '*-00000.tar' | wc -l)
  mkdir -p clips/00 && echo mine >clips/00/mine.json
  vfm-shard join clips >/dev/null
  [ "$(find clips -name '*-00000.tar' | wc -l)" -eq "$made" ]
  vfm-shard join -v --prune clips >/dev/null 2>pruned
  grep -q 'is of no complete part' pruned
  [ "$(find clips -name '*-00000.tar' | wc -l)" -lt "$made" ]
  [ "$(cat clips/00/mine.json)" = mine ]
  [ -e "clips/dead/$(basename "$stale")" ]
  rm -r clips/dead clips/00/mine.json
  diff <(whole other | grep '\.tar') <(whole clips | grep '\.tar')
  # Latents of a shard that no part has.
  for tar in latents/train/*.tar; do :; done
  cp "$tar" latents/train/stale.tar
  cp "${tar%.tar}.json" latents/train/stale.json
  vfm-shard join latents 2>said >/dev/null
  grep -q 'not in the index' said
  vfm-shard join --prune latents 2>said >/dev/null
  [ ! -e latents/train/stale.tar ]
  diff <(whole "$BATS_FILE_TMPDIR/3/latents") <(whole latents)
}

@test "what is not of a part, and a folder without parts, is refused" {
  copy_of 3
  refused '--force is for a work without parts' vfm-caption --part 0/3 --force clips
  refused 'leave out --part' vfm-embed --part 0/3 --dry-run clips
  refused 'leave out --part' vfm-pack --part 0/3 --report page.html -o latents clips
  refused 'give a folder' vfm-caption --part 0/3 -o columns
  refused 'one folder as the input' vfm-caption --part 0/3 clips/??/*-00000.tar
  refused 'has no parts' vfm-shard join .
  mkdir clips/parts/pack && cp latents/parts/pack/run.json clips/parts/pack
  refused 'pack into another folder' vfm-shard join clips
  fails 3 vfm-caption --part 0/4 clips
  mkdir empty
  refused 'nobody has said how many parts' vfm-pack --part auto -o empty clips/clips.jsonl
}
