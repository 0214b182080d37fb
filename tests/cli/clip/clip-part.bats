#!/usr/bin/env bats
# vfm-clip --part: the parts of a list give one folder, whatever their number is and whoever does them.
# SPDX-License-Identifier: Apache-2.0
load media

setup_file() {
  media_folder
  local i
  mkdir a b
  make_video plain.mp4 0.7
  # Small sources that differ in a box that no reader looks at.
  for i in $(seq -w 20); do
    { cat plain.mp4; printf '\0\0\0\014free00%s' "$i"; } >a/v$i.mp4
  done
  # Large ones: more than a sixteenth of a shard.
  for i in 1 2 3 4; do
    { cat shots.mp4; printf '\0\1\0\010free'; head -c 65536 /dev/zero | tr '\0' $i; } >b/large$i.mp4
  done
  quiet_ffmpeg -f lavfi -i testsrc2=size=64x48:rate=12 -frames:v 6 a/p%d.bmp
  quiet_ffmpeg -f lavfi -i mandelbrot=size=48x48 -frames:v 1 a/q.png
  # Twins of a small one, of a large one and of a picture, and what is damaged.
  cp a/v03.mp4 b/twin3.mp4
  cp b/large2.mp4 b/twin2.mp4
  cp a/p2.bmp b/twin2.bmp
  head -c 700 a/v05.mp4 >b/short.mp4
  echo no video >b/none.mp4
  echo no picture >b/none.jpg
  { head -c 9000 shots.mp4; head -c 60000 /dev/zero; } >b/broken.mp4
  rm plain.mp4
  cc -shared -fPIC -o on-open.so "$BATS_TEST_DIRNAME/../on-open.c"
  # Clips tell the whole paths of their sources.
  find "$MEDIA/a" "$MEDIA/b" -type f | LC_ALL=C sort >names
  export VFM_LEASE_SECONDS=0.3 PATH="$VFM_BIN:$PATH"
  list one 1
  vfm-clip -v -o one --part 0/1 >one.jsonl 2>whole.said
}

# list DIR N: the list of all sources, for small shards.
list() { vfm-clip list -o "$1" -n "$2" --shard-size 256KiB <names >listed.jsonl; }
# whole DIR: name and hash of each file that does not tell who did what.
whole() { (cd "$1" && find . -path ./parts -prune -o -type f -print | LC_ALL=C sort | xargs -r sha256sum); }
# told DIR <RECORDS: the records of shards, as if they were in DIR, in order of names.
told() { records | sed -E 's#"(path|clip)":"[^"/]*/#"\1":"'"$1"'/#g' | LC_ALL=C sort; }
# left DIR: what no finished part leaves.
left() { find "$1" -name 'unfinished*' -o -name 'lease*' -o -name temporary -o -name '.*.tmp' -o -name '.*.parts'; }

# bats test_tags=night
@test "parts of any number, and parts that two processes claim, give the same files" {
  local n i
  [ "$(whole one | wc -l)" -gt 20 ]
  [ -z "$(left one/)" ]
  for n in 4 7; do
    rm -rf made made.jsonl
    list made $n
    for i in $(seq $((n - 1)) -1 0); do
      vfm-clip -j$((i % 3 + 1)) -o made --part $i/$n >>made.jsonl 2>>said
    done
    diff <(whole one) <(whole made)
    diff <(told one <one.jsonl) <(told one <made.jsonl)
    [ "$(find made -name done.json | wc -l)" -eq $n ]
    [ -z "$(left made)" ]
  done
  rm -rf made
  list made 7
  vfm-clip -o made --part auto >first.jsonl 2>>said 3>&- &
  vfm-clip -o made --part auto >second.jsonl 2>>said
  wait $!
  diff <(whole one) <(whole made)
  diff <(told one <one.jsonl) <(cat first.jsonl second.jsonl | told one)
  [ "$(find made -name done.json | wc -l)" -eq 7 ]
  [ -z "$(left made)" ]
  cp -r "$(readlink -f one)" joined
  for i in joined made; do vfm-shard join $i >$i.jsonl; done
  diff <(whole joined) <(whole made)
  diff <(told one <joined.jsonl) <(told one <made.jsonl)
}

