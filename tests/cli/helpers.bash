# Common ground of the command line tests: the tools on PATH, a fresh folder per test, small media.
# SPDX-License-Identifier: Apache-2.0

# The repository, also where nobody says where it is.
export VFM_ROOT=${VFM_ROOT:-$(cd "${BASH_SOURCE[0]%/*}/../.." && pwd)}

setup() { setup_tools; }

# setup_tools: what a test file with a setup() of its own calls in it.
setup_tools() {
  export LC_ALL=C.UTF-8
  : "${VFM_BIN:?set VFM_BIN to the folder that holds the built tools}"
  export PATH="$VFM_BIN:$PATH"
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
  unset MAKEFLAGS VFM_SLOTS VFM_SHARE VFM_SHARE_REPORT
  cd "$BATS_TEST_TMPDIR" || return 1
}

# needs_mpi [PROGRAM]: skips the test where the program was built without MPI or cannot be started on ranks.
needs_mpi() {
  has_mpi "$@" || skip "built without MPI"
  command -v mpirun >/dev/null || skip "no mpirun"
}
has_mpi() { "${1:-vfm-train}" --version | grep -qi 'mpi: *yes'; }

# Of series of the same kind some stand for all by day; scripts/nightly runs these files once more, with all.
at_night() { [ -n "${VFM_NIGHT-}" ]; }
# by_time: of the lines of standard input those that begin with "night " only then, without that word.
by_time() { if at_night; then sed 's/^night //'; else grep -v '^night '; fi; }

# tiny_recipe [LAYERS [HEADS]] <SECTIONS: tiny.yaml, a network of a few thousand parameters for what make-latents makes,
# and the recipe's other sections.
tiny_recipe() {
  echo "model: {num_attention_heads: ${2:-2}, attention_head_dim: 12, num_layers: ${1:-2}, adaln_lora_dim: 4, max_size: [4, 8, 8]}"
  cat
} >tiny.yaml

# wide_recipe FILE LAYERS <SECTIONS: a network that is large beside a pack of few tokens.
wide_recipe() {
  { echo "model: {num_attention_heads: 8, attention_head_dim: 64, num_layers: $2, mlp_ratio: 4}" && cat; } >"$1"
}

# quick_recipe OUT LATENTS SETTING...: a run of quickstart's recipe with a small network; the last of two settings counts.
quick_recipe() {
  local out=$1 latents=$2
  shift 2
  vfm-train "$VFM_ROOT/examples/recipes/quickstart.yaml" train.steps=1 model.num_layers=1 \
    model.num_attention_heads=2 model.adaln_lora_dim=8 validation.every=0 "$@" --data "$latents" -o "$out" >"$out.jsonl"
}

# paper_commands: the commands of vfm-paper(7), with the folders that they name.
paper_commands() {
  sed -n "s/^\\$ //p" "$VFM_ROOT/man/vfm-paper.7.scd" | sed "s|EXAMPLES|$VFM_ROOT/examples|g; s|SCRIPTS|$VFM_ROOT/scripts|g"
}

# draw_dataset SHOTS: for a setup_file. Drawn videos in raw, their shards in dataset, named in shards.jsonl, all
# in the file's folder, which is the current one then.
draw_dataset() {
  export LC_ALL=C.UTF-8 PATH="${VFM_BIN:?}:$PATH"
  root=$VFM_ROOT
  cd "$BATS_FILE_TMPDIR" || return 1
  "$root/scripts/draw-corpus" raw --shots "$1"
  find raw -name '*.mp4' | sort | vfm-clip --min-length 1s -o clips | vfm-caption | vfm-embed |
    vfm-shard --keep-duplicates -o dataset >shards.jsonl
}

# fails STATUS COMMAND...: stderr in the file err.
fails() {
  local want=$1 got=0
  shift
  "$@" >out.txt 2>err || got=$?
  [ "$got" = "$want" ] || { echo "status $got, not $want"; cat err; return 1; }
}

# refused TEXT COMMAND...: exit 2, nothing on standard output, TEXT on standard error.
refused() {
  local text=$1
  shift
  run --separate-stderr "$@" </dev/null
  echo "$*: $status $output $stderr"
  [ "$status" -eq 2 ] && [ -z "$output" ] && [[ "$stderr" = *"$text"* ]]
}

# same_pages A B: whether two reports are the same bytes, but for what they are of, and the day.
same_pages() { cmp <(sed '/^<p class="about">/d' "$1") <(sed '/^<p class="about">/d' "$2"); }

# await COMMAND...: again and again until it succeeds; fails after a minute.
await() {
  for _ in $(seq 3000); do
    ! "$@" >/dev/null 2>&1 || return 0
    sleep 0.02
  done
  echo "in a minute this did not come true: $*"
  return 1
}

# quiet_ffmpeg ARGS...: ffmpeg that speaks only of errors and asks nothing.
quiet_ffmpeg() { ffmpeg -nostdin -loglevel error -y "$@"; }

# make_video FILE [SECONDS [FILTER]]: a small H.264 video of a lavfi source (default: testsrc2, 96x64).
make_video() {
  quiet_ffmpeg -f lavfi -i "${3:-testsrc2=size=96x64:rate=12}" -t "${2:-2}" \
    -c:v libx264 -preset ultrafast -pix_fmt yuv420p "$1"
}

