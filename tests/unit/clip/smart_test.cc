// Clips of encoded and copied pieces, and what a clip's encoder makes where they do not fit.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "clip/cut/encoder.h"
#include "clip/cut/smart_cut.h"
#include "curate/measures/clip_meter.h"
#include "media/media_files.h"

using namespace vfm;
using namespace vfm::clip;

namespace {

/// Frames 5 to 39 of plain.mp4, whose key frames are each 12th.
struct Piece {
  const std::string path = media_files::path("plain.mp4");
  media::StreamInfo info;
  std::vector<media::Frame> frames;
  media::SourcePackets packets{path, 0};
  ClipRecipe recipe;
  SmartStart start;
  std::vector<std::int64_t> later;  // from the key frame on
  std::int64_t end = 0;

  Piece() {
    media::Decoder decoder(path);
    info = decoder.info();
    for (media::Frame frame; decoder.next(frame) && frame.index < 40;)
      if (frame.index >= 5) frames.push_back(frame);
    recipe.smart = true;
    recipe.encoder = "libx264";
    start = smart_start(recipe, info);
    start.path = path;
    start.key = packets.key_from(frames[0].pts);
    start.kind = packets.kind();
    CHECK(start.key == frames[7].pts);
    for (const media::Frame& frame : frames)
      if (frame.pts >= *start.key) later.push_back(frame.pts);
    end = frames.back().pts + frames.back().duration;
  }
  media::EncodeOptions encoding() const {
    return {.encoder = "libx264",
            .preset = "ultrafast",
            .width = info.width,
            .height = info.height,
            .time_base = info.time_base,
            .frame_rate = info.frame_rate};
  }
  media::CopiedVideo copy(std::size_t count) {
    const std::vector<std::int64_t> first(later.begin(),
                                          later.begin() + static_cast<std::ptrdiff_t>(count));
    return packets.copy(*start.key, first, later.size() == count ? end : later[count]);
  }
};

/// Fails unless the mp4 has all frames at their times.
void check_times(const std::string& mp4, const std::vector<media::Frame>& frames) {
  media::Decoder decoder(std::string_view(mp4), "it");
  const double base = decoder.info().time_base.value();
  std::size_t count = 0;
  for (media::Frame frame; decoder.next(frame); ++count) {
    REQUIRE(count < frames.size());
    CHECK(static_cast<double>(frame.pts) * base ==
          Approx(static_cast<double>(frames[count].pts - frames[0].pts) / 12800));
  }
  CHECK(count == frames.size());
}

std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("a clip is its head encoded, the source's packets, and its tail encoded") {
  NEED_FFMPEG();
  Piece piece;
  REQUIRE(piece.info.time_base == Rational{1, 12800});
  for (const std::size_t count : {piece.later.size(), std::size_t{12}}) {
    // In the second case the tail is longer than what waits, and decoded once more.
    SmartCut cut(piece.start, piece.encoding());
    for (const media::Frame& frame : piece.frames) {
      CHECK(cut.is_head(frame) == (frame.pts < *piece.start.key));
      cut.add(frame);
    }
    const media::CopiedVideo copied = piece.copy(count);
    REQUIRE_FALSE(copied.video.empty());
    check_times(cut.finish(piece.later, copied, piece.end, {}), piece.frames);
    CHECK(cut.head() == 7);
    CHECK(cut.copied() == static_cast<std::int64_t>(copied.frames));
    CHECK(copied.frames <= count);
    CHECK(copied.frames + 3 >= count);
  }
  // Without a frame behind the head all of it is the head.
  SmartCut head(piece.start, piece.encoding());
  for (std::size_t i = 0; i < 7; ++i)
    head.add(piece.frames[i]);
  check_times(head.finish({}, {}, piece.frames[7].pts, {}),
              {piece.frames.begin(), piece.frames.begin() + 7});
  CHECK(head.head() == 7);
  CHECK(head.copied() == 0);
}

TEST_CASE("pieces that do not fit each other are refused, and why is told") {
  NEED_FFMPEG();
  Piece piece;
  const auto add = [&](auto change) {
    SmartCut cut(piece.start, piece.encoding());
    cut.add(piece.frames[0]);
    media::Frame frame = piece.frames[1];
    change(frame);
    return message_of([&] { cut.add(frame); });
  };
  const std::string change = "the source's pictures change in size or colours";
  CHECK(add([](media::Frame&) {}) == "nothing");
  CHECK(add([](media::Frame& f) { f.interlaced = true; }) == "the source is interlaced");
  CHECK(add([](media::Frame& f) { f.width -= 2; }) == change);
  CHECK(add([](media::Frame& f) { f.height -= 2; }) == change);
  CHECK(add([](media::Frame& f) { f.full_range = !f.full_range; }) == change);
  CHECK(add([](media::Frame& f) { f.color.matrix = 9; }) == change);
  CHECK(add([](media::Frame& f) { f.layout = media::PixelLayout::yuv444; }) == change);
  for (const bool width : {true, false}) {
    media::EncodeOptions other = piece.encoding();
    (width ? other.width : other.height) += 2;
    SmartCut cut(piece.start, other);
    CHECK(message_of([&] { cut.add(piece.frames[0]); }) ==
          "the source's pictures are not as large as it says");
  }
  const auto finish = [&](const SmartStart& start, const media::CopiedVideo& copied,
                          const std::vector<std::int64_t>& later) {
    SmartCut cut(start, piece.encoding());
    for (const media::Frame& frame : piece.frames)
      cut.add(frame);
    return message_of([&] { cut.finish(later, copied, piece.end, {}); });
  };
  const media::CopiedVideo copied = piece.copy(12);
  CHECK(finish(piece.start, copied, piece.later) == "nothing");
  CHECK(finish(piece.start, {{}, 0, "why there is none"}, piece.later) == "why there is none");
  SmartStart other = piece.start;
  --*other.key;
  CHECK(finish(other, copied, piece.later) == "its key frame is not shown");
  std::vector<std::int64_t> times = piece.later;
  ++times[20];
  CHECK(finish(piece.start, copied, times) == "decoded once more the source has other frames");
  times = piece.later;
  times.push_back(piece.end + 5);
  CHECK(finish(piece.start, copied, times) == "decoded once more the source has other frames");
  // Of the last few frames, too.
  const media::CopiedVideo most = piece.copy(piece.later.size() - 4);
  times = piece.later;
  ++times.back();
  CHECK(finish(piece.start, most, piece.later) == "nothing");
  CHECK(finish(piece.start, most, times) == "decoded once more the source has other frames");
}

TEST_CASE("a source is decoded again from a time on, and up to another") {
  NEED_FFMPEG();
  const Piece piece;
  std::vector<std::int64_t> times;
  decode_again(piece.start, piece.frames[3].pts, piece.frames[9].pts,
               [&](const media::Frame& frame) { times.push_back(frame.pts); });
  std::vector<std::int64_t> wanted;
  for (std::size_t i = 3; i < 9; ++i)
    wanted.push_back(piece.frames[i].pts);
  CHECK(times == wanted);
}

namespace {

/// What a clip's encoder makes of the piece, of which nothing can be copied after all.
struct EncodedPiece {
  ClipEncoder clip;
  EncodedPiece(Piece& piece, const SmartStart& start, bool known = false)
      : clip(piece.recipe, piece.info, true, known, start) {
    curate::FrameFeatures features;
    for (const media::Frame& frame : piece.frames) {
      clip.count(frame);
      curate::compute_features(frame, features);
      clip.encode(frame, nullptr, features.picture, curate::measure_frame(features, {}, 1.5));
    }
  }
  Json finish(const media::CopiedVideo& copied) {
    clip.finish({}, nullptr, copied);
    return clip.facts("");
  }
};

}  // namespace

TEST_CASE("a clip that cannot be copied after all is encoded in full, or lost with a reason") {
  NEED_FFMPEG();
  Piece piece;
  {
    EncodedPiece encoded(piece, piece.start);
    CHECK(encoded.clip.begin() == piece.frames[0].pts);
    CHECK(encoded.clip.end() == piece.end);
    const media::CopiedVideo copied = encoded.clip.copied_from(&piece.packets);
    const Json facts = encoded.finish(copied);
    CHECK(encoded.clip.failure().empty());
    CHECK(facts.at("frames_copied") == copied.frames);
    CHECK(facts.at("frames_encoded") == 35 - copied.frames);
    CHECK(facts.at("not_copied") == nullptr);
    CHECK(facts.at("codec") == "h264");
    CHECK(facts.at("verified") == true);
    CHECK(facts.at("frames") == 35);
  }
  {
    EncodedPiece encoded(piece, piece.start);
    CHECK(encoded.clip.copied_from(nullptr).video.empty());
    const Json facts = encoded.finish({{}, 0, "no packets"});
    CHECK(encoded.clip.failure().empty());
    CHECK(facts.at("frames_copied") == 0);
    CHECK(facts.at("frames_encoded") == 35);
    CHECK(facts.at("not_copied") == "no packets");
    CHECK(facts.at("verified") == true);
    const std::string mp4 = encoded.clip.take_mp4();
    CHECK(facts.at("bytes") == mp4.size());
    check_times(mp4, piece.frames);
  }
  SmartStart other = piece.start;
  other.path = media_files::path("edited.mp4");  // half a second is gone
  EncodedPiece encoded(piece, other);
  encoded.clip.finish({}, nullptr, {{}, 0, "no packets"});
  CHECK_THAT(encoded.clip.failure(),
             Catch::StartsWith("it cannot be copied (no packets), and decoded once more it has ") &&
                 Catch::EndsWith(" frames, not 35"));
}