@test "a folder of parts has subfolders of two digits, and tells twins by their places" {
  [ -z "$(find one/ -maxdepth 1 -type f)" ]
  [ -z "$(whole one | sed 's/^[^ ]*  //' | grep -vE '^\./([0-9a-f]{2})/(joined-)?\1[0-9a-f]{14}[-.]')" ]
  # Contents that two units have are cut in both; of two files of one bucket the first counts.
  records one.jsonl | jq -es '[.[] | select(.source // "" | test("2.mp4$"))] | length == 2 and
    .[0].source_hash == .[1].source_hash and .[0].place != .[1].place' >/dev/null
  records one.jsonl | jq -es 'map(select(.sources) | (.sources | length) == (.places | length)) | all and length > 1' >/dev/null
  # Bad inputs are results, which are told and counted.
  [ "$(jq -s 'map(.input | split("/") | last) | sort | join(" ")' one/parts/clip/00000/errors.jsonl)" = \
    '"broken.mp4 none.jpg none.mp4 short.mp4"' ]
  jq -e '.tool == "vfm-clip" and .part == 0 and .parts == 1 and ([.errors[]] | add) == 4 and
    (.outputs | length) == .records and .versions.ffmpeg' one/parts/clip/00000/done.json >/dev/null
  jq -r '.outputs[] | .path' one/parts/clip/00000/done.json | (cd one && xargs ls) >/dev/null
  diff <(told one <one.jsonl) <(sed -E 's#"(path|clip)":"#&one/#g' one/parts/clip/00000/manifest.jsonl | LC_ALL=C sort)
  # The next tool takes the records.
  vfm-caption one.jsonl -o columns >captions.jsonl
  [ "$(records captions.jsonl | wc -l)" -eq "$(records one.jsonl | wc -l)" ]
}

@test "a marker tells the outputs by their names in the folder, also if that is the current one" {
  list made 1
  (cd made && vfm-clip -o . --part 0/1) >made.jsonl 2>said
  diff <(whole one) <(whole made)
  diff <(jq -r '.outputs[].path' made/parts/clip/00000/done.json | LC_ALL=C sort) \
    <(cd made && find ?? -name '*.tar' | LC_ALL=C sort)
}

@test "a part that is done is not done again: its records are printed" {
  local before
  before=$(find one/ -printf '%p %i %T@\n' | sort)
  (cd "$MEDIA" && vfm-clip -o one --part 0/1) >again.jsonl
  diff <(records one.jsonl) <(records again.jsonl)
  vfm-clip -o one --part auto >auto.jsonl
  [ -z "$(records auto.jsonl)" ]
  [ "$before" = "$(find one/ -printf '%p %i %T@\n' | sort)" ]
}

@test "killed at any moment, a part is done by who comes next, who cuts no clip again" {
  # What is there at a moment depends on what threads have done: by day a moment that leaves a part of a shard is enough.
  local at all kept='' moments=(35 65 {40..60..5} {70..120..5})
  ! at_night || mapfile -t moments < <(seq 1 3 120)
  all=$(grep -c 'cut, for' whole.said)
  for at in "${moments[@]}"; do
    rm -rf made
    list made 1
    ON_OPEN=made/ ON_OPEN_AT=$at ON_OPEN_DO='kill -KILL $PPID' LD_PRELOAD="$PWD/on-open.so" \
      vfm-clip -j1 -o made --part 0/1 >killed.jsonl 2>/dev/null || true
    [ -z "$(find made -name '.joined-*.parts' -size +3k)" ] || kept=1
    vfm-clip -v -o made --part auto >made.jsonl 2>said
    [ -z "$kept" ] || [ "$(grep -c 'cut, for' said)" -lt "$all" ]
    diff <(whole one) <(whole made)
    diff <(told one <one.jsonl) <(told one <made.jsonl)
    [ -z "$(left made)" ]
    if [ -n "$kept" ] && ! at_night; then break; fi
  done
  [ -n "$kept" ]
}

