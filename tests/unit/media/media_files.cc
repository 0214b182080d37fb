// SPDX-License-Identifier: Apache-2.0
#include "media_files.h"

#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/temporary_folder.h"

// x265 itself loses some memory at each opening; the leak sanitizer asks here what to pass over.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libx265";
}

namespace media_files {
namespace {

namespace fs = std::filesystem;

const char* const kMake = R"sh(
set -e
ff() { ffmpeg -v error -nostdin -y "$@"; }
x264="-c:v libx264 -preset ultrafast -threads 1"
ff -f lavfi -i testsrc2=s=96x64:r=25:d=2 \
  -f lavfi -i "aevalsrc='sin(2*PI*(200*t+300*t*t))/4':s=48000:d=2" \
  -map 0 -map 1 $x264 -bf 2 -g 12 -pix_fmt yuv420p -c:a aac plain.mp4 \
  -map 0 -map 1 $x264 -g 25 -pix_fmt yuv420p -c:a pcm_s16le pcm.mov \
  -map 1 -c:a aac audio.m4a \
  -map 0 -map 1 $x264 -bf 3 -g 12 -x264-params open-gop=1 -pix_fmt yuv420p \
  -c:a libopus open_gop.mkv \
  -map 0 -c:v mpeg4 -bf 2 -g 12 -threads 1 missing_pts.avi \
  -map 0 -map 1 -c:v mpeg2video -g 12 -bf 2 -threads 1 -c:a mp2 program.ts \
  -map 0 -c:v libx265 -preset ultrafast -x265-params log-level=none \
  -pix_fmt yuv420p10le ten_bit.mp4 \
  -map 0 -c:v libvpx-vp9 -deadline realtime -cpu-used 8 -g 12 -threads 1 vp9.webm \
  -map 0 -vf "setpts='(N*N*7+N*11)/25/TB/40'" -fps_mode passthrough -enc_time_base 1/1000 \
  $x264 -bf 2 -g 12 -pix_fmt yuv420p -video_track_timescale 90000 vfr.mp4 \
  -map 0 -frames:v 1 $x264 -pix_fmt yuv420p one.mp4 \
  -map 0 -frames:v 2 animated.gif -map 0 -frames:v 1 still.gif \
  -map 0 -frames:v 1 still.png \
  -map 0 -frames:v 1 -q:v 2 still.jpg -map 0 -frames:v 1 still.bmp \
  -map 0 -frames:v 1 still.tiff -map 0 -frames:v 1 -lossless 1 still.webp
cp still.png 'shot%02d.png'
ff -f lavfi -i testsrc2=s=96x64:r=25:d=0.2,scale=97:63,setsar=1 \
  -map 0 -c:v ffv1 -pix_fmt yuv420p odd.mkv \
  -map 0 -c:v ffv1 -pix_fmt yuv422p odd422.mkv -map 0 -c:v ffv1 -pix_fmt yuv444p10le deep444.mkv \
  -map 0 -c:v ffv1 -pix_fmt gray gray.mkv -map 0 -c:v ffv1 -pix_fmt bgra rgb.mkv \
  -map 0 -c:v ffv1 -pix_fmt yuva420p alpha.mkv -map 0 -c:v rawvideo -pix_fmt pal8 paletted.avi \
  -map 0 -c:v mjpeg -q:v 2 -pix_fmt yuvj420p jpeg.avi
ff -f lavfi -i testsrc2=s=64x48:r=10:d=8 \
  $x264 -g 80 -bf 2 -sc_threshold 0 -pix_fmt yuv420p long_gop.mp4
ff -f lavfi -i testsrc2=s=64x48:r=10:d=1 \
  -f lavfi -i testsrc2=s=96x64:r=25:d=1 -map 0 -map 1 \
  $x264 -pix_fmt yuv420p -disposition:v:1 default -disposition:v:0 0 two_streams.mkv
ff -i plain.mp4 -i still.png -map 1 -map 0 -c copy -disposition:v:0 attached_pic cover.mp4
ff -i audio.m4a -i still.png -map 0 -map 1 -c copy -disposition:v:0 attached_pic cover_only.m4a
# FFmpeg 7 writes no rotation from metadata, and FFmpeg 5 does not know the option.
ff -display_rotation 90 -i plain.mp4 -c copy rotated.mp4 2>/dev/null ||
  ff -i plain.mp4 -c copy -metadata:s:v rotate=90 rotated.mp4
ff -i plain.mp4 -c copy -movflags +faststart faststart.mp4
ff -ss 10 -i plain.mp4 -an -c:v libx264 nothing.mp4
ff -ss 0.5 -i plain.mp4 -c copy edited.mp4
printf '1\n00:00:00,000 --> 00:00:01,000\nhello\n' > words.srt
seq 1 300 | sed 's/.*/plain text &/' > notes.txt
: > empty.mp4
)sh";

const std::string& folder() {
  static const vfm::TemporaryFolder folder;
  return folder.path;
}

}  // namespace

bool available() {
  static const bool found = [] {
    if (std::system("ffmpeg -version >/dev/null 2>&1 && ffprobe -version >/dev/null 2>&1") != 0)
      return false;
    write(path("make.sh"), kMake);
    run("cd '" + folder() + "' && sh make.sh");
    return true;
  }();
  return found;
}

std::string path(const std::string& name) {
  return folder() + "/" + name;
}

std::string read(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  REQUIRE(in);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const std::string& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

std::string run(const std::string& command) {
  INFO(command);
  FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe);
  std::string out;
  std::array<char, 65536> part{};
  for (std::size_t got; (got = std::fread(part.data(), 1, part.size(), pipe)) > 0;)
    out.append(part.data(), got);
  REQUIRE(pclose(pipe) == 0);
  return out;
}

std::vector<std::int64_t> probe_times(const std::string& file, const std::string& stream) {
  std::istringstream lines(run("ffprobe -v error -select_streams " + stream +
                               " -show_entries frame=best_effort_timestamp -of csv=p=0 '" + file +
                               "'"));
  std::vector<std::int64_t> times;
  for (std::string line; std::getline(lines, line);)
    if (!line.empty()) times.push_back(std::stoll(line));
  return times;
}

std::string raw_frames(const std::string& file, const std::string& stream,
                       const std::string& format) {
  return run("ffmpeg -v error -nostdin -noautorotate -flags bitexact -i '" + file + "' -map 0:" +
             stream + " -fps_mode passthrough -sws_flags bicubic+accurate_rnd+bitexact" +
             (format.empty() ? "" : " -pix_fmt " + format) + " -f rawvideo -");
}

}  // namespace media_files
