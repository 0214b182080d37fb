#!/usr/bin/env bats
# vfm-embed index: made, added to, searched, damaged, out of date; refused in a build without FAISS.
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # stderr is of run --separate-stderr
load ../helpers
bats_require_minimum_version 1.5.0

# Once: three shards with 25,000 made-up vectors in clusters, 20 queries, and two clips.
setup_file() {
  export MADE="$BATS_FILE_TMPDIR/made"
  local shard
  "$VFM_BUILD/tests/bench/many_vectors" "$MADE" 25000 64 20
  mkdir "$MADE/clips"
  for shard in red blue; do
    ffmpeg -nostdin -loglevel error -y -f lavfi -i "color=gray:size=96x96:rate=8,drawbox=x=8:y=8:w=30:h=30:color=$shard:t=fill" \
      -t 1 -c:v libx264 -preset ultrafast -pix_fmt yuv420p "$MADE/clips/$shard.mp4"
  done
}

setup() {
  setup_tools
  case $BATS_TEST_DESCRIPTION in
    *"without FAISS"*) ;;
    *) has_faiss || skip "built without FAISS" ;;
  esac
}
has_faiss() { vfm-embed --version | grep -q FAISS; }

# make_clips NAME: NAME.tar of two clips, and their captions and sources as NAME.caption.tar.
make_clips() {
  mkdir "$1.d" "$1.captions"
  cp "$MADE/clips/red.mp4" "$1.d/$1r.mp4"
  cp "$MADE/clips/blue.mp4" "$1.d/$1b.mp4"
  for key in r b; do
    printf 'a square of %s' "$1" >"$1.captions/$1$key.txt"
    echo "{\"source\":\"$key.mp4\",\"begin\":1,\"end\":2}" >"$1.captions/$1$key.json"
  done
  pack "$1"
}
pack() {
  tar --format=ustar --sort=name -C "$1.d" -cf "$1.tar" .
  tar --format=ustar --sort=name -C "$1.captions" -cf "$1.caption.tar" .
}
matches() { records | jq -r 'select(.kind == "match") | "\(.query) \(.key) \(.score)"'; }

