#!/usr/bin/env bats
# --device with a list: models in workers. The processor stands for the GPUs: "cpu," is one, "cpu,cpu" are two.
# SPDX-License-Identifier: Apache-2.0
load helpers
load small_clips
load workers
bats_require_minimum_version 1.5.0

setup_file() { make_small_clips; }
setup() {
  setup_tools
  golden=$VFM_ROOT/tests/golden
}

# make_shards NAME...: each of two clips and a picture with captions.
make_shards() {
  local name
  for name in "$@"; do
    clip_shard "$name" "c1=A $name square, c1." "c2=A $name square, c2." "c3=A $name square, c3."
  done
}

# embed ARG...: by small models.
embed() { vfm-embed --video "$golden/picture_encoders/siglip" --text "$golden/sentences/bert" "$@"; }

# same_columns DIR DIR: but for the folder's name.
same_columns() { [ "$(column_hashes "$1")" = "$(column_hashes "$2")" ]; }

# gone PID...: all have ended, or do so within a few seconds.
gone() {
  local pid
  for pid in "$@"; do
    for _ in $(seq 200); do
      [ -e "/proc/$pid" ] && ! grep -q '^State:.Z' "/proc/$pid/status" 2>/dev/null || continue 2
      sleep 0.02
    done
    echo "$pid is still there"
    return 1
  done
}

# begin_embed ARG...: embeds what is written to descriptor 7, in the background as $embedding.
begin_embed() {
  mkfifo list.jsonl
  env --default-signal=INT setsid vfm-embed --video "$golden/picture_encoders/siglip" --text none \
    "$@" list.jsonl >out.jsonl 2>err 3>&- 7>&- &
  embedding=$!
  exec 7<>list.jsonl  # which waits for nobody
}

@test "vectors of one worker, of two, and of one device are the same bytes, at any -j, and resumed" {
  make_shards a b d
  embed --device cpu -j1 -o here a.tar b.tar d.tar >/dev/null
  run --separate-stderr embed --device cpu, -j1 -o one a.tar b.tar d.tar
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  embed --device cpu,cpu -j3 -o two a.tar b.tar d.tar >two.jsonl
  same_columns here one
  same_columns here two
  # What one has made the other one keeps.
  run --separate-stderr embed --device cpu,cpu -v -o here a.tar
  [[ "$stderr" == *"'here/a.embed.tar' is there already"* ]]
  run --separate-stderr embed --device cpu -v -o two a.tar
  [[ "$stderr" == *"'two/a.embed.tar' is there already"* ]]
  # A manifest does not depend on how many there are.
  embed --device cpu, -o two a.tar b.tar d.tar | cmp - two.jsonl
}

@test "scores of clips by models in workers are those of one device" {
  make_shards a b
  clip_model model
  for device in --device=cpu --device=cpu,cpu; do
    vfm-embed --video model --text none --text-image --concept fox='a photo of a fox' --windows 1 $device \
      -o "out$device" a.tar b.tar >/dev/null
  done
  same_columns out--device=cpu out--device=cpu,cpu
  [ "$(field out--device=cpu/a.embed.tar c1 .text_image)" != null ]
}

@test "a killed worker is left out by name, and the bytes are the same" {
  make_shards a b d
  vfm-embed --video "$golden/picture_encoders/siglip" --text none --device cpu -o here a.tar b.tar d.tar >/dev/null
  begin_embed --device cpu,cpu -j2 -o killed
  echo a.tar >&7
  kill -KILL "$(await_worker "$embedding")"
  printf '%s\n' b.tar d.tar >&7
  exec 7>&-
  wait "$embedding"
  grep -q "cpu [01].*SIGKILL" err
  [ "$(wc -l <err)" -eq 1 ]
  same_columns here killed
}

