#!/usr/bin/env bats
# What all tools that read shards do alike: damage, sizes, pipes, URLs, folders, foreign names.
# SPDX-License-Identifier: Apache-2.0
load helpers
bats_require_minimum_version 1.5.0

# Once: five small clips in foreign.tar, without json; the fourth is in the second half of the tar.
setup_file() {
  cd "$BATS_FILE_TMPDIR"
  mkdir clips
  for n in 1 2 3 4 5; do
    ffmpeg -nostdin -loglevel error -y -f lavfi -i "testsrc2=size=${n}6x64:rate=8" -t 1 -c:v libx264 -preset ultrafast \
      -pix_fmt yuv420p clips/k$n.mp4
    echo "caption $n" >clips/k$n.txt
  done
  tar --format=ustar --sort=name -C clips -cf foreign.tar $(cd clips && ls)
  export MEDIA="$BATS_FILE_TMPDIR"
}

keys() { tar -tf "$1" | sed 's/\..*//' | sort -u | tr '\n' ' '; }
errors() { jq -r .error "$1"; }

# peak_memory COMMAND...: runs it, and leaves in the file peak the most MiB that it took.
peak_memory() {
  python3 -c 'import resource, subprocess, sys
status = subprocess.call(sys.argv[1:])
open("peak", "w").write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024))
sys.exit(status)' "$@"
}

# all_tools INPUT: every tool over the shard or manifest; the status of each, and what each kept.
all_tools() {
  status_caption=0 status_embed=0 status_shard=0 status_pack=0
  vfm-caption -o col "$1" >caption.jsonl 2>caption.err || status_caption=$?
  vfm-embed -o col "$1" >embed.jsonl 2>embed.err || status_embed=$?
  vfm-shard -o set "$1" >set.jsonl 2>set.err || status_shard=$?
  vfm-pack --size 32 -o lat "$1" >lat.jsonl 2>lat.err || status_pack=$?
}
statuses() { echo "$status_caption $status_embed $status_shard $status_pack"; }

@test "a tar that breaks off: every tool keeps the samples before, and records the damage" {
  size=$(stat -c %s "$MEDIA/foreign.tar")
  head -c $((size * 6 / 10)) "$MEDIA/foreign.tar" >cut.tar
  # What is unpacked comes in pieces of 64 KiB.
  cp -r "$MEDIA/clips" more
  for n in 1 2 3 4 5; do head -c 100000 /dev/urandom >more/k$n.bin; done
  tar --format=ustar --sort=name -C more -cf - $(cd more && ls) | gzip >whole.gz
  head -c $(($(stat -c %s whole.gz) * 8 / 10)) whole.gz >cut2.tar.gz
  for tar in cut.tar cut2.tar.gz; do
    rm -rf col set lat
    all_tools $tar
    [ "$(statuses)" = "1 1 1 1" ]
    name=${tar%%.*}
    kept=$(keys col/$name.caption.tar)
    [[ "$kept" == "k1 k2 k3 "* ]]
    [[ "$kept" != *k5* ]]
    [ "$(keys col/$name.embed.tar)" = "$kept" ]
    [ "$(jq -s 'map(.samples) | add' set.jsonl)" = "$(wc -w <<<"$kept")" ]
    [ "$(keys lat/train/$name.tar)" = "$kept" ]
    for log in col/caption-errors.jsonl col/embed-errors.jsonl set/errors.jsonl lat/errors.jsonl; do
      [ "$(wc -l <$log)" -eq 1 ]
      [[ "$(errors $log)" == *"$tar"*runcated* ]]
    done
  done
  # The same is reported again, and the columns that were made of it fit it.
  run --separate-stderr vfm-caption -o col cut2.tar.gz
  [ "$status" -eq 1 ]
  vfm-caption cut.tar >/dev/null 2>&1 || true
  run vfm-shard -o joined cut.tar
  [ "$status" -eq 1 ]
  [ "$(wc -l <joined/errors.jsonl)" -eq 1 ]
  [ "$(tar -xOf joined/train/*/*0.tar k2.txt)" = "caption 2" ]
}

