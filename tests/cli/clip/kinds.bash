# Videos and pictures of many kinds, for tests of vfm-clip.
# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0

# make_kinds NAME...: these, in the current folder, most of them of the pictures of shots.mp4.
make_kinds() {
  local three=(-f lavfi -i "color=red:size=96x64:rate=12:duration=1.5"
    -f lavfi -i "testsrc2=size=96x64:rate=12:duration=1.5"
    -f lavfi -i "color=blue:size=96x64:rate=12:duration=1.5")
  local joined="[0][1][2]concat=n=3:v=1" name
  for name; do
    case $name in
      plain.mp4) make_video plain.mp4 2 ;;
      gop.mp4) quiet_ffmpeg "${three[@]}" -filter_complex "$joined" "${x264[@]}" -g 96 gop.mp4 ;;
      short-gop.ts) quiet_ffmpeg "${three[@]}" -filter_complex "$joined" "${x264[@]}" -g 6 short-gop.ts ;;
      vfr.mkv)
        quiet_ffmpeg "${three[@]}" -filter_complex "${joined}[a];[a]select='not(eq(mod(n,5),2))'[o]" -map '[o]' \
          -fps_mode vfr "${x264[@]}" vfr.mkv
        ;;
      rotated.mp4) turn shots.mp4 rotated.mp4 ;;
      odd.mp4)
        quiet_ffmpeg "${three[@]}" -filter_complex "${joined},scale=97:63,setsar=1" -c:v libx264 -preset ultrafast \
          -pix_fmt yuv444p odd.mp4
        ;;
      wide.mp4) quiet_ffmpeg "${three[@]}" -filter_complex "${joined},setsar=4/3" "${x264[@]}" wide.mp4 ;;
      ten.mkv)
        quiet_ffmpeg "${three[@]}" -filter_complex "$joined" -c:v libx264 -preset ultrafast -pix_fmt yuv420p10le ten.mkv
        ;;
      cover.mp4)
        quiet_ffmpeg "${three[@]}" -f lavfi -i testsrc=size=200x200:duration=0.04 -filter_complex "${joined}[o]" \
          -map '[o]' -map 3:v -c:v:0 libx264 -preset ultrafast -pix_fmt:v:0 yuv420p -c:v:1 png \
          -disposition:v:1 attached_pic cover.mp4
        ;;
      two.mkv)
        quiet_ffmpeg -f lavfi -i testsrc=size=64x48:duration=1:rate=10 -f lavfi -i testsrc2=size=128x96:duration=1:rate=15 \
          -map 0 -map 1 "${x264[@]}" two.mkv
        ;;
      sound.mkv)
        quiet_ffmpeg "${three[@]}" -f lavfi -i sine=duration=4.5 -filter_complex "${joined}[o]" -map '[o]' -map 3 \
          "${x264[@]}" -c:a pcm_s16le sound.mkv
        ;;
      one.mp4) quiet_ffmpeg -f lavfi -i testsrc2=size=96x64:rate=12 -frames:v 1 "${x264[@]}" one.mp4 ;;
      audio.mp4) quiet_ffmpeg -f lavfi -i sine -t 1 audio.mp4 ;;
      a.jpg) quiet_ffmpeg -f lavfi -i testsrc2=size=96x64 -frames:v 1 a.jpg ;;
      b.png) quiet_ffmpeg -f lavfi -i testsrc=size=50x70 -frames:v 1 b.png ;;
      c.png) quiet_ffmpeg -f lavfi -i testsrc=size=60x70 -frames:v 1 c.png ;;
      truncated.mp4) head -c 2000 shots.mp4 >truncated.mp4 ;;
      empty.mp4) : >empty.mp4 ;;
      corrupt.ts)
        [ -e short-gop.ts ] || make_kinds short-gop.ts
        cp short-gop.ts corrupt.ts
        head -c 2000 /dev/urandom | dd of=corrupt.ts bs=1 seek=$(($(stat -c %s short-gop.ts) / 2)) conv=notrunc status=none
        ;;
      *) return 1 ;;
    esac
  done
}

# facts DIR FIELD: the field of each clip's json, in order, one line.
facts() {
  local tar
  for tar in "$1"/*.tar; do tar -xOf "$tar" --wildcards '*.json' | sed 's/}{/}\n{/g'; echo; done |
    grep . | sed "s/.*\"$2\":\(\"[^\"]*\"\|[^,}]*\).*/\1/" | tr -d '"' | tr '\n' ' '
}

# frames_of DIR: decoded frames of each clip, in order.
frames_of() {
  local tar name
  for tar in "$1"/*.tar; do
    for name in $(tar -tf "$tar" | grep mp4); do
      tar -xOf "$tar" "$name" >clip.mp4
      ffprobe -v error -count_frames -show_entries stream=nb_read_frames -of csv=p=0 clip.mp4
    done
  done | tr '\n' ' '
}