@test "when no worker can live the run ends, and says so" {
  make_shards a
  local by=(--video "$golden/picture_encoders/siglip" --text none)
  fails 1 dies_at 1 vfm-embed "${by[@]}" --device cpu,cpu -j2 -o killed a.tar
  [ "$(grep -c "is left out for vfm-embed from now on: its worker has died of SIGKILL" err)" -eq 2 ]
  grep -q "^vfm-embed: no device is left for vfm-embed: .*'cpu 0': .*SIGKILL" err
  [ "$(tail -1 out.txt | jq -r .kind)" != end ]
  [ ! -e killed/a.embed.tar ]
  # Once more it is done.
  vfm-embed "${by[@]}" --device cpu, -o killed a.tar >/dev/null
}

# bats test_tags=night
@test "what two workers die of is given up, with its own error, and the run goes on to its end" {
  make_shards a b
  local by=(--video "$golden/picture_encoders/siglip" --text none)
  fails 1 dies_at 2 vfm-embed "${by[@]}" --device cpu,cpu -j2 -o killed a.tar b.tar
  [ "$(grep -c "is left out" err)" -le 1 ]
  grep -q "is started again" err
  [ "$(tail -1 out.txt | jq -c '[.kind, .status]')" = '["end",1]' ]
  [ "$(jq -r '[.input, .code] | join(" ")' killed/embed-errors.jsonl | sort -u)" = $'a.tar crash\nb.tar crash' ]
  grep -q "two workers died at it" killed/embed-errors.jsonl
  # The same command makes what a run without such deaths makes; so does one whose only worker dies once in a while.
  vfm-embed "${by[@]}" --device cpu,cpu -o killed a.tar b.tar >/dev/null
  vfm-embed "${by[@]}" --device cpu -o here a.tar b.tar >/dev/null
  same_columns here killed
  dies_at 3 vfm-embed "${by[@]}" --device cpu, -j2 -o again a.tar b.tar >/dev/null 2>err
  grep -q "the worker on cpu 0 is started again" err
  same_columns here again
}

@test "Ctrl-C ends a program with its workers, and kill -9 of it leaves none" {
  make_shards a
  for signal in INT KILL; do
    begin_embed --device cpu,cpu -j2 -o "$signal"
    echo a.tar >&7
    worker=$(await_worker "$embedding")
    if [ $signal = INT ]; then kill -INT -- "-$embedding"; else kill -KILL "$embedding"; fi
    gone "$embedding" "$worker"
    [ -z "$(pgrep -g "$embedding" || true)" ] || gone $(pgrep -g "$embedding")
    exec 7>&-
    local got=0
    wait "$embedding" || got=$?
    if [ $signal = INT ]; then [ "$got" -eq 130 ]; else [ "$got" -eq 137 ]; fi
    [ ! -s err ]
    rm list.jsonl
  done
}