# bats test_tags=night
@test "a member of 1.1 GiB in a small gzip, and one that is a hole: passed over, recorded, little memory" {
  cp "$MEDIA/clips/k1.mp4" a.mp4
  cp "$MEDIA/clips/k2.mp4" z.mp4
  truncate -s 1100M m.mp4
  # In the middle: what stands before and after it is kept.
  { tar -b1 --format=gnu -cf - a.mp4 | head -c -1024; tar --format=gnu -cf - m.mp4 z.mp4; } 2>/dev/null |
    gzip -1 >big.tar.gz
  truncate -s 3G m.mp4
  tar --format=gnu -Scf hole.tar a.mp4 m.mp4 z.mp4
  run peak_memory vfm-shard -o set big.tar.gz
  [ "$status" -eq 1 ]
  [[ "$output" == *"'m.mp4'"*"too large: 1153433600 bytes"*"--max-member"* ]]
  [ "$(jq .samples set/dataset.json)" = 2 ]
  [ "$(du -sk set | cut -f1)" -lt 3000 ]
  [ "$(cat peak)" -lt 500 ]
  for tool in "vfm-caption -o col" "vfm-embed -o col" "vfm-shard -o other" "vfm-pack --size 32 -o lat"; do
    run peak_memory $tool hole.tar
    [ "$status" -eq 1 ]
    [ "$(cat peak)" -lt 1000 ]
    [[ "$output" == *"m.mp4"* || "$output" == *"'m'"* ]]
  done
  [ "$(keys col/hole.caption.tar)" = "a z " ]
  [ "$(keys lat/train/hole.tar)" = "a z " ]
}

@test "a list of files: a member of 1.1 GiB is not taken into memory before its size is looked at" {
  vfm-clip --into files -o files "$MEDIA/clips/k1.mp4" >files.jsonl
  list=$(jq -r '.path // empty' files.jsonl)
  key=$(jq -r '.samples[0].key' "$list")
  truncate -s 1100M files/$key.zeros.bin
  jq '.samples[0].files += [{extension: "zeros.bin", bytes: 1153433600, xxh3: "0"}]' "$list" >files/x.files
  run peak_memory vfm-shard --max-member 1MB -o set files/x.files
  [ "$status" -eq 1 ]
  [ "$(cat peak)" -lt 500 ]
  run peak_memory vfm-caption -o col files/x.files
  [ "$status" -eq 1 ]
  [ "$(cat peak)" -lt 500 ]
}

@test "--max-member: what is larger is passed over; with a larger limit the column is remade" {
  large=$(stat -c %s "$MEDIA/clips/k5.mp4")
  cp "$MEDIA/foreign.tar" f.tar
  for tool in "vfm-caption -o col" "vfm-embed -o col" "vfm-shard -o set" "vfm-pack --size 32 -o lat"; do
    run $tool --max-member "$((large))" f.tar
    [ "$status" -eq 1 ]
    [[ "$output" == *"too large"* ]]
    run $tool --max-member 0 f.tar
    [ "$status" -eq 2 ]
    run $tool --max-member 2GiB f.tar
    [ "$status" -eq 2 ]
    [[ "$output" == *"under 2GiB"* ]]
  done
  [[ "$(keys col/f.caption.tar)" != *k5* ]]
  [[ "$(keys lat/train/f.tar)" != *k5* ]]
  for tool in "vfm-caption -o col" "vfm-embed -o col" "vfm-shard -o set" "vfm-pack --size 32 -o lat"; do
    run $tool f.tar
    [ "$status" -eq 0 ]
  done
  [[ "$(keys col/f.caption.tar)" == *k5* ]]
  [[ "$(keys lat/train/f.tar)" == *k5* ]]
}

@test "a pipe is not waited for, and an address of another kind is not a file" {
  mkfifo f.tar
  cp "$MEDIA/foreign.tar" good.tar
  printf '%s\n' f.tar gs://b/x.tar good.tar >list.jsonl
  all_tools list.jsonl
  [ "$(statuses)" = "1 1 1 1" ]
  for log in col/caption-errors.jsonl col/embed-errors.jsonl set/errors.jsonl lat/errors.jsonl; do
    [ "$(wc -l <$log)" -eq 2 ]
    grep -q "'f.tar' is a pipe or a device" $log
    grep -q "'gs://b/x.tar' is an address of a kind that vfm does not read" $log
  done
  [ "$(keys lat/train/good.tar)" = "k1 k2 k3 k4 k5 " ]
}

