#!/usr/bin/env bats
# vfm-clip where the user says what clips are: their places, sizes, rates, names and formats.
# SPDX-License-Identifier: Apache-2.0
load media

# shots.mp4: red, test picture, blue, cut at frames 18 and 36 of 54, 12 frames a second, 96x64.
setup_file() {
  media_folder
  quiet_ffmpeg -i shots.mp4 -vf "select='not(eq(mod(n,5),2))'" -fps_mode vfr "${x264[@]}" vfr.mkv
  quiet_ffmpeg -i shots.mp4 -f lavfi -i sine=duration=4.5 -map 0 -map 1 -c:v copy -c:a aac sound.mp4
  turn shots.mp4 rotated.mp4
  quiet_ffmpeg -f lavfi -i testsrc2=size=97x63:rate=12:duration=1 -vf setsar=4/3 -c:v libx264 -preset ultrafast \
    -pix_fmt yuv444p odd.mp4
  quiet_ffmpeg -f lavfi -i testsrc2=size=96x64:rate=12 -frames:v 1 "${x264[@]}" one.mp4
  quiet_ffmpeg -i shots.mp4 -c copy -muxdelay 0 -output_ts_offset 10 late.ts
  quiet_ffmpeg -f lavfi -i "testsrc2=size=96x40:rate=12:duration=2" -vf "pad=128:64:16:12" "${x264[@]}" bars.mp4
  quiet_ffmpeg -f lavfi -i testsrc2=size=50x70 -frames:v 1 b.png
}