@test "a worker has no descriptor of the pipe that its program is in" {
  make_shards a
  begin_embed --device cpu, -j1 -o out
  echo a.tar >&7
  worker=$(await_worker "$embedding")
  for fd in /proc/"$worker"/fd/*; do
    case $(readlink "$fd") in
      *out.jsonl | *list.jsonl | *err) echo "$fd is $(readlink "$fd")"; return 1 ;;
    esac
  done
  exec 7>&-
  wait "$embedding"
}

@test "captions by models in workers are those of one device, also those written anew" {
  make_shards a b
  cp -r "$golden/qwen/untied" model
  cp -r "$golden/qwen_text/untied" words
  ask() {
    vfm-caption --from model:model --frame-tokens 4 --max-tokens 6 --refine words \
      --keep-empty --also where="Where is it?" "$@" a.tar b.tar
  }
  ask --device cpu --temperature 1 -j1 -o here >/dev/null
  run --separate-stderr ask --device cpu,cpu --temperature 1 -j2 -o two
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  same_columns here two
  run --separate-stderr ask --device cpu, --temperature 1 -v -o here
  [[ "$stderr" == *"'here/a.caption.tar' is there already"* ]]
  [ -n "$(field two/a.caption.tar c1 .caption_draft)" ]
}

@test "scores of captions by models in workers are those of one device" {
  make_shards a b
  cp -r "$golden/qwen/untied" model
  clip_model clip
  for device in --device=cpu --device=cpu,cpu; do
    vfm-caption score --model model --clip clip --frame-tokens 4 $device -o "out$device" a.tar b.tar >/dev/null
  done
  same_columns out--device=cpu out--device=cpu,cpu
  [ "$(field out--device=cpu/a.score.tar c1 '.caption_logprob < 0')" = true ]
}

@test "shots that a model in workers stitches are those of one device" {
  make_shots shots.mp4
  stitched() { vfm-clip --stitch "$golden/picture_encoders/clip" --min-length 0 shots.mp4 "$@" >/dev/null; }
  CUDA_VISIBLE_DEVICES='' stitched -o here
  stitched --device cpu,cpu -o there
  [ "$(tree_hash here)" = "$(tree_hash there)" ]
  ls here/*.tar
}

@test "what --device cannot mean is refused before any work" {
  make_shards a
  refused() {
    fails 2 "${@:2}"
    grep -qF -- "$1" err
    [ ! -e out ]
  }
  refused "--device: 'fast' is not" embed --device fast -o out a.tar
  refused "name GPUs alone, or cpu alone" embed --device 0,cpu -o out a.tar
  refused "names GPU 0 twice" embed --device 0,0 -o out a.tar
  refused "leave out the others" embed --device all,0 -o out a.tar
  refused "name its folder with --video DIR" vfm-embed --device cpu, -o out a.tar
  refused "--device" vfm-embed search red --device cpu, a.tar
  refused "--device is about a model; name its folder with --from" vfm-caption --device cpu -o out a.tar
  refused "name its folder with --model or --clip" vfm-caption score --device cpu -o out a.tar
  refused "--stitch" vfm-clip --device cpu -o out "$CLIPS/c1.mp4"
  refused "--device cpu has no work" vfm-clip --device cpu --hwaccel auto -o out "$CLIPS/c1.mp4"
  refused "--hwaccel cuda, or --encoder h264_nvenc" vfm-clip --device 0 -o out "$CLIPS/c1.mp4"
  refused "no such model folder" vfm-embed --video nowhere --device cpu,cpu -o out a.tar
  # Nothing but commas is no list, nor is what comes behind it.
  refused "--device: '' is not" embed --device , -o out a.tar
  refused "--protocols ',' names nothing" vfm-clip --protocols , -o out "$CLIPS/c1.mp4"
  grep -qF "Try 'vfm-clip --help'" err
  # With no GPU here, or too few, the list of those that are there; by all programs before their first record.
  absent() {
    refused "--device 63: there is no" "$@"
    [ ! -s out.txt ]
  }
  absent embed --device 63 -o out a.tar
  absent vfm-clip --device 63 --encoder h264_nvenc -o out "$CLIPS/c1.mp4"
  absent vfm-clip --device 63 --stitch "$golden/picture_encoders/siglip" -o out "$CLIPS/c1.mp4"
  absent vfm-caption --from "model:$golden/vlm/smol" --device 63 -o out a.tar
  absent vfm-pack --device 63 -o out a.tar
  absent vfm-generate --model nowhere --device 63 -o out 'a red circle'
}

# bats test_tags=night
@test "workers that are killed at random moments change no byte" {
  make_shards a b d e f g
  local shards=(a.tar b.tar d.tar e.tar f.tar g.tar) six=cpu,cpu,cpu,cpu,cpu,cpu
  embed --device cpu -o here "${shards[@]}" >/dev/null
  for round in $(seq 20); do
    embed --device $six -j4 -o out "${shards[@]}" >/dev/null 2>err 3>&- &
    embedding=$!
    for _ in 1 2 3; do
      sleep "0.$((RANDOM % 4))"
      kill -KILL "$(workers_of "$embedding" | shuf -n 1)" 2>/dev/null || true
    done
    wait "$embedding" || { echo "round $round"; cat err; return 1; }
    same_columns here out
    rm -r out
  done
}