@test "keys of others: the name that a sample had stays with it, with --rekey too" {
  mkdir -p f/day
  cp "$MEDIA/clips/k1.mp4" "f/day/a b.mp4"
  cp "$MEDIA/clips/k2.mp4" f/day/c.mp4
  tar --format=pax -C f -cf x.tar "day/a b.mp4" day/c.mp4
  for options in "" --rekey; do
    vfm-shard $options -o set$options x.tar >set.jsonl
    for tar in $(jq -r '.path // empty' set.jsonl); do tar -xOf "$tar" --wildcards '*.json'; done |
      jq -r .original_key | sort >names
    [ "$(cat names)" = "day/a b
day/c" ]
  done
  vfm-pack --size 32 -o lat x.tar 2>/dev/null >lat.jsonl
  [ "$(tar -xOf lat/train/x.tar --wildcards '*.json' | jq -r .original_key | sort | head -1)" = "day/a b" ]
  # A key that can stay is its own name.
  vfm-shard -o plain "$MEDIA/foreign.tar" >plain.jsonl
  [ "$(tar -xOf "$(jq -r '.path // empty' plain.jsonl | head -1)" --wildcards '*.json' | jq -s 'any(has("original_key"))')" = false ]
}

@test "two dots in a name: WebDataset's rule, said once, and the video is seen" {
  mkdir f
  cp "$MEDIA/clips/k1.mp4" f/clip0.v1.mp4
  cp "$MEDIA/clips/k2.mp4" f/clip1.v1.mp4
  tar -C f -cf x.tar clip0.v1.mp4 clip1.v1.mp4
  for tool in "vfm-caption -o col" "vfm-embed -o col" "vfm-shard -o set" "vfm-pack --size 32 -o lat"; do
    run --separate-stderr $tool x.tar
    [ "$status" -eq 0 ]
    [ "$(grep -c "'clip0.v1.mp4' of 'x.tar' is member 'v1.mp4' of sample 'clip0'" <<<"$stderr")" -eq 1 ]
  done
  [[ "$(tar -xOf col/x.caption.tar clip0.txt)" == "A "*1-second* ]]
}

@test "a sample without a video that is known is an error, not the caption 'A video.'" {
  mkdir f
  echo data >f/k.xyz
  cp "$MEDIA/clips/k1.mp4" f/l.mp4
  head -c 100 /dev/urandom >f/m.mp4
  tar -C f -cf x.tar k.xyz l.mp4 m.mp4
  run vfm-caption x.tar
  [ "$status" -eq 1 ]
  [ "$(jq -r .input caption-errors.jsonl | tr '\n' ' ')" = "k of 'x.tar' m of 'x.tar' " ]
  [[ "$(errors caption-errors.jsonl | head -1)" == "has no video and no picture that is known by its name, only xyz" ]]
  [ -z "$(tar -xOf x.caption.tar k.txt m.txt)" ]
  [ "$(tar -xOf x.caption.tar m.json | jq -r .caption_source)" = none ]
}

@test "sizes, rates and lengths of others' videos are recorded by who decodes them: bins and filters work" {
  cp "$MEDIA/foreign.tar" f.tar
  vfm-embed f.tar >embed.jsonl
  [ "$(tar -xOf f.embed.tar k3.json | jq -c "[.width, .height, .seconds, .fps, .frames | floor]")" = "[36,64,1,8,8]" ]
  vfm-shard -o set --where 'width >= 36 AND seconds = 1 AND fps = 8 AND frames = 8' f.tar >set.jsonl
  [ "$(jq -s 'map(.samples) | add' set.jsonl)" = 3 ]
  [[ "$(jq -r '.bin // empty' set.jsonl)" != *un*ed* ]]
  [[ "$(jq -r '.bin // empty' set.jsonl | head -1)" == under256p_*_under2s* ]]
  # Measured captions decode too.
  rm f.embed.*
  vfm-caption --from builtin:measure f.tar >/dev/null
  [ "$(tar -xOf f.caption.tar k3.json | jq -c '[.width, .frames]')" = "[36,8]" ]
  vfm-embed f.tar >/dev/null
  [ "$(tar -xOf f.embed.tar k3.json | jq -c 'has("width")')" = false ]
  vfm-shard -o two f.tar >two.jsonl
  [[ "$(jq -r '.bin // empty' two.jsonl)" != *un*ed* ]]
  # What is known already is not measured: columns of our own clips are as they were.
  vfm-clip "$MEDIA/clips/k1.mp4" -o own >/dev/null
  vfm-embed own/*.tar >/dev/null
  [ "$(tar -xOf own/*.embed.tar --wildcards '*.json' | jq -c keys)" = '["video_encoder"]' ]
}

@test "the folder of a dataset is an input of every tool" {
  vfm-shard -o set "$MEDIA/foreign.tar" --split train=0.6,val=0.4 >set.jsonl
  vfm-caption set >caption.jsonl
  [ "$(jq -r '.split // empty' caption.jsonl | sort -u | tr '\n' ' ')" = "train val " ]
  vfm-embed set >embed.jsonl
  [ "$(jq -r '.columns // {} | keys[]' embed.jsonl | sort -u | tr '\n' ' ')" = "caption clip embed " ]
  vfm-embed search 'caption 3' --top 1 set | grep -q '"caption":"caption 3"'
  vfm-shard -o again set >again.jsonl
  [ "$(jq -s 'map(.samples) | add' again.jsonl)" = 5 ]
  vfm-pack --size 32 -o lat set >lat.jsonl
  [ "$(jq -r '.split // empty' lat.jsonl | sort -u | tr '\n' ' ')" = "train val " ]
  rm set/dataset.json
  for tool in vfm-caption vfm-embed "vfm-shard -o new" "vfm-pack -o none"; do
    run --separate-stderr $tool set
    [ "$status" -eq 2 ]
    [[ "$stderr" == *"'set' is not a finished dataset of vfm-shard"* ]]
  done
}

@test "a shard opens no file beside a source that only it names" {
  mkdir f private
  cp "$MEDIA/clips/k1.mp4" f/k.mp4
  echo "{\"source\":\"$PWD/private/diary.mp4\",\"begin\":0,\"end\":1}" >f/k.json
  tar -C f -cf x.tar k.mp4 k.json
  echo secret >private/diary.txt
  run --separate-stderr vfm-caption x.tar
  [ "$status" -eq 0 ]
  [[ "$stderr" == *"private/diary.txt' is not read"*"--sidecars"* ]]
  [[ "$(tar -xOf x.caption.tar k.txt)" == "A "*1-second* ]]
  # By option, and links that lead out of the folder do not.
  ln -s "$PWD/private" linked
  vfm-caption --sidecars private x.tar
  [ "$(tar -xOf x.caption.tar k.txt)" = secret ]
  mkdir allowed
  ln -s "$PWD/private/diary.txt" allowed/diary.txt
  sed -i 's/private/allowed/' f/k.json
  tar -C f -cf x.tar k.mp4 k.json
  vfm-caption --sidecars allowed x.tar 2>/dev/null
  [[ "$(tar -xOf x.caption.tar k.txt)" == "A "*1-second* ]]
  run vfm-caption --sidecars nowhere x.tar
  [ "$status" -eq 2 ]
  # What the user named to vfm-clip stands in its records: videos, and pictures.
  cp "$MEDIA/clips/k2.mp4" v.mp4
  ffmpeg -nostdin -loglevel error -y -f lavfi -i testsrc2=size=64x48 -frames:v 1 p.png
  echo "my words" >v.txt
  echo "my picture" >p.txt
  vfm-clip v.mp4 p.png -o own | vfm-caption | vfm-shard -o set >set.jsonl
  for tar in $(jq -r '.path // empty' set.jsonl); do tar -xOf "$tar" --wildcards '*.txt'; echo; done | grep . | sort >said
  [ "$(cat said)" = "my picture
my words" ]
}
