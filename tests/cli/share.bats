#!/usr/bin/env bats
# Programs of a pipe that share slots: by VFM_SHARE and VFM_SLOTS, and by make's jobserver. Made programs, which sleep.
# SPDX-License-Identifier: Apache-2.0
load helpers
load made_pipe
bats_require_minimum_version 1.5.0

# pipe OPTION...: three stages, of which the first makes four records of an item, and what each did in its log.
pipe() {
  "$MADE" items.jsonl --fan-out 4 --log log.1 "$@" | "$MADE" --log log.2 "$@" | "$MADE" --log log.3 "$@"
}

# has_begun COUNT [FILE]: whether so many items have, of programs with --begun FILE (begun).
has_begun() { [ "$(wc -l <"${2-begun}")" -eq "$1" ]; }

# at_once COUNT OPTION...: fails unless a program begins so many of the items of items.jsonl, and no more, before one ends.
at_once() {
  local count=$1
  shift
  rm -f go begun log
  "$MADE" items.jsonl --log log --begun begun --until go "$@" >out.jsonl &
  await has_begun "$count"
  : >go
  wait $!
  [ "$(records <out.jsonl | wc -l)" -eq "$(wc -l <items.jsonl)" ]
  [ "$(most_at_once log)" -eq "$count" ]
}
four_at_once() { at_once 4 -j4 "$@"; }

@test "a pipe shares VFM_SLOTS slots: no more at once, all of them in use, the same bytes as alone" {
  made_items 16 0.01 0.005 0.015 >items.jsonl
  : >go
  pipe -j4 --begun all --until go >alone.jsonl
  rm log.* all go
  VFM_SLOTS=5 VFM_SHARE=slots pipe --begun all --until go >shared.jsonl 3>&- &
  local shares=$!
  await has_begun 5 all
  : >go
  wait "$shares"
  cmp alone.jsonl shared.jsonl
  [ "$(records <shared.jsonl | wc -l)" -eq 64 ]
  [ "$(most_at_once log.*)" -eq 5 ]
  # The number that living programs share is that of the next one, too, and the file is used again.
  made_items 2 100 >long.jsonl
  VFM_SLOTS=5 VFM_SHARE=slots "$MADE" long.jsonl --begun begun >/dev/null 3>&- &
  await has_begun 2
  VFM_SLOTS=3 VFM_SHARE=slots run --separate-stderr "$MADE" items.jsonl
  [ "$status" -eq 2 ]
  # shellcheck disable=SC2154
  [[ $stderr == *"'slots' have 5 slots, this one 3 slots"* ]]
  kill -KILL $! # that is asked to end, it would finish its items
  wait $! || true
  VFM_SLOTS=3 VFM_SHARE=slots "$MADE" items.jsonl >/dev/null
}

@test "a stage that is killed takes no slot with it" {
  made_items 4 100 >long.jsonl
  made_items 8 0 >short.jsonl
  export VFM_SLOTS=4
  VFM_SHARE=slots "$MADE" long.jsonl --begun begun >/dev/null 2>&1 3>&- &
  local killed=$!
  await has_begun 4
  VFM_SHARE=slots "$MADE" short.jsonl --log log --begun others --until go >short.out 3>&- &
  local waits=$!
  await [ -e others ]
  sleep 0.3
  # All slots are the first one's.
  [ ! -s others ]
  kill -KILL "$killed"
  wait "$killed" || true
  await has_begun 4 others
  : >go
  wait "$waits"
  [ "$(records <short.out | wc -l)" -eq 8 ]
  [ "$(most_at_once log)" -eq 4 ]
}

# bats test_tags=night
@test "a stage that is stopped is named and passed by, and has slots again when it goes on" {
  made_items 2 0 >items.jsonl
  export VFM_SLOTS=2
  VFM_SHARE=slots "$MADE" items.jsonl --begun begun --until go >long.out 3>&- &
  local stopped=$!
  await has_begun 2
  kill -STOP "$stopped"
  # Its two items have both slots: the other one's are done all the same.
  VFM_SHARE=slots VFM_SHARE_REPORT=page.html timeout 60 "$MADE" items.jsonl --progress >short.out 2>said
  cat said
  grep -F "made_stage (process $stopped) is stopped: others have its 2 of the shared slots until 'kill -CONT $stopped'" said
  grep -F "bottleneck: made_stage (process $stopped) is stopped" said
  [ "$(records <short.out | wc -l)" -eq 2 ]
  # While another one has both, it waits.
  VFM_SHARE=slots "$MADE" items.jsonl --begun others --until others.go >/dev/null 3>&- &
  local other=$!
  await has_begun 2 others
  kill -CONT "$stopped"
  : >go
  sleep 0.3
  kill -0 "$stopped"
  : >others.go
  wait "$other"
  wait "$stopped"
  [ "$(records <long.out | wc -l)" -eq 2 ]
}

