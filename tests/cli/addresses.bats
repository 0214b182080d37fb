#!/usr/bin/env bats
# Names that are not what must stand there: addresses that nobody reads, say, folders in place of files, names without end.
# SPDX-License-Identifier: Apache-2.0
load helpers
bats_require_minimum_version 1.5.0

setup_file() {
  cd "$BATS_FILE_TMPDIR" || return 1
  make_video a.mp4 1 'testsrc=size=64x48:rate=12'
  echo words >a.txt
  tar -cf a.tar a.mp4 a.txt
}
setup() {
  setup_tools
  mkdir here
  cd here || return 1
  ln -s "$BATS_FILE_TMPDIR"/a.{mp4,tar} .
}

# refuses TEXT COMMAND...: as refused(), and no file is made.
refuses() {
  refused "$@"
  [ "$(echo *)" = "a.mp4 a.tar" ]
}

# options TOOL: its options that name files or folders, one a line, as option, TAB, word.
options() {
  "$1" --help-all | sed -nE 's/^ +(-., )?(-[^ ]*) +([^ ]*(DIR|FILE|PATH|RUN|SOURCE)[^ ]*).*/\2\t\3/p'
}

@test "an address that vfm does not read is no folder and no file, in whatever option: refused before any work" {
  local tool option word value count=0
  for tool in vfm-clip vfm-caption vfm-embed vfm-shard vfm-pack vfm-train vfm-generate; do
    while IFS=$'\t' read -r option word; do
      value=gs://bucket/x
      case $word in
        NAME=*@FILE) value=name=@$value ;;
        *@FILE) value=@$value ;;
        NAME=*) value=name=$value ;;
        SOURCE*) value=model:$value ;;
      esac
      run --separate-stderr "$tool" "${option##*,}" "$value" </dev/null
      # One that goes with another option alone, or must be there, is refused for that.
      [ "$status" -eq 2 ] && [ -z "$output" ] &&
        [[ "$stderr" = *"address"* || "$stderr" = *"require"* || "$stderr" = *"is required"* || "$stderr" = *"does not exist: "* ]] ||
        { echo "$tool $option $value: $status $stderr"; false; }
      [ "$(echo *)" = "a.mp4 a.tar" ]
      count=$((count + 1))
    done < <(options "$tool")
  done
  echo "$count"
  [ "$count" -gt 45 ]
}

@test "outputs: every scheme, also file, with what to do; ./ makes a path of it" {
  local scheme
  for scheme in gs az hf S3 HTTPS x-y+1; do
    refuses "'$scheme://bucket/x' is an address of a kind that vfm does not read; give one of s3:// or https://" \
      vfm-clip -o "$scheme://bucket/x" a.mp4
  done
  refuses "nothing can be written at 'https://host/x'; name a path, or s3://" vfm-clip -o https://host/x a.mp4
  refuses "nothing can be written at 'https://host/r.html'" vfm-clip -o out --report https://host/r.html a.mp4
  refuses "'s3:/bucket/x' is no address; write 's3://bucket/x'" vfm-clip -o s3:/bucket/x a.mp4
  refuses "'s3:/bucket/r.html' is no address" vfm-clip -o out --report s3:/bucket/r.html a.mp4
  refuses "'gs://b/x' is an address" vfm-pack --output=gs://b/x a.tar
  refuses "give the path, '$PWD/out'" vfm-shard -o "file://$PWD/out" a.tar
  refuses "'gs://b/run' is an address" vfm-train recipe.yaml --synthetic 1x2x2 -o gs://b/run
  refuses "'gs://b/x' is an address" vfm-generate --model gs://b/x -o out words
  vfm-clip -o ./s3://bucket/x a.mp4 >m
  [ -e s3:/bucket/x ]
}