@test "a fault that may pass fails the part, which is done when it has passed" {
  mkdir here
  cp a/v0[12].mp4 a/p1.bmp b/large[14].mp4 here
  find "$PWD/here" -type f | LC_ALL=C sort >few
  for dir in whole made gone; do vfm-clip list -o $dir -n 1 --shard-size 256KiB <few >listed.jsonl; done
  vfm-clip -o whole --part 0/1 >whole.jsonl
  mv here elsewhere # as a folder that is not mounted
  fails 1 vfm-clip -o made --part 0/1
  [ ! -e made/parts/clip/00000/done.json ]
  grep -q 'large1.mp4.*No such file' made/parts/clip/00000/errors.jsonl
  [ -z "$(whole made)" ]
  mv elsewhere here
  vfm-clip -o made --part auto >made.jsonl
  diff <(whole whole) <(whole made)
  [ ! -e made/parts/clip/00000/errors.jsonl ]
  [ -z "$(left made)" ]
  # A file that has gone from its folder is a bad input.
  rm here/large4.mp4
  vfm-clip -o gone --part 0/1 >gone.jsonl 2>said
  jq -e '.errors == {"open": 1}' gone/parts/clip/00000/done.json
  run ! grep 'other inputs' said
  # Other settings are another work.
  fails 3 vfm-clip -o gone --part 0/1 --audio copy
  grep -q "recipe.audio is \"drop\" there, and \"copy\" here; give --audio here as there, or remove 'gone/parts/clip'" err
  rm -r gone/parts/clip
  vfm-clip -o gone --part 0/1 --audio copy >gone.jsonl 2>said
}

@test "the number of a part is that of the environment, and the number of parts that of the list" {
  list made 4
  VFM_PART=2 SLURM_ARRAY_TASK_ID=3 vfm-clip -o made --part env >2.jsonl 2>said
  SLURM_ARRAY_TASK_ID=1 VFM_PART_OFFSET=2 SLURM_ARRAY_TASK_COUNT=2 vfm-clip -o made --part env >3.jsonl 2>said
  JOB_COMPLETION_INDEX=0 vfm-clip -o made --part env >0.jsonl 2>said
  HQ_TASK_ID=1 vfm-clip -o made --part env/4 >1.jsonl 2>said
  diff <(whole one) <(whole made)
  diff <(told one <one.jsonl) <(cat ?.jsonl | told one)
  refused VFM_PART vfm-clip -o made --part env
  fails 3 vfm-clip -o made --part 1/5
  grep -q ' 4 parts' err
  [ ! -s out.txt ]
  VFM_PART=4 refused 4 vfm-clip -o made --part env
}

# bats test_tags=night
@test "ranks of mpirun do the parts" {
  command -v mpirun >/dev/null || skip 'no mpirun'
  list made 7
  mpirun -np 4 sh -c 'exec vfm-clip -j1 -o made --part auto >"rank$OMPI_COMM_WORLD_RANK.jsonl"' 2>said
  diff <(whole one) <(whole made)
  diff <(told one <one.jsonl) <(cat rank?.jsonl | told one)
  [ "$(find made -name done.json | wc -l)" -eq 7 ]
  [ -z "$(left made)" ]
}

# bats test_tags=night
@test "jobs of GNU parallel do the parts" {
  parallel --version 2>/dev/null | grep -q GNU || skip 'no GNU parallel'
  list made 4
  seq 0 3 | parallel -j2 vfm-clip -j1 -o made --part {}/4 '>' job{}.jsonl 2>said
  diff <(whole one) <(whole made)
  diff <(told one <one.jsonl) <(cat job?.jsonl | told one)
  [ -z "$(left made)" ]
}

@test "what is not of a part is refused" {
  local option
  list made 2
  refused 'vfm-clip list' vfm-clip -o none --part 0/2
  refused "leave out 'a/v01.mp4'" vfm-clip -o made --part 0/2 a/v01.mp4
  for option in --prune --force --dry-run -0 '--into joined' '--into files' '--shard-size 1MiB' '--spans names' \
    '--report page.html'; do
    # shellcheck disable=SC2086
    refused 'leave out --' vfm-clip -o made --part 0/2 $option
  done
  [ ! -e made/parts/clip ]
}
