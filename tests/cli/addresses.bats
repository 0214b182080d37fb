#!/usr/bin/env bats
# Names that are not what must stand there: addresses of a bucket, say, folders in place of files, names without end.
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

@test "the address of a bucket is no folder and no file, in whatever option: refused before any work" {
  local tool option word value count=0
  for tool in vfm-clip vfm-caption vfm-embed vfm-shard vfm-pack vfm-train vfm-generate; do
    while IFS=$'\t' read -r option word; do
      value=s3://bucket/x
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
  for scheme in s3 gs az hf https S3 x-y+1; do
    refuses "'$scheme://bucket/x' is an address, and vfm has only files and folders of this machine here; copy it" \
      vfm-clip -o "$scheme://bucket/x" a.mp4
  done
  refuses "'s3:/bucket/x' is an address" vfm-clip -o s3:/bucket/x a.mp4
  refuses "'s3:/bucket/r.html' is an address" vfm-clip -o out --report s3:/bucket/r.html a.mp4
  refuses "'s3://b/x' is an address" vfm-pack --output=s3://b/x a.tar
  refuses "give the path, '$PWD/out'" vfm-shard -o "file://$PWD/out" a.tar
  refuses "'s3://b/run' is an address" vfm-train recipe.yaml --synthetic 1x2x2 -o s3://b/run
  refuses "'s3://b/x' is an address" vfm-generate --model s3://b/x -o out words
  vfm-clip -o ./s3://bucket/x a.mp4 >m
  [ -e s3:/bucket/x ]
}

@test "arguments: a video may have an address of the web or one that is allowed, a shard none" {
  refuses "'s3' is not a protocol that vfm reads" vfm-clip -o out a.mp4 s3://bucket/a.mp4
  refuses "allow others with --protocols ftp" vfm-clip -o out ftp://127.0.0.1:9/a.mp4
  local tool
  for tool in vfm-caption vfm-embed vfm-pack; do
    refuses "'https://host/a.tar' is an address" "$tool" -o out a.tar https://host/a.tar
  done
  refuses "'s3://bucket/r.yaml' is an address" vfm-train s3://bucket/r.yaml -o run
  run --separate-stderr vfm-clip -o out http://127.0.0.1:9/a.mp4 a.mp4
  [ "$status" -eq 1 ]
  [ "$(jq -r .input out/errors.jsonl)" = http://127.0.0.1:9/a.mp4 ]
  # Text is none, whatever stands in it.
  run --separate-stderr vfm-shard --where "source LIKE 's3://%'" -o none a.tar
  [[ "$stderr" != *"is an address"* ]]
}

@test "recipes: no value is an address" {
  refuses "'data.folders' in argument 'data.folders=[s3://b/x]': 's3://b/x' is an address" \
    vfm-train /dev/null 'data.folders=[s3://b/x]' -o run
  printf 'data:\n  folders: [a, gs://b/x]\n' >../recipe.yaml
  refuses "'data.folders' in line 2 of" vfm-train ../recipe.yaml -o run
}

@test "records: what names an address is recorded as refused, and the others are done" {
  local tool
  printf '%s\n' s3://b/x.tar '{"kind":"shard","path":"gs://b/y.tar"}' a.tar \
    '{"kind":"shard","path":"a.tar","columns":{"clip":"a.tar","caption":"s3://b/c.tar"}}' >list.jsonl
  for tool in vfm-caption vfm-embed vfm-pack vfm-shard; do
    run --separate-stderr "$tool" -o "$tool" list.jsonl
    [ "$status" -eq 1 ]
    [[ "$output" = *'"kind":"end"'* ]]
    [ "$(jq -r '.input + " " + .code' "$tool"/*errors.jsonl)" = $'s3://b/x.tar refused\ngs://b/y.tar refused\na.tar refused' ]
  done
  printf '%s\n' s3://b/x.mp4 a.mp4 | run --separate-stderr vfm-clip -o clips
  [ "$(jq -r '.input + " " + .code' clips/errors.jsonl)" = "s3://b/x.mp4 refused" ]
  [ -n "$(ls clips/*.tar)" ]
  [ ! -e s3: ] && [ ! -e gs: ]
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