@test "an index has the same bytes at any -j; nearly all of the best are found, with the scores of all comparisons" {
  vfm-embed index one -j 1 "$MADE"/*.tar >made
  records <made | jq -e '.kind == "index" and .vectors == 25000 and .shards == 3 and .added == 3 and .dropped == 0'
  vfm-embed index two -j 2 "$MADE"/*.tar
  cmp one two
  vfm-embed search "$MADE/queries.npy" -j 2 --index one | matches >found
  vfm-embed search "$MADE/queries.npy" -j 1 --index one | matches >again
  cmp found again
  # It names the shards from its own folder: wherever it is made and read, it is the same.
  (index=$PWD/three && cd "$MADE" && vfm-embed index "$index" -j 2 ./*.tar)
  cmp one three
  (cd / && vfm-embed search "$MADE/queries.npy" -j 2 --index "$OLDPWD/one") | matches | cmp found -
  vfm-embed search "$MADE/queries.npy" --index one --exact -j 1 | matches >exact
  vfm-embed search "$MADE/queries.npy" --index one --exact -j 2 | matches | cmp exact -
  [ "$(wc -l <exact)" -eq 200 ]
  [ "$(wc -l <found)" -eq 200 ]
  # The same sample has the same score in both; 95 % of the best are the same.
  [ "$(sort found exact | uniq -d | wc -l)" -ge 190 ]
  [ "$(cut -d' ' -f1,2 found exact | sort | uniq -d | wc -l)" -eq "$(sort found exact | uniq -d | wc -l)" ]
  # What compares all is right: the first two queries once more, with all vectors, in double.
  python3 - "$MADE" <<'PY'
import glob, math, struct, sys, tarfile

def unit(data):
    values = struct.unpack(f"<{len(data) // 2}e", data)
    length = math.sqrt(sum(v * v for v in values))
    return [v / length for v in values]

rows = {}
for path in sorted(glob.glob(sys.argv[1] + "/*.tar")):
    with tarfile.open(path) as tar:
        for member in tar:
            if member.name.endswith(".video.npy"):
                rows[member.name.split(".")[0]] = unit(tar.extractfile(member).read()[-128:])
queries = open(sys.argv[1] + "/queries.npy", "rb").read()[-20 * 128 :]
exact = [line.split() for line in open("exact")]
for number in range(2):
    query = unit(queries[number * 128 : number * 128 + 128])
    scores = {key: sum(map(float.__mul__, query, row)) for key, row in rows.items()}
    best = sorted(scores, key=scores.get, reverse=True)[:10]
    assert best == [key for q, key, _ in exact if q == str(number)], number
    for q, key, score in exact:
        assert q != str(number) or abs(scores[key] - float(score)) < 1e-4
PY
}

# bats test_tags=night
@test "the bytes and answers do not depend on how many threads OpenMP would have" {
  OMP_NUM_THREADS=1 vfm-embed index one -j 2 "$MADE"/*.tar
  OMP_NUM_THREADS=3 vfm-embed index three -j 1 "$MADE"/*.tar
  cmp one three
  OMP_NUM_THREADS=1 vfm-embed search "$MADE/queries.npy" --index one | matches >found
  OMP_NUM_THREADS=3 vfm-embed search "$MADE/queries.npy" --index one | matches | cmp found -
}

@test "shards are added without the ones that are there; the answer is as if all had been there" {
  cp "$MADE"/*.tar "$MADE"/*.idx .
  vfm-embed index part 000000.tar 000001.tar
  rm 000002.tar.idx # its headers say where its samples are
  strace -f -o calls -e trace=openat vfm-embed index part ./*.tar >added
  records <added | jq -e '.added == 1 and .shards == 3 and .vectors == 25000'
  grep -q '000002.tar"' calls
  run -1 grep '000000.tar"' calls
  vfm-embed search "$MADE/queries.npy" --index part --exact | matches >exact
  vfm-embed index whole ./*.tar
  vfm-embed search "$MADE/queries.npy" --index whole --exact | matches | cmp exact -
  vfm-embed search "$MADE/queries.npy" --index part | matches >found
  [ "$(sort found exact | uniq -d | wc -l)" -ge 190 ]
  # Once more: nothing is to do, and the file is left as it is.
  touch -d 2001-01-01 part
  vfm-embed index part ./*.tar >again
  records <again | jq -e '.added == 0 and .shards == 3'
  [ "$(date -r part +%Y)" = 2001 ]
  vfm-embed index part --force ./*.tar
  cmp part whole
}

# python_tar FILE FORMAT DIM LENGTH: three samples with vectors of DIM halves along the first axes, by Python's tarfile.
python_tar() {
  python3 - "$@" <<'PY'
import io, struct, sys, tarfile

path, form, dim, length = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])

def npy(values):
    header = f"{{'descr': '<f2', 'fortran_order': False, 'shape': ({dim},), }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header.encode() + struct.pack(f"<{dim}e", *values)

def axis(number):
    return npy([length if d == number else 0 for d in range(dim)])

with tarfile.open(path, "w", format=getattr(tarfile, form)) as tar:
    for number in range(3):
        for name, data in (("json", b'{"video_encoder": {"name": "x"}}'), ("video.npy", axis(number))):
            info = tarfile.TarInfo(f"folder/s{number}.{name}")
            info.size, info.mtime = len(data), 1.5
            tar.addfile(info, io.BytesIO(data))
with open("query.npy", "wb") as file:
    file.write(axis(1))
PY
}

@test "vectors in tars of other programs are found where they are" {
  for format in PAX_FORMAT GNU_FORMAT USTAR_FORMAT; do
    python_tar other.tar "$format" 16 1
    vfm-embed index other --force other.tar
    for options in '' --exact; do
      # shellcheck disable=SC2086
      vfm-embed search query.npy --index other $options | records | head -n 1 |
        jq -e '.rank == 1 and .score == 1'
    done
  done
}

# bats test_tags=night
@test "killed at any moment a run leaves the old index or the whole new one, and the same command makes the same bytes" {
  vfm-embed index whole "$MADE"/*.tar
  vfm-embed index old "$MADE"/000000.tar
  cp old all
  # Calls that change files are where it matters: at each of these it is killed once.
  calls=(rename:rename:1)
  ! at_night || calls+=(posix_fallocate:fallocate:1 write:write:2 sync:fsync:1)
  for call in "${calls[@]}"; do
    IFS=: read -r _ name number <<<"$call"
    run strace -f -o calls -e trace="$name" -e inject="$name":signal=KILL:when="$number" \
      vfm-embed index all -j 1 --force "$MADE"/*.tar
    [ "$status" -ne 0 ]
    cmp all old || cmp all whole
  done
  vfm-embed index all --force "$MADE"/*.tar
  cmp all whole
}

@test "clips are found as without an index, with captions, sources and times" {
  make_clips a
  make_clips b
  vfm-embed --text none a.tar b.tar >embedded.jsonl
  vfm-embed index clips embedded.jsonl
  for options in '' --exact; do
    # shellcheck disable=SC2086
    vfm-embed search "$MADE/clips/red.mp4" --index clips $options | records >found
    vfm-embed search "$MADE/clips/red.mp4" embedded.jsonl | records | cmp found -
  done
  head -n 1 found | jq -e '.rank == 1 and .score > 0.999 and .key == "ar" and .caption == "a square of a" and .source == "r.mp4" and .end == 2'
  vfm-embed search "$MADE/clips/blue.mp4" --index clips --top 1 | records | jq -e '.key == "ab"'
  run --separate-stderr vfm-embed search 'a square' --index clips
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"the index is of clips by builtin:look, which a text cannot be compared with"*"index with --vectors text, or embed with --video of a CLIP"* ]]
  # Another encoder's vectors are not mixed in.
  cp "$MADE"/000002.tar* .
  run --separate-stderr vfm-embed index clips 000002.tar
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"000002.tar: 5000 samples were embedded by"*"index them apart"* ]]
  records <<<"$output" | jq -e '.added == 0 and .vectors == 4'
}

@test "captions by a sentence encoder have an index of their own" {
  make_clips a
  make_clips b
  printf 'no circle here' >a.captions/ar.txt
  pack a
  vfm-embed --text "$VFM_ROOT/tests/golden/sentences/bert" --device cpu a.tar b.tar >embedded.jsonl
  vfm-embed index captions --vectors text embedded.jsonl
  vfm-embed search 'no circle here' --index captions | records >found
  vfm-embed search 'no circle here' embedded.jsonl | records | cmp found -
  head -n 1 found | jq -e '.key == "ar" and .score > 0.999'
  run --separate-stderr vfm-embed search '!!' --index captions
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"the text to search for has no words"* ]]
  run --separate-stderr vfm-embed index captions embedded.jsonl
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"'captions' is an index of text vectors; add to it with --vectors text"* ]]
  vfm-embed --force a.tar b.tar >words.jsonl
  run --separate-stderr vfm-embed index words --vectors text words.jsonl
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"are words by builtin:hash; an index takes one vector a sample: embed with --text DIR (a sentence encoder)"* ]]
  [ ! -e words ]
}

@test "what cannot be indexed is told, and makes no index" {
  make_clips a
  run --separate-stderr vfm-embed index clips a.tar
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"there are no video vectors to index; run vfm-embed on the shards first"* ]]
  [ ! -e clips ]
  [ ! -e .clips.tmp ]
  run --separate-stderr vfm-embed index clips nosuch "$MADE/000002.tar"
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"argument 'nosuch' is a 'video', not a shard"* ]]
  records <<<"$output" | jq -e '.shards == 1'
  rm clips
  cp "$MADE"/000002.tar* .
  gzip 000002.tar
  run --separate-stderr vfm-embed index clips 000002.tar.gz nothere.tar
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"000002.tar.gz: "* ]]
  [[ "$stderr" == *"nothere.tar: "* ]]
  [ ! -e clips ]
  for bad in nothere a.tar; do
    # shellcheck disable=SC2086
    run --separate-stderr vfm-embed search x --index $bad
    [ "$status" -eq 1 ]
  done
  for bad in 'index i -o . a.tar' 'index i --dry-run a.tar' 'index i --exact a.tar' index 'search x --exact a.tar' search \
    'search x --index i a.tar' "search $MADE/queries.npy a.tar" '--vectors text a.tar' 'index i --vectors x a.tar'; do
    # shellcheck disable=SC2086
    run --separate-stderr vfm-embed $bad
    [ "$status" -eq 2 ]
  done
}

@test "a damaged tar and a damaged index beside it are told, and what is whole is indexed" {
  cp "$MADE"/000002.tar* .
  # The tar breaks off, and its own index does not fit.
  head -c 2000100 000002.tar >cut.tar
  run --separate-stderr vfm-embed index clips cut.tar
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"cut.tar: "*"Truncated tar"*"what comes before is in the index"* ]]
  records <<<"$output" | jq -e '.shards == 1 and .vectors > 900 and .vectors < 1100'
  # The tenth sample begins at its second member, or ends before its last.
  local by
  for by in 1024 -1024; do
    python3 - $by <<'END'
import struct, sys
index = open("000002.tar.idx", "rb").read()
at = struct.unpack_from("<Q", index, 80)[0] + int(sys.argv[1])
open("bad.tar.idx", "wb").write(index[:80] + struct.pack("<Q", at) + index[88:])
END
    cp 000002.tar bad.tar
    run --separate-stderr vfm-embed index "bad$by" bad.tar
    [ "$status" -eq 1 ]
    [[ "$stderr" == *"2 samples are not in the index: 'bad.tar.idx' does not fit 'bad.tar' at sample 9"* ]]
    records <<<"$output" | jq -e '.vectors == 4998'
  done
}

@test "without FAISS an index is neither made nor searched, with what to install" {
  if has_faiss; then skip "built with FAISS"; fi
  cp "$MADE"/000002.tar* .
  for command in 'index clips 000002.tar' 'search x --index clips'; do
    # shellcheck disable=SC2086
    run --separate-stderr vfm-embed $command
    [ "$status" -eq 2 ]
    [[ "$stderr" == *"this build has no FAISS"*"install libfaiss-dev"* ]]
    [ ! -e clips ]
  done
}
