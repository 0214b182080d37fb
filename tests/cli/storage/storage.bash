# What the tests of data in buckets share: a small work for each program, and comparisons with the same work on disk.
# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0

# shellcheck disable=SC1091 # another file
source "${VFM_ROOT:?}/tests/support/bucket.bash"

# shellcheck disable=SC2034 # of those who load this
programs=(clip caption embed shard pack train generate)

# make_work: for a setup_file that has started the server. The folder "media" and the bucket "media" have the same: what
# each program reads. The folder of the file is the current one then.
make_work() {
  draw_dataset 8 || return 1
  mkdir media
  vfm-pack --size 64 --frames 17 -o media/latents <shards.jsonl >latents.jsonl 2>said || return 1
  quick_recipe media/model media/latents
  cp -r raw media/raw
  rm -f media/model.jsonl media/raw/held-out.txt
  mkdir media/tars
  find clips \( -name '*-?????.tar' -o -name '*-?????.tar.idx' -o -name '*-?????.idx' \) -exec cp {} media/tars/ \;
  bucket media
  bucket_objects put media media
}

# names_in IN FOLDER SUFFIX: the files of media/FOLDER, as they are called in IN.
names_in() { (cd media && printf "$1/%s\n" "$2"/*"$3"); }

# work_in PROGRAM IN OUT THREADS: sets `command`, which reads below IN and writes OUT, for less than a second.
work_in() {
  local names
  case $1 in
    clip) mapfile -t names < <(names_in "$2" raw .mp4) && command=(vfm-clip "-j$4" --min-length 1s -o "$3" "${names[@]}") ;;
    caption | embed) mapfile -t names < <(names_in "$2" tars .tar) && command=("vfm-$1" "-j$4" -o "$3" "${names[@]}") ;;
    shard) mapfile -t names < <(names_in "$2" tars .tar) && command=(vfm-shard "-j$4" --keep-duplicates -o "$3" "${names[@]}") ;;
    pack)
      mapfile -t names < <(names_in "$2" tars .tar)
      command=(vfm-pack "-j$4" --size 64 --frames 17 -o "$3" "${names[@]}")
      ;;
    train)
      command=(vfm-train "$VFM_ROOT/examples/recipes/quickstart.yaml" "-j$4" --data "$2/latents" -o "$3" model.num_layers=1
        model.num_attention_heads=2 model.adaln_lora_dim=8 schedule.warmup=1 validation.every=0 train.steps=4 train.checkpoint_every=2
        train.keep=1)
      ;;
    generate) command=(vfm-generate --model "$2/model" "-j$4" --steps 2 -o "$3" 'a red circle') ;;
    *) return 1 ;;
  esac
}

# settle FOLDER NAME: what was written as NAME is called OUT in its texts, and what tells times, processes and inodes is gone.
# Beside shards of the same bucket, sources have relative names.
settle() {
  find "$1" \( -name .vfm-clip.ledger -o -name timing.jsonl -o -name 'events.*' \) -delete
  find "$1" -type f \( -name '*.json*' -o -name '*.html' -o -name '*.md' -o -name '*.yaml' \) \
    -exec sed -i "s#$2#OUT#g; s#\(\.\./\)\+raw/#RAW/#g; s#s3://[a-z]*/raw/#RAW/#g" {} +
}

# as_wanted PLACE PROGRAM [KILLED]: whether s3://PLACE has what the program's work makes on a disk (wanted). A program that was
# killed while it tried the store's conditions leaves the object with which it tried. vfm-clip may leave the notes of a source
# that was finished a moment before, as on a disk.
as_wanted() {
  rm -rf got
  bucket_objects get "$1" got
  [ -z "${3-}" ] || rm -f got/.vfm-probe-* got/parts/.vfm-probe-* got/.*.settings
  settle got "s3://$1"
  diff -r "wanted/$2" got
}

# wanted PROGRAM: makes wanted/PROGRAM, from the bucket, on the disk.
wanted() {
  [ ! -e "wanted/$1" ] || return 0
  mkdir -p wanted
  work_in "$1" s3://media "wanted/$1" 2
  "${command[@]}" >"wanted/$1.jsonl" 2>"wanted/$1.err" || { cat "wanted/$1.err"; return 1; }
  settle "wanted/$1" "wanted/$1"
}

# calm: waits until what a killed program had under way has reached the server, or never will.
calm() {
  local before=
  until [ "$before" = "$(wc -c <"$PROXY/requests.jsonl")" ]; do
    before=$(wc -c <"$PROXY/requests.jsonl")
    sleep 0.3
  done
}

# strike_at NTH [WHICH]: a line for `faults` that kills the command of `victim` at its NTH request that writes, of WHICH.
strike_at() {
  printf '#!/bin/sh\nexec kill -KILL -- -"$(cat %q)"\n' "$PWD/victim" >strike
  chmod +x strike
  echo "run program=$PWD/strike method=PUT,POST ${2-} nth=$1"
}
# victim COMMAND...: runs it, until it ends or is killed.
victim() {
  rm -f victim
  # The program waits until its group is known.
  setsid sh -c 'echo $$ >victim; exec "$@"' sh "$@" >out.txt 2>err 3>&- &
  wait $! || true
  calm
}

# in_a_minute COMMAND...: it ends before that, or is killed.
in_a_minute() { timeout -k 1 60 "$@"; }

# make_part_sources COUNT BUCKET: videos in s3://BUCKET/raw, whose addresses are in the file "names": small ones, some of more
# than a sixteenth of a shard of 128 KiB, a twin, and one that is no video.
make_part_sources() {
  local i
  mkdir media
  make_shots shots.mp4
  make_video plain.mp4 0.7
  # Sources that differ in a box that no reader looks at.
  for i in $(seq -w "$1"); do { cat plain.mp4; printf '\0\0\0\020free%08d' "$((10#$i))"; } >"media/v$i.mp4"; done
  for i in 1 2 3; do
    { cat shots.mp4; printf '\0\1\0\010free'; head -c 65536 /dev/zero | tr '\0' $i; } >media/large$i.mp4
  done
  cp media/large2.mp4 media/twin.mp4
  echo no video >media/none.mp4
  bucket "$2"
  bucket_objects put media "$2/raw"
  (cd media && printf "s3://$2/raw/%s\n" *) >names
}

list_parts() { vfm-clip list --shard-size 128KiB -o "$1" -n "$2" <names >listed.jsonl; }

# make_undisturbed: the folder "undisturbed", which one process makes on the disk of the same sources, with captions in three parts.
make_undisturbed() {
  local i
  list_parts undisturbed 1
  vfm-clip -o undisturbed --part 0/1 >undisturbed.jsonl 2>said
  for i in 0 1 2; do vfm-caption --part $i/3 undisturbed >captions || return 1; done
  vfm-shard join undisturbed >joined
  rm -r undisturbed/parts
  settle undisturbed undisturbed
}

# same_as_undisturbed ADDRESS: it has the files of "undisturbed", but for those that tell who did what, and no lease and no upload is left.
same_as_undisturbed() {
  local left
  rm -rf got
  bucket_objects get "${1#s3://}" got
  # A program that was killed while it tried the store's conditions leaves this.
  rm -f got/parts/.vfm-probe-*
  left=$(find got -name 'lease*' -o -name temporary -o -name 'unfinished*' -o -name failed.json -o -name '.*.tmp')
  [ -z "$left" ] || { echo "$left"; return 1; }
  [ -z "$(bucket_objects uploads "${1#s3://}")" ] || { echo "an upload is left"; return 1; }
  rm -r got/parts
  settle got "$1"
  diff -r undisturbed got
}
