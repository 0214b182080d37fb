#!/usr/bin/env bash
# text_area of vfm-clip on writing that is drawn, and on pictures and videos without any; and what the measures cost.
# Usage: tests/bench/text_area.sh BUILD_DIR VIDEO|PICTURE...
# Of each video the three seconds from the sixth on are taken, as they are and with subtitles, a lower third and a large
# word over them; of each picture one second at 640x360. OTHER=PROGRAM: another vfm-clip, whose processor seconds
# on the whole videos are compared with this one's, in turns, ROUNDS times (3).
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
clip=$(cd "$1" && pwd)/tools/vfm-clip
shift
scratch=$(mktemp -d "${TMPDIR:-/tmp}/vfm-bench-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
x264=(-c:v libx264 -preset veryfast -crf 16 -pix_fmt yuv420p -an)
printf '1\n00:00:00,000 --> 00:10:00,000\nThe quick brown fox jumps over\nthe lazy dog at midnight.\n' >"$scratch/words.srt"

# draw NAME INPUT... -- FILTER: a video of a few seconds in the scratch folder.
draw() {
  local name=$1 input=()
  shift
  while [ "$1" != -- ]; do input+=("$1"); shift; done
  (cd "$scratch" && ffmpeg -nostdin -v error -y "${input[@]}" -vf "$2" "${x264[@]}" "$name.mkv")
}

for size in 22 36 48 96; do
  words='A title of seven words in white'
  [ $size -lt 96 ] || words='BIG WORDS'
  draw "title $size" -f lavfi -i color=gray:s=1280x720:d=1 -- "drawtext=text='$words':fontsize=$size:fontcolor=white:x=90:y=300"
done
videos=()
for path in "$@"; do
  path=$(realpath "$path")
  name=$(basename "${path%.*}")
  case $path in
    *.png | *.jpg)
      draw "picture $name" -loop 1 -t 1 -i "$path" -- \
        'scale=640:360:force_original_aspect_ratio=increase,crop=640:360,format=yuv420p' ;;
    *)
      videos+=("$path")
      cut=(-ss 6 -t 3 -i "$path")
      draw "$name as it is" "${cut[@]}" -- null
      draw "$name subtitles" "${cut[@]}" -- subtitles=words.srt
      draw "$name lower third" "${cut[@]}" -- \
        "drawtext=text='Breaking news, 12 people and a dog':fontsize=h/18:fontcolor=white:box=1:boxcolor=navy:boxborderw=8:x=40:y=h*0.8"
      draw "$name large word" "${cut[@]}" -- "drawtext=text='Clouds':fontsize=h/9:fontcolor=yellow:x=40:y=h*0.2" ;;
  esac
done
echo "| what | text_area |"
echo "|---|---:|"
"$clip" -q --no-gradual --threshold 9 --into files -o "$scratch/out" "$scratch"/*.mkv >/dev/null
cat "$scratch"/out/*.json | jq -rs 'map(select(.text_area != null)) | sort_by(.source)[] |
  "| \(.source | sub(".*/"; "") | sub(".mkv$"; "")) | \(.text_area * 1000 | round / 1000) |"'

[ -n "${OTHER:-}" ] || exit 0
# seconds PROGRAM VIDEO: user seconds.
seconds() { rm -rf "$scratch/t"; /usr/bin/time -f %U -o "$scratch/time" "$1" -q -j1 -o "$scratch/t" "$2" >/dev/null 2>&1; cat "$scratch/time"; }
for video in "${videos[@]}"; do
  for _ in $(seq "${ROUNDS:-3}"); do
    echo "$(seconds "$OTHER" "$video") $(seconds "$clip" "$video")"
  done | awk -v name="$(basename "$video")" '{ if (!a || $1 < a) a = $1; if (!b || $2 < b) b = $2 }
    END { printf "%s: %.2f s without, %.2f s with: %.3f\n", name, a, b, b / a }'
done