# make_shots FILE: three shots of 1.5 s, hard cuts at frames 18 and 36 (12 frames a second).
make_shots() {
  quiet_ffmpeg -f lavfi -i "color=red:size=96x64:rate=12:duration=1.5" \
    -f lavfi -i "testsrc2=size=96x64:rate=12:duration=1.5" \
    -f lavfi -i "color=blue:size=96x64:rate=12:duration=1.5" \
    -filter_complex "[0][1][2]concat=n=3:v=1" -c:v libx264 -preset ultrafast -pix_fmt yuv420p "$1"
}

# make_shards FOLDER <SAMPLES: shards by hand (tests/data/make_shards.py).
make_shards() { "$VFM_ROOT/tests/data/make_shards.py" "$@"; }

# clip_model FOLDER: a small CLIP that sees and reads.
clip_model() {
  local golden=$VFM_ROOT/tests/golden
  cp -r "$golden/sentences/clip" "$1"
  sed 's/24/8/g' "$golden/picture_encoders/clip/preprocessor_config.json" >"$1/preprocessor_config.json"
}

# turn FROM TO [OPTION...]: the same pictures, to be shown turned by a quarter. FFmpeg 7 writes no rotation from metadata, and
# FFmpeg 5 does not know the option.
turn() {
  quiet_ffmpeg -display_rotation 90 -i "$1" "${@:3}" -c copy "$2" 2>/dev/null ||
    quiet_ffmpeg -i "$1" "${@:3}" -c copy -metadata:s:v rotate=90 "$2"
}

# cost_of COMMAND...: what that run of vfm-train would cost.
cost_of() { "$1" cost "${@:2}"; }

# records FILE...: what tools wrote to standard output, without the lines that begin and end it.
records() { sed -E '/^\{"kind":"(begin|end)",/d' "$@"; }

# only_records: the same with what `run` kept, in $output and $lines.
only_records() {
  output=$(records <<<"$output")
  lines=()
  [ -z "$output" ] || mapfile -t lines <<<"$output"
}

# without_folder FILE...: manifests that were made in several folders, as if it had been in one.
without_folder() { sed -i 's/^\({"kind":"begin",.*\),"folder":"[^"]*"}$/\1}/' "$@"; }

# tree_hash DIR: one hash over names and contents of all files below DIR, in a fixed order; but for what vfm-clip
# remembers of its sources, which has their inodes.
tree_hash() {
  (cd "$1" && find . -type f ! -name .vfm-clip.ledger | LC_ALL=C sort | while read -r f; do sha256sum "$f"; done) | sha256sum
}

# column_hashes DIR: of the columns in it; the notes beside them name the folder.
column_hashes() { (cd "$1" && sha256sum ./*.tar*); }

# kill_at_random TIMES COMMAND...: starts the command and kills it with SIGKILL after a short random time, TIMES times.
kill_at_random() {
  local times=$1 pid
  shift
  for _ in $(seq "$times"); do
    setsid "$@" >/dev/null 2>&1 3>&- &
    pid=$!
    sleep "0.$((RANDOM % 8 + 1))"
    kill -KILL -- "-$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
}

# most_memory COMMAND...: kilobytes that it had at once.
most_memory() {
  python3 -c 'import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)' "$@"
}

# own_memory COMMAND...: the most bytes that it had of its own, with its output thrown away.
own_memory() {
  "$VFM_ROOT/tests/cli/own-memory" memory "$@" >/dev/null && cut -d' ' -f1 memory
}

# first_folder: one picture in one.tar, and the folder of its latents, "first", from which tests/bench/many_packed
# copies the options.
first_folder() {
  mkdir one
  quiet_ffmpeg -f lavfi -i color=red:size=16x16 -frames:v 1 one/k.png
  tar --format=ustar -C one -cf one.tar k.png
  vfm-pack --size 16 -o first one.tar >/dev/null
}

# many_packed COUNT IN_SHARD: the folder COUNT, of so many samples in shards that all are finished: COUNT/out, whose input is
# COUNT/shards.jsonl.
many_packed() {
  [ -e first ] || first_folder
  mkdir "$1"
  cp -r first "$1/first"
  [ -x "${VFM_BUILD:?}/tests/bench/many_packed" ] || ninja -C "$VFM_BUILD" tests/bench/many_packed >/dev/null
  "$VFM_BUILD/tests/bench/many_packed" "$1" "$1" "$2"
}

# other_program FILE: one that writes FILE and does not come to an end; let_go, and it has died.
other_program() {
  mkdir -p "$(dirname "$1")"
  exec 9>"$(dirname "$1")/.$(basename "$1").tmp"
  flock 9
}
let_go() { exec 9>&-; }

# waits_for FILE COMMAND...: the command waits for the other program that writes FILE, and says so. It runs on;
# wait for $waiting.
waits_for() {
  local file=$1
  shift
  "$@" >waiting.out 2>waiting.err 3>&- 9>&- &
  waiting=$!
  for _ in $(seq 600); do
    ! grep -qF "another program is writing '$file'; waiting for it" waiting.err || return 0
    sleep 0.05
  done
  cat waiting.err
  return 1
}

# tells_its_memory OPTION...: vfm-generate cost tells 0.8 to 1.3 of what the clip of the options takes, as a
# stream, and as a file in the folder "taken".
tells_its_memory() {
  local told took output
  for output in - taken; do
    told=$(vfm-generate cost --device cpu "$@" -q | jq '.memory_bytes.peak / 1024 | floor')
    took=$(most_memory vfm-generate --device cpu "$@" -o $output --force -j1 'a red circle moves left')
    echo "$* -o $output: told $told KiB, took $took"
    [ $((10 * told)) -ge $((8 * took)) ] || return 1
    [ $((10 * told)) -le $((13 * took)) ] || return 1
  done
}