@test "a pipe under make has make's slots, by pipe and by fifo, and gives them back" {
  made_items 12 0.01 0.005 0.015 >items.jsonl
  : >go
  pipe -j4 --begun all --until go >alone.jsonl
  rm log.*
  # Each program has one slot of its own, and there are three tokens.
  mkfifo tokens
  exec 8<>tokens
  printf '+++' >&8
  local auth most
  # under_make AUTH OPTION...: the pipe, whose first items end when all of make's slots are in use.
  under_make() {
    rm -f go all
    MAKEFLAGS=" -j4 --jobserver-auth=$1" pipe -j16 --begun all --until go "${@:2}" >shared.jsonl 3>&- &
    await has_begun 4 all
    : >go
    wait $!
  }
  for auth in 8,8 "fifo:$PWD/tokens"; do
    under_make "$auth"
    cmp alone.jsonl shared.jsonl
    most=$(most_at_once log.*)
    echo "$most at once"
    [ "$most" -gt 3 ] && [ "$most" -le 6 ]
    [ "$(timeout 5 head -c 3 <&8)" = "+++" ]
    printf '+++' >&8
    rm log.*
  done
  # A file of VFM_SHARE then only shows what they do.
  VFM_SLOTS=1 VFM_SHARE=slots under_make 8,8
  cmp alone.jsonl shared.jsonl
  most=$(most_at_once log.*)
  [ "$most" -gt 3 ] && [ "$most" -le 6 ]
  exec 8>&-
}

@test "a stage that is killed under make: with VFM_SHARE another one gives its tokens back" {
  made_items 4 100 >long.jsonl
  made_items 6 0 >short.jsonl
  mkfifo tokens
  exec 8<>tokens
  printf '+++' >&8
  export MAKEFLAGS=" -j4 --jobserver-auth=8,8"
  VFM_SHARE=slots "$MADE" long.jsonl -j4 >/dev/null 2>&1 3>&- &
  local killed=$!
  while read -r -t 0 <&8; do sleep 0.01; done
  VFM_SHARE=slots "$MADE" short.jsonl -j4 --log log --begun others --until go >short.out 3>&- &
  local waits=$!
  # Its own slot.
  await has_begun 1 others
  kill -KILL "$killed"
  wait "$killed" || true
  await has_begun 4 others
  : >go
  wait "$waits"
  [ "$(records <short.out | wc -l)" -eq 6 ]
  [ "$(timeout 5 head -c 3 <&8)" = "+++" ]
  run ! read -r -t 0 <&8
  exec 8>&-
}

@test "make itself, with a pipe in a recipe" {
  made_items 10 0.02 0.01 >items.jsonl
  printf 'all: a.out b.out\n%%.out:\n\t+@%s items.jsonl -j9 --log log.$* | %s -j9 --log log2.$* >$@\n' "$MADE" "$MADE" >Makefile
  run make -j4
  echo "$output"
  [ "$status" -eq 0 ]
  [[ $output != *jobserver* ]]
  [ "$(records <a.out | wc -l)" -eq 10 ]
  cmp <(records <a.out) <(records <b.out)
  # Two recipes' own slots, one more for the second program of each, and two tokens.
  [ "$(most_at_once log.* log2.*)" -le 6 ]
}

@test "files under the numbers of make's descriptors are no jobserver" {
  made_items 4 0 >items.jsonl
  seq 9 >list
  cp list log.own
  # A recipe without '+' has make's MAKEFLAGS, and not its descriptors.
  {
    MAKEFLAGS=" -j4 --jobserver-auth=8,9" four_at_once
    [ "$(cat <&8)" = "$(seq 9)" ]
  } 8<list 9>>log.own
  cmp list log.own
  # Nor are two pipes, or a file in place of a fifo.
  mkfifo one two
  MAKEFLAGS=" -j4 --jobserver-auth=8,9" four_at_once 8<>one 9<>two
  MAKEFLAGS=" -j4 --jobserver-auth=fifo:$PWD/list" four_at_once
  [ "$(cat list)" = "$(seq 9)" ]
}

@test "a pipe of the program's own, under the numbers of make's descriptors, is no jobserver" {
  made_items 4 0 >items.jsonl
  # 3 and 4 are free, so what is opened first has them.
  MAKEFLAGS=" -j4 --jobserver-auth=3,4" four_at_once --own-pipe 3>&- 4>&-
}

@test "a program whose reader goes gives make's tokens back, and ends by SIGPIPE" {
  made_items 40 0.2 >items.jsonl
  mkfifo tokens
  exec 8<>tokens
  printf '+++' >&8
  MAKEFLAGS=" -j4 --jobserver-auth=8,8" bash -c '"$MADE" items.jsonl -j4 2>err | head -n 2 >out; echo "${PIPESTATUS[0]}" >status'
  [ "$(cat status)" -eq 141 ]
  [ "$(timeout 5 head -c 3 <&8)" = "+++" ]
  exec 8>&-
  [ ! -s err ]
}