# facts DIR FIELD: the field of each clip's json, in order, one line.
facts() {
  local tar
  for tar in "$1"/*.tar; do tar -xOf "$tar" --wildcards '*.json' | jq -r ".$2" | tr '\n' ' '; done
}
# same_for_any_jobs OPTIONS...: -j1 and -j4 and a series of kills give one result.
same_for_any_jobs() {
  vfm-clip "$@" -o j1 -j1 >j1.out || [ $? -eq 1 ]
  vfm-clip "$@" -o j4 -j4 >j4.out || [ $? -eq 1 ]
  local sleeping pid
  for sleeping in 0.03 0.08; do
    setsid vfm-clip "$@" -o j9 -j2 >/dev/null 2>&1 3>&- &
    pid=$!
    sleep $sleeping
    kill -KILL -- "-$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  vfm-clip "$@" -o j9 -j2 >j9.out || [ $? -eq 1 ]
  diff <(records j4.out | sed 's/j4\///g') <(records j1.out | sed 's/j1\///g')
  diff <(records j9.out | sed 's/j9\///g') <(records j1.out | sed 's/j1\///g')
  [ "$(tree_hash j1)" = "$(tree_hash j4)" ]
  [ "$(tree_hash j1)" = "$(tree_hash j9)" ]
}

@test "without new options the keys and bytes are those of before" {
  vfm-clip shots.mp4 -o out
  # As recipes were named when there was no choice.
  [ "$(jq -c '.settings.recipe | keys_unsorted' out/*.json)" = '["version","detector","threshold","gradual","strictness","stitch","min_seconds","max_seconds","stream","encoder","preset","quality","audio"]' ]
  run ! grep -q '"crop"' <<<"$(tar -xOf out/*.tar)"
}

@test "--stride cuts clips of one length, with sound too, and finds no shots" {
  vfm-clip sound.mp4 -o out --stride 1s --audio aac --verify
  [ "$(facts out frames)" = "12 12 12 12 6 " ]
  [ "$(facts out begin)" = "0 1 2 3 4 " ]
  [ "$(facts out start_type)" = "start stride stride stride stride " ]
  [ "$(facts out verified)" = "true true true true true " ]
  [ "$(facts out audio)" = "aac aac aac aac aac " ]
  # A shorter rest goes by --min-length, and is reported.
  vfm-clip shots.mp4 -o long --stride 1s --min-length 1s
  [ "$(facts long frames)" = "12 12 12 12 " ]
  [ "$(jq -r '.left_out[].reason' long/*.json)" = "short" ]
  # Times that are no multiple of the stride, and a video that is shorter than it.
  vfm-clip vfr.mkv one.mp4 -o vfr --stride 0.7s --min-length 0 --verify
  [ "$(facts vfr frames | tr ' ' '\n' | paste -sd+ | sed 's/+$//' | bc)" -eq "$(($(ffprobe -v error -count_frames -show_entries stream=nb_read_frames -of csv=p=0 vfr.mkv | tr -d ,) + 1))" ]
  run ! vfm-clip shots.mp4 -o none --stride 0
  [ "$status" -eq 2 ]
}

@test "--spans: JSON, CSV, timecodes and frames give the same clips" {
  cat >spans.jsonl <<'END'
{"source":"shots.mp4","begin":0.5,"end":1.25,"caption":"red"}
{"source":"./shots.mp4","begin":"00:00:02.000","end":"00:00:03"}
END
  vfm-clip shots.mp4 -o json --spans spans.jsonl --verify
  [ "$(facts json begin)" = "0.5 2 " ]
  [ "$(facts json frames)" = "9 12 " ]
  [ "$(facts json caption)" = "red null " ]
  [ "$(facts json verified)" = "true true " ]
  printf 'source,begin,end\nshots.mp4,0.5,1.25\nshots.mp4,2,3\n' >spans.csv
  printf '"shots.mp4",00:00:00:06,00:00:01:03\nshots.mp4,00:00:02:00,00:00:03:00\n' >bare.csv
  printf '{"source":"shots.mp4","begin_frame":6,"end_frame":15}\n{"source":"shots.mp4","begin_frame":24,"end_frame":36}\n' >frames.jsonl
  printf 'TITLE: x\nFCM: NON-DROP FRAME\n\n001  AX  V  C  00:00:00:06 00:00:01:03 00:00:00:00 00:00:00:09\n* FROM CLIP NAME: shots.mp4\n\n002 AX V C 00:00:02:00 00:00:03:00 00:00:00:09 00:00:01:09\n* FROM CLIP NAME: shots.mp4\n' >cut.edl
  local file
  for file in spans.csv bare.csv frames.jsonl cut.edl; do
    vfm-clip shots.mp4 -o "out-$file" --spans "$file"
    [ "$(facts "out-$file" key)" = "$(facts json key)" ]
  done
}

# bats test_tags=night
@test "--spans takes what vfm-clip shots prints, in each format, and PySceneDetect's list" {
  vfm-clip shots shots.mp4 vfr.mkv late.ts >list.json
  vfm-clip shots --format csv shots.mp4 vfr.mkv late.ts >list.csv
  vfm-clip shots --format edl shots.mp4 vfr.mkv late.ts >list.edl
  [ "$(head -n 1 list.csv)" = "Scene Number,Start Frame,Start Timecode,Start Time (seconds),End Frame,End Timecode,End Time (seconds),Length (frames),Length (timecode),Length (seconds),Source" ]
  [ "$(sed -n 3p list.csv)" = "2,19,00:00:01.500,1.500000,36,00:00:03.000,3.000000,18,00:00:01.500,1.500000,shots.mp4" ]
  [ "$(sed -n 4,6p list.edl)" = '001  AX       V     C        00:00:00:00 00:00:01:06 00:00:00:00 00:00:01:06
* FROM CLIP NAME: shots.mp4
* SOURCE FILE: shots.mp4' ]
  local format
  for format in json csv edl; do
    run --separate-stderr vfm-clip shots.mp4 vfr.mkv late.ts -o "out-$format" --spans list.$format
    [ "$status" -eq 0 ]
    [ "$(facts "out-$format" key)" = "$(facts out-json key)" ]
    [ "$(facts "out-$format" begin | wc -w)" -eq 9 ]
  done
  # The list says in which folder its names are; nothing else of that name is taken.
  mkdir elsewhere
  cp list.json elsewhere/list.jsonl
  run --separate-stderr bash -c 'cd elsewhere && vfm-clip ../shots.mp4 ../vfr.mkv ../late.ts -o ../out-there --spans list.jsonl'
  [ "$status" -eq 0 ]
  [ "$(facts out-there key)" = "$(facts out-json key)" ]
  run --separate-stderr vfm-clip shots.mp4 vfr.mkv -o out-two --spans list.json
  [ "$status" -eq 1 ]
  [[ $stderr == *"vfm-clip: late.ts: has spans, but is not in the input"* ]]
  # One video, no column for it, a line of timecodes first, milliseconds: frame 18 begins at 1.5015.
  quiet_ffmpeg -f lavfi -i testsrc2=size=96x64:rate=24000/1001:duration=3 -c:v libx264 -preset ultrafast film.mp4
  printf 'Timecode List:,00:00:01.502\nScene Number,Start Frame,Start Timecode,Start Time (seconds),End Frame,End Timecode,End Time (seconds),Length (frames),Length (timecode),Length (seconds)\n1,1,00:00:00.000,0.000,36,00:00:01.502,1.502,36,00:00:01.502,1.502\n2,37,00:00:01.502,1.502,72,00:00:03.003,3.003,36,00:00:01.502,1.502\n' >film-Scenes.csv
  vfm-clip film.mp4 -o film --spans film-Scenes.csv --verify
  [ "$(facts film frames)" = "36 36 " ]
  vfm-clip film.mp4 shots.mp4 -o both --spans film-Scenes.csv
  [ "$(facts both source)" = "film.mp4 film.mp4 " ]
}

@test "spans that overlap are all cut, and what cannot be cut is reported" {
  cat >spans.jsonl <<'END'
{"source":"shots.mp4","begin":0,"end":2}
{"source":"shots.mp4","begin":1,"end":3}
{"source":"shots.mp4","begin":1,"end":2}
{"source":"shots.mp4","begin":1,"end":3}
{"source":"shots.mp4","begin":4,"end":9}
{"source":"shots.mp4","begin":7,"end":8}
{"source":"shots.mp4","begin":3,"end":2}
{"source":"shots.mp4","begin":3.01,"end":3.02}
{"source":"shots.mp4","begin":"soon","end":3}
{"source":"shots.mp4","end":3}
{"source":"missing.mp4","begin":0,"end":1}
not json
END
  run --separate-stderr vfm-clip shots.mp4 odd.mp4 -o out --spans spans.jsonl --verify
  [ "$status" -eq 1 ]
  [ "$(facts out begin)" = "0 4 1 1 " ]
  [ "$(facts out end)" = "2 4.5 2 3 " ]
  [ "$(jq -r .error out/errors.jsonl | wc -l)" -eq 8 ]
  grep -q "line 7 of 'spans.jsonl'.*ends before it begins" out/errors.jsonl
  grep -q "line 6 of 'spans.jsonl': the span from 7.000 s to 8.000 s lies after the end" out/errors.jsonl
  grep -q "line 5 of 'spans.jsonl'.*ends after the video" out/errors.jsonl
  grep -q "line 8 of 'spans.jsonl'.*holds no frame" out/errors.jsonl
  grep -q 'missing.mp4.*is not in the input' out/errors.jsonl
  [[ "$stderr" = *"'odd.mp4' has no span"* ]]
  : >empty.csv
  local file
  for file in nowhere.csv empty.csv .; do
    run vfm-clip shots.mp4 -o none --spans "$file"
    [ "$status" -eq 2 ]
    [ ! -e none ]
  done
  # A list whose writer was killed is used as far as it goes, and that is reported.
  printf '{"kind":"begin","tool":"vfm-clip","id":"1"}\n{"source":"shots.mp4","begin":0,"end":1}\n' >broken.jsonl
  run vfm-clip shots.mp4 -o broken --spans broken.jsonl
  [ "$status" -eq 1 ]
  grep -q "the output of vfm-clip broke off in 'broken.jsonl' (no end record): spans may be missing" broken/errors.jsonl
  # A line that was cut off, and the begin that cat glued to it: that one has its end.
  printf '{"kind":"begin","tool":"vfm-clip","id":"1"}\n{"source":"shots.mp4","be{"kind":"begin","tool":"mine","id":"2"}\n{"source":"shots.mp4","begin":0,"end":1}\n{"kind":"end","id":"2","records":1,"status":0}\n' >glued.jsonl
  run vfm-clip shots.mp4 -o glued --spans glued.jsonl
  [ "$status" -eq 1 ]
  [ "$(wc -l <glued/errors.jsonl)" -eq 2 ]
  grep -q "the output of vfm-clip broke off in 'glued.jsonl'" glued/errors.jsonl
  printf '{"kind":"end","id":"1","records":1,"status":0}\n' >>broken.jsonl
  vfm-clip shots.mp4 -o whole --spans broken.jsonl
}

@test "--scale and --fps: size and rate of clips, of every kind of source" {
  vfm-clip shots.mp4 rotated.mp4 odd.mp4 vfr.mkv one.mp4 -o out --scale short:32 --fps 24 --verify
  [ "$(facts out verified | grep -o true | wc -l)" -eq "$(facts out key | wc -w)" ]
  [ "$(facts out width)" = "$(for tar in out/*.tar; do tar -xOf "$tar" --wildcards '*.json' | jq -r 'if .source == "rotated.mp4" then 32 elif .source == "odd.mp4" then 66 else 48 end' | tr '\n' ' '; done)" ]
  [ "$(facts out sample_aspect | tr ' ' '\n' | sort -u | xargs)" = "1/1" ]
  local tar name
  for tar in out/*.tar; do
    name=$(tar -tf "$tar" | grep -m1 mp4)
    tar -xOf "$tar" "$name" >clip.mp4
    [ "$(ffprobe -v error -show_entries stream=width,height,r_frame_rate,nb_frames -of csv=p=0 clip.mp4)" = \
      "$(tar -xOf "$tar" "${name%.mp4}.json" | jq -r '"\(.width),\(.height),24/1,\(.frames)"')" ]
  done
  vfm-clip shots.mp4 -o exact --scale 64x-2 --fps 30000/1001
  [ "$(facts exact width)$(facts exact height)" = "64 64 64 42 42 42 " ]
  [ "$(facts exact frames)" = "45 45 45 " ]
  [ "$(facts exact fps)" = "29.97003 29.97003 29.97003 " ]
  vfm-clip shots.mp4 -o slow --fps 4 --scale -2x32
  [ "$(facts slow frames)" = "6 6 6 " ]
  [ "$(facts slow width)" = "48 48 48 " ]
  # As slow as the message about a wrong rate says.
  vfm-clip shots.mp4 -o slowest --fps 0.01
  [ "$(facts slowest frames)$(facts slowest fps)" = "1 1 1 0.01 0.01 0.01 " ]
}

@test "--crop cuts the black bars, and says where" {
  vfm-clip bars.mp4 shots.mp4 -o out --crop --verify
  [ "$(facts out crop | tr ' ' '\n' | sort | xargs)" = "96x40+16+12 null null null" ]
  [ "$(facts out verified | grep -o true | wc -l)" -eq 4 ]
  turn bars.mp4 turned.mp4
  vfm-clip turned.mp4 -o turned --crop --verify
  [ "$(facts turned crop)" = "40x96+12+16 " ]
  [ "$(facts turned width)" = "40 " ]
  # Bars that something is in at some time are no bars.
  quiet_ffmpeg -i bars.mp4 -vf "drawbox=y=54:h=8:color=white:t=fill:enable='gt(t,1.5)'" -c:v libx264 words.mp4
  vfm-clip words.mp4 -o words --crop --no-gradual
  [[ "$(facts words crop)" = 128x50+0+12* ]]
}

# bats test_tags=night
@test "-j and kills change no byte of any of these" {
  printf 'shots.mp4,0.5,1.5\nvfr.mkv,1,3\nshots.mp4,1,2\nvfr.mkv,0,4\nodd.mp4,0,1\n' >spans.csv
  same_for_any_jobs shots.mp4 vfr.mkv odd.mp4 --spans spans.csv --shard-size 9000
  rm -r j1 j4 j9
  same_for_any_jobs shots.mp4 vfr.mkv odd.mp4 b.png --stride 0.5s --into files --readable-names
  [ -z "$(find j9 -name '.*')" ]
  rm -r j1 j4 j9
  same_for_any_jobs bars.mp4 vfr.mkv rotated.mp4 --crop --scale short:32 --fps 10 --shard-size 9000
}

@test "--readable-names: the source's name and the times, legal for every reader" {
  cp shots.mp4 $'Ein Film, der 2. (Müll).v1.MP4'
  mkdir sub
  cp vfr.mkv sub/shots.mkv
  vfm-clip $'Ein Film, der 2. (Müll).v1.MP4' sub/shots.mkv b.png -o out --readable-names
  local tar
  for tar in out/*.tar; do tar -tf "$tar"; done | sort >names
  grep -qE '^Ein_Film_der_2_M_ll_v1-00h00m01s500-00h00m03s000-[0-9a-f]{8}\.mp4$' names
  grep -qE '^shots-00h00m00s000-00h00m01s500-[0-9a-f]{8}\.json$' names
  grep -qE '^b-[0-9a-f]{8}\.png$' names
  [ "$(uniq -d names | wc -l)" -eq 0 ]
  run ! grep -vE '^[A-Za-z0-9_-]{1,80}\.(mp4|png|json)$' names
  [ "$(facts out key | tr ' ' '\n' | grep -c .)" -eq 7 ]
}

@test "--into files: clips as files that the next tools take" {
  vfm-clip shots.mp4 b.png -o out --into files --readable-names --verify >out.jsonl
  [ "$(find out -name '*.mp4' | wc -l)" -eq 3 ]
  [ "$(find out -name '*.json' | wc -l)" -eq 4 ]
  [ "$(find out -name '*.files' | wc -l)" -eq 2 ]
  [ "$(find out -name '.*' -type f | wc -l)" -eq 0 ]
  [ "$(ffprobe -v error -count_frames -show_entries stream=nb_read_frames -of csv=p=0 out/shots-00h00m00s000-*.mp4 | tr -d ,)" -eq 18 ]
  vfm-clip shots.mp4 b.png -o tars --readable-names --verify >tars.jsonl
  # On to the dataset: the same as from shards.
  vfm-caption <out.jsonl | vfm-embed | vfm-shard -o dataset --keep-duplicates >/dev/null
  vfm-caption <tars.jsonl | vfm-embed | vfm-shard -o other --keep-duplicates >/dev/null
  [ "$(cd dataset && find . -name '*.tar' -exec sha256sum {} + | sort)" = "$(cd other && find . -name '*.tar' -exec sha256sum {} + | sort)" ]
  # A clip that changed is reported; a clip that is gone is remade.
  vfm-clip shots.mp4 b.png -o out --into files --readable-names --verify >again.jsonl
  diff <(records out.jsonl) <(records again.jsonl)
  local clip
  clip=$(echo out/shots-00h00m00s000-*.mp4)
  cp "$clip" whole.mp4
  printf x | dd of="$clip" bs=1 seek=100 conv=notrunc status=none
  run vfm-shard out/*.files -o broken
  [[ "$output" = *"is not as it was written"* ]]
  rm "$clip"
  vfm-clip shots.mp4 b.png -o out --into files --readable-names --verify >again.jsonl
  cmp "$clip" whole.mp4
  # Other settings leave nothing of the old clips.
  vfm-clip shots.mp4 -o out --into files --stride 1s >/dev/null
  [ "$(find out -name '*.mp4' | wc -l)" -eq 5 ]
}

@test "options that contradict each other end before any work" {
  printf 'shots.mp4,0,1\n' >s.csv
  local args
  for args in "--stride 1s --spans s.csv" "--stride 1s --threshold 0.3" "--spans s.csv --stitch-sound" "--stride 1s --max-length 3s" \
    "--stride 1s --no-gradual" "--spans s.csv --dry-run" "--format csv" "--into tars" "--scale 640" "--scale -2x-2" \
    "--scale 0x5" "--scale short:-2" "--scale 640x480x2" "--fps 0" "--fps nan" "--fps 1/0" "--fps 24fps"; do
    # shellcheck disable=SC2086
    run --separate-stderr vfm-clip shots.mp4 -o out $args
    echo "$args: $status $stderr"
    [ "$status" -eq 2 ]
    [ ! -e out ]
  done
}

# bats test_tags=night
@test "-v has a line a video, and progress shows the place in a long film" {
  run --separate-stderr vfm-clip shots.mp4 one.mp4 -o out -v
  [[ "$stderr" =~ "vfm-clip: 'shots.mp4': 3 shots, 3 clips, 4.5s of video in "[0-9.]+s ]]
  [[ "$stderr" =~ "vfm-clip: 'one.mp4': 1 shots, 1 clips, 0.1s of video in "[0-9.]+s ]]
  run --separate-stderr vfm-clip shots.mp4 one.mp4 -o out -v
  [[ "$stderr" = *"'shots.mp4': 3 shots, 3 clips, 4.5s of video, there already"* ]]
  run --separate-stderr vfm-clip shots shots.mp4 -v
  [[ "$stderr" =~ "vfm-clip: 'shots.mp4': 3 shots, 4.5s of video in "[0-9.]+s ]]
  quiet_ffmpeg -f lavfi -i testsrc2=size=640x480:rate=25 -t 12 -c:v libx264 -preset ultrafast long.mp4
  run --separate-stderr vfm-clip long.mp4 one.mp4 -o long --progress -j1 --encoder libx264:slow
  [[ "$stderr" =~ "vfm-clip  0/2 videos  "[^$'\n']*"ETA "[^$'\n']*"  'long.mp4': "[0-9.]+"s of 12.0s" ]]
  [[ "$stderr" =~ "vfm-clip  2/2 videos" ]]
}

@test "a report's folder is made as the output's is, and that is reported" {
  run --separate-stderr vfm-clip one.mp4 -o out --report pages/new/clips.html
  [ "$status" -eq 0 ]
  [ -f pages/new/clips.html ]
  [ "$stderr" = "vfm-clip: made the folder 'pages/new' for the report" ]
  run --separate-stderr vfm-clip one.mp4 -o other --report other/clips.html
  [ -z "$stderr" ]
}