@test "arguments: a video may have an address of a bucket, of the web or one that is allowed, a shard of the first two" {
  refuses "'gs' is not a protocol that vfm reads" vfm-clip -o out a.mp4 gs://bucket/a.mp4
  refuses "allow others with --protocols ftp" vfm-clip -o out ftp://127.0.0.1:9/a.mp4
  local tool
  for tool in vfm-caption vfm-embed vfm-pack; do
    refuses "'ftp://host/a.tar' is an address" "$tool" -o out a.tar ftp://host/a.tar
  done
  refuses "'gs://bucket/r.yaml' is an address" vfm-train gs://bucket/r.yaml -o run
  VFM_NET_SECONDS=1 run --separate-stderr vfm-clip -o out http://127.0.0.1:9/a.mp4 a.mp4
  [ "$status" -eq 1 ]
  [ "$(jq -r .input out/errors.jsonl)" = http://127.0.0.1:9/a.mp4 ]
  # Text is none, whatever stands in it.
  run --separate-stderr vfm-shard --where "source LIKE 's3://%'" -o none a.tar
  [[ "$stderr" != *"is an address"* ]]
}

@test "recipes: no value is an address that vfm does not read" {
  refuses "'data.folders' in argument 'data.folders=[az://b/x]': 'az://b/x' is an address" \
    vfm-train /dev/null 'data.folders=[az://b/x]' -o run
  printf 'data:\n  folders: [a, gs://b/x]\n' >../recipe.yaml
  refuses "'data.folders' in line 2 of" vfm-train ../recipe.yaml -o run
}

@test "records: what names an address is recorded as refused, and the others are done" {
  local tool
  printf '%s\n' az://b/x.tar '{"kind":"shard","path":"gs://b/y.tar"}' a.tar \
    '{"kind":"shard","path":"a.tar","columns":{"clip":"a.tar","caption":"az://b/c.tar"}}' >list.jsonl
  for tool in vfm-caption vfm-embed vfm-pack vfm-shard; do
    run --separate-stderr "$tool" -o "$tool" list.jsonl
    [ "$status" -eq 1 ]
    [[ "$output" = *'"kind":"end"'* ]]
    [ "$(jq -r '.input + " " + .code' "$tool"/*errors.jsonl)" = $'az://b/x.tar refused\ngs://b/y.tar refused\na.tar refused' ]
  done
  printf '%s\n' az://b/x.mp4 a.mp4 | run --separate-stderr vfm-clip -o clips
  [ "$(jq -r '.input + " " + .code' clips/errors.jsonl)" = "az://b/x.mp4 refused" ]
  [ -n "$(ls clips/*.tar)" ]
  [ ! -e az: ] && [ ! -e gs: ]
}

@test "a folder of videos or of shards in place of these: what to type" {
  mkdir videos shards
  cp a.tar shards
  run --separate-stderr vfm-clip -o out videos a.mp4
  [ "$status" -eq 1 ]
  [[ "$stderr" = *"'videos' is a folder, not a video; for the videos in it: find 'videos' -type f | vfm-clip ..."* ]]
  [ "$(jq -r .code out/errors.jsonl)" = open ]
  run --separate-stderr vfm-clip shots videos
  [[ "$stderr" = *"'videos' is a folder"* ]]
  local tool
  for tool in vfm-shard vfm-caption vfm-pack; do
    run --separate-stderr "$tool" -o "of-$tool" shards
    [ "$status" -eq 2 ]
    [[ "$stderr" = *"'shards' is not a finished dataset of vfm-shard: it has no dataset.json, which vfm-shard writes last; for the shards in it name them: 'shards'/*.tar" ]]
  done
  run --separate-stderr vfm-shard -o of videos
  [[ "$stderr" = *"vfm-shard writes last" ]]
}

@test "a name of 200 kB: the message has its ends" {
  local name
  name=$(printf 'x%.0s' $(seq 200000))
  run --separate-stderr vfm-clip -o out <<<"$name"
  [ "$status" -eq 1 ]
  [ "${#stderr}" -lt 3000 ]
  [[ "$stderr" = *"xxx [... "*" bytes ...] xxx"* ]]
}