@test "VFM_SLOTS alone is the default of -j; a bad one is refused before any work" {
  made_items 12 0 >items.jsonl
  VFM_SLOTS=3 at_once 3
  VFM_SLOTS=3 at_once 2 -j2
  local bad
  for bad in 0 -1 x 4097 "3 "; do
    VFM_SLOTS=$bad run --separate-stderr "$MADE" items.jsonl
    [ "$status" -eq 2 ]
    [[ $stderr == *"VFM_SLOTS is '$bad'"* ]]
  done
}

@test "VFM_SHARE takes no file that holds something else" {
  made_items 1 0 >items.jsonl
  VFM_SHARE=items.jsonl run --separate-stderr "$MADE" items.jsonl
  [ "$status" -eq 2 ]
  [[ $stderr == *"'items.jsonl' is not empty, and not of VFM_SHARE"* ]]
  [ "$(wc -l <items.jsonl)" -eq 1 ]
  VFM_SHARE=no/where run --separate-stderr "$MADE" items.jsonl
  [ "$status" -eq 2 ]
  [[ $stderr == *"cannot open 'no/where' for VFM_SHARE: No such file or directory"* ]]
  refused "VFM_SHARE: 's3://b/f' is an address" env VFM_SHARE=s3://b/f "$MADE" items.jsonl
  refused "'items.jsonl' is there, and no page" env VFM_SHARE=slots VFM_SHARE_REPORT=items.jsonl "$MADE" items.jsonl
  refused 'VFM_SHARE is not; set both' env VFM_SHARE_REPORT=page.html "$MADE" items.jsonl
  [ ! -e slots ]
}

# bats test_tags=night
@test "--progress shows all programs of the pipe, once, and the bottleneck; VFM_SHARE_REPORT writes a page of them" {
  made_items 12 0.05 0.02 0.12 >items.jsonl
  export VFM_SLOTS=4
  VFM_SHARE=slots "$MADE" items.jsonl --fan-out 4 --progress 2>err.1 | VFM_SHARE=slots "$MADE" --progress 2>err.2 |
    VFM_SHARE=slots VFM_SHARE_REPORT=page.html "$MADE" --progress >out.jsonl 2>err.3
  [ ! -s err.1 ] && [ ! -s err.2 ]
  cat err.3
  # Of the three the third has most work.
  grep -E '^made_stage +12 items ' err.3
  grep -E '^made_stage \(2\) +48 items ' err.3
  grep -E '^made_stage \(3\) +48 items ' err.3
  grep -E '^bottleneck: made_stage' err.3
  grep -q '<svg' page.html
  grep -q 'bottleneck' page.html
  # The last line is of the whole run, as the page is, on which all have ended.
  tail -n 1 err.3 | grep -E '^bottleneck: made_stage \(3\) [0-9]+ %.* of the time$'
  share=$(tail -n 1 err.3 | grep -oE '[0-9]+ %' | head -n 1)
  grep -q "<td[^>]*>made_stage (3)</td><td[^>]*>$share</td>" page.html
  fails 1 grep -F 'runs</td>' page.html
  [ "$(grep -o 'made_stage' page.html | wc -l)" -ge 3 ]
  # Neither changes what is written, nor its name.
  made_items 2 0 >two.jsonl
  "$MADE" two.jsonl >alone.jsonl
  VFM_SHARE=slots VFM_SHARE_REPORT=page.html "$MADE" two.jsonl >shared.jsonl
  cmp alone.jsonl shared.jsonl
  # A page that can no longer be written at the end: what the stream's end says is the exit status.
  mkdir pages
  { until grep -qs made fresh; do sleep 0.02; done; rm -r pages; : >pages; : >go; } 3>&- &
  VFM_SHARE=fresh VFM_SHARE_REPORT=pages/page.html fails 1 "$MADE" two.jsonl --until go
  wait
  [ "$(records <out.txt | wc -l)" -eq 2 ]
  tail -n 1 out.txt | jq -e '.status == 1'
  grep pages err
  # Programs that all write the page do not speak of each other, and the last one's stays.
  made_items 4 0.1 0.1 >four.jsonl
  export VFM_SHARE=slots VFM_SHARE_REPORT=all.html
  { "$MADE" four.jsonl 2>err.1 | "$MADE" >/dev/null 2>err.2; }
  unset VFM_SHARE VFM_SHARE_REPORT
  [ ! -s err.1 ] && [ ! -s err.2 ]
  [ "$(grep -o 'ended</td>' all.html | wc -l)" -eq 2 ]
  # Success is silent without it.
  VFM_SHARE=slots "$MADE" items.jsonl >/dev/null 2>err
  [ ! -s err ]
}
