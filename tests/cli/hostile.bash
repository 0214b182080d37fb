# Damaged files through each tool; of tests/cli/hostile.bats, a few, and tests/nightly/hostile.bats, thousands.
# All work in the current folder, which holds `seeds`, media of tests/cli/media-seeds. A tool must end by itself, with status
# 0 or 1, within its time, without a word of a sanitizer, and give each record of an error a code.
# SPDX-License-Identifier: Apache-2.0

known_codes='all(.code | IN("open","refused","format","decode","limit","timeout","crash","memory","empty","missing","line","duplicate","other"))'
here=${VFM_ROOT:?}/tests/cli

# endures NAME COMMAND...: its output in NAME.out and NAME.err. 124 is the status of a hang, above 128 that of a signal.
endures() {
  local name=$1 status=0
  shift
  timeout "${hostile_seconds:-120}" "$@" >"$name.out" 2>"$name.err" || status=$?
  if [ "$status" -gt 1 ] || grep -aE 'Sanitizer|runtime error|internal error' "$name.err"; then
    echo "$name: status $status of: $*"
    tail -n 20 "$name.err"
    return 1
  fi
}

# damaged_media FIRST COUNT [OPTION...]: through vfm-clip; each file is cut, has a code, or the contents of another one.
damaged_media() {
  local first=$1 count=$2
  shift 2
  rm -rf damaged clips
  "$here/mutate" seeds damaged "$first" "$count"
  find damaged -type f | sort >asked
  endures clips vfm-clip -j8 --timeout 20s --max-pixels 1M --encoder libx264:ultrafast --stitch none -o clips "$@" - <asked || return 1
  jq -se "$known_codes and all(.code != \"other\")" clips/errors.jsonl >codes || { cat clips/errors.jsonl; return 1; }
  sort -u <(jq -r .input clips/errors.jsonl) <(jq -r '.source // empty, (.sources // [])[]' clips.out) \
    <(sed -nE "s/^vfm-clip: '(.*)' has the same contents as .*/\1/p" clips.err) >told
  diff told asked
}

# decoding TOOL: the limits of what it decodes. vfm-shard decodes nothing.
decoding() { [[ $1 = vfm-shard* ]] || echo "--timeout 20s --max-pixels 1M"; }

# each_tool NAME INPUT...: through the four tools that read shards.
each_tool() {
  local tool name=$1 folder
  shift
  for tool in "vfm-caption --from builtin:measure" vfm-embed "vfm-pack --size 32 --frames 5" vfm-shard; do
    folder=$name-${tool%% *}
    rm -rf "$folder"
    mkdir "$folder"
    # shellcheck disable=SC2046,SC2086
    endures "$folder" $tool $(decoding "$tool") -o "$folder" "$@" || return 1
    local log
    for log in "$folder"/*errors.jsonl; do
      [ ! -e "$log" ] || jq -se "$known_codes" "$log" >codes || { cat "$log"; return 1; }
    done
  done
}

# damaged_members FIRST COUNT: damaged media as members of a whole shard.
damaged_members() {
  rm -rf damaged members
  "$here/mutate" seeds damaged "$1" "$2"
  mkdir members
  local file key
  for file in damaged/*; do
    key=${file##*/}
    mv "$file" "members/$key"
    echo '{"caption":"x"}' >"members/${key%%.*}.json"
  done
  tar --format=ustar --sort=name -C members -cf members.tar .
  each_tool members members.tar
}
# whole_shards: into `shards`, of small clips: what damaged_shards and damaged_lists damage.
whole_shards() {
  mkdir -p shards lists
  vfm-clip -j1 --encoder libx264:ultrafast -o whole seeds/h264.mp4 seeds/moving.gif seeds/picture.png >whole.jsonl
  vfm-caption -o captions <whole.jsonl | vfm-embed -o vectors >embedded.jsonl
  cp whole/*.tar captions/*.tar vectors/*.tar shards
  gzip -k shards/*.tar
  cp whole.jsonl embedded.jsonl lists
}

# damaged_shards FIRST COUNT: tars, also compressed ones.
damaged_shards() {
  rm -rf damaged
  "$here/mutate" shards damaged "$1" "$2"
  each_tool shards damaged/*
}

# damaged_lists FIRST COUNT: manifests.
damaged_lists() {
  rm -rf damaged
  "$here/mutate" lists damaged "$1" "$2"
  each_tool lists damaged/*.jsonl
  endures clips vfm-clip -j2 --encoder libx264:ultrafast -o clips-of-lists damaged/*.jsonl
}
