// What --verify takes for the source's clip, and what it refuses.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "clip/cut/encoder.h"
#include "media/encode/encoder.h"
#include "unit/curate/drawing.h"

using namespace vfm;
using namespace vfm::clip;

namespace {

constexpr int kWidth = 64, kHeight = 48, kLength = 6;

/// Frames that are unlike each other, 5 ticks of 1/50 s each.
std::vector<media::Frame> drawn_frames(int width = kWidth, int height = kHeight) {
  std::vector<media::Frame> frames;
  for (int i = 0; i < kLength + 2; ++i) {
    const drawing::Texture texture(static_cast<std::uint64_t>(i + 1), 12, {40, 78, 78});
    media::Frame frame = media::copy_frame(drawing::frame(width, height, texture.shifted(0, 0)));
    frame.full_range = false;
    frame.pts = 100 + 5 * i;
    frame.duration = 5;
    frames.push_back(frame);
  }
  return frames;
}

std::string encoded(const std::vector<media::Frame>& frames, std::size_t begin, std::size_t end,
                    const std::string& encoder = "ffv1") {
  media::VideoEncoder video({.encoder = encoder,
                             .quality = 10,
                             .width = frames[begin].width,
                             .height = frames[begin].height,
                             .time_base = {1, 50},
                             .frame_rate = {10, 1}});
  for (std::size_t i = begin; i < end; ++i)
    video.add(frames[i]);
  return video.finish();
}

/// Of the frames [begin, end).
ClipEvidence evidence_of(const std::vector<media::Frame>& frames, std::size_t begin,
                         std::size_t end) {
  ClipEvidence evidence;
  if (begin > 0) evidence.before = frames[begin - 1];
  evidence.first = frames[begin];
  if (end > begin + 1) {
    evidence.second = frames[begin + 1];
    evidence.second_last = frames[end - 2];
  }
  evidence.last = frames[end - 1];
  if (end < frames.size()) evidence.after = frames[end];
  for (std::size_t i = begin; i < end; ++i)
    evidence.pts.push_back(frames[i].pts);
  evidence.end = frames[end - 1].pts + frames[end - 1].duration;
  evidence.time_base = {1, 50};
  return evidence;
}

/// What it says of the clip; empty: it is the source's.
std::string said(const std::string& mp4, const ClipEvidence& evidence) {
  try {
    verify_clip(mp4, evidence);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("a clip of the source's frames at their times is proved") {
  const std::vector<media::Frame> frames = drawn_frames();
  const std::string clip = encoded(frames, 1, 7);
  ClipEvidence evidence = evidence_of(frames, 1, 7);
  CHECK(said(clip, evidence).empty());
  CHECK(said(encoded(frames, 1, 7, "libx264"), evidence).empty());
  CHECK(said(encoded(frames, 0, 8), evidence_of(frames, 0, 8)).empty());
  CHECK(said(encoded(frames, 3, 4), evidence_of(frames, 3, 4)).empty());
  CHECK(said(encoded(frames, 3, 5), evidence_of(frames, 3, 5)).empty());
  // The same times in another time base.
  for (std::int64_t& pts : evidence.pts)
    pts *= 3;
  evidence.end *= 3;
  evidence.time_base = {1, 150};
  CHECK(said(clip, evidence).empty());
  evidence.time_base = {1, 151};
  CHECK(said(clip, evidence) == "frame 1 of the clip is not shown at its time");
}

TEST_CASE("a clip with other frames or times than its span is refused, and why is told") {
  const std::vector<media::Frame> frames = drawn_frames();
  const std::string clip = encoded(frames, 1, 7);
  const ClipEvidence right = evidence_of(frames, 1, 7);
  ClipEvidence evidence = right;
  evidence.pts.pop_back();
  CHECK(said(clip, evidence) == "the clip has more frames than its span (5)");
  evidence.pts = right.pts;
  evidence.pts.push_back(140);
  CHECK(said(clip, evidence) == "the clip has 6 frames where its span has 7");
  evidence.pts = right.pts;
  ++evidence.pts[5];
  CHECK(said(clip, evidence) == "frame 5 of the clip is not shown at its time");
  evidence.pts = right.pts;
  ++evidence.end;
  CHECK(said(clip, evidence) ==
        "the last frame of the clip does not last as long as in the source");
  evidence = right;
  evidence.first = frames[7];
  CHECK_THAT(said(clip, evidence),
             Catch::StartsWith("the clip's first frame is not the source's (PSNR "));
  evidence = right;
  evidence.last = frames[0];
  CHECK_THAT(said(clip, evidence),
             Catch::StartsWith("the clip's last frame is not the source's (PSNR "));
}

namespace {

/// With so many levels added to every sample of luma.
media::Frame brighter(const media::Frame& frame, int levels) {
  media::Frame copy = media::copy_frame(frame);
  for (int y = 0; y < copy.height; ++y)
    for (int x = 0; x < copy.width; ++x)
      media::writable(copy, 0)[y * copy.stride[0] + x] =
          static_cast<std::uint8_t>(frame.plane[0][y * frame.stride[0] + x] + levels);
  return copy;
}

}  // namespace

TEST_CASE("a clip that is one frame early or late is refused, where the frames look different") {
  std::vector<media::Frame> frames = drawn_frames();
  const std::string clip = encoded(frames, 1, 7);
  // Other frames for the ends: a little like the clip's, where a neighbour is just as it.
  const auto with = [&](auto change) {
    ClipEvidence evidence = evidence_of(frames, 1, 7);
    change(evidence);
    return said(clip, evidence);
  };
  CHECK(with([&](ClipEvidence& e) { e.first = brighter(frames[1], 8), e.before = frames[1]; }) ==
        "the clip's first frame is the source's frame before it");
  CHECK(with([&](ClipEvidence& e) { e.first = brighter(frames[1], 8), e.second = frames[1]; }) ==
        "the clip's first frame is the source's frame after it");
  CHECK(with([&](ClipEvidence& e) {
          e.last = brighter(frames[6], 8), e.second_last = frames[6];
        }) == "the clip's last frame is the source's frame before it");
  CHECK(with([&](ClipEvidence& e) { e.last = brighter(frames[6], 8), e.after = frames[6]; }) ==
        "the clip's last frame is the source's frame after it");
  // 3 levels are 38.6 dB, 4 are 36.1: more alike than 38 dB is the same picture.
  CHECK(with([&](ClipEvidence& e) {
          e.first = brighter(frames[1], 3), e.before = frames[1];
        }).empty());
  CHECK_FALSE(with([&](ClipEvidence& e) {
                e.first = brighter(frames[1], 4), e.before = frames[1];
              }).empty());
  // Better by less than 1 dB: 24.6 and 25.3 dB.
  CHECK(with([&](ClipEvidence& e) {
          e.first = brighter(frames[1], 15), e.before = brighter(frames[1], -14);
        }).empty());
  CHECK_FALSE(with([&](ClipEvidence& e) {
                e.first = brighter(frames[1], 15), e.before = brighter(frames[1], -12);
              }).empty());
  // 20 dB are 25.5 levels.
  CHECK(with([&](ClipEvidence& e) { e.first = brighter(frames[1], 25); }).empty());
  CHECK(with([&](ClipEvidence& e) { e.first = brighter(frames[1], 26); }) ==
        "the clip's first frame is not the source's (PSNR 19.8 dB)");
  CHECK(with([&](ClipEvidence& e) { e.last = brighter(frames[6], -26); }) ==
        "the clip's last frame is not the source's (PSNR 19.8 dB)");
  // The only frame of a clip has the frame after it for its second.
  const std::string one = encoded(frames, 3, 4);
  ClipEvidence evidence = evidence_of(frames, 3, 4);
  evidence.first = evidence.last = brighter(frames[3], 8);
  evidence.after = frames[3];
  CHECK(said(one, evidence) == "the clip's first frame is the source's frame after it");
  evidence.after = {};
  evidence.last = frames[3];
  evidence.before = brighter(frames[3], 0);
  CHECK(said(one, evidence) == "the clip's first frame is the source's frame before it");
}

TEST_CASE("frames that were copied must be the source's to the bit") {
  const std::vector<media::Frame> frames = drawn_frames();
  const std::string clip = encoded(frames, 1, 5);
  ClipEvidence evidence = evidence_of(frames, 1, 5);
  evidence.copied = {"", picture_hash(frames[2]), picture_hash(frames[3]), ""};
  CHECK(said(clip, evidence).empty());
  evidence.copied[2] = picture_hash(frames[2]);
  CHECK(said(clip, evidence) ==
        "frame 2 of the clip, which was copied, is not the source's to the bit");
}

TEST_CASE("a hash of a picture is of its samples, not of what is between its rows") {
  const media::Frame frame = drawn_frames(33, 17)[0];
  media::Frame other = media::copy_frame(frame);
  CHECK(picture_hash(other) == picture_hash(frame));
  for (int p = 0; p < 3; ++p) {
    const int end = media::plane_row_bytes(other, p), last = media::plane_rows(other, p) - 1;
    REQUIRE(other.stride[p] > end);
    std::uint8_t* const row = media::writable(other, p) + std::ptrdiff_t{last} * other.stride[p];
    ++row[end];
    CHECK(picture_hash(other) == picture_hash(frame));
    ++row[end - 1];
    CHECK(picture_hash(other) != picture_hash(frame));
    --row[end - 1];
  }
}

TEST_CASE("full range and limited range are compared as what they show") {
  std::vector<media::Frame> frames = drawn_frames();
  const std::string clip = encoded(frames, 1, 7);
  ClipEvidence evidence = evidence_of(frames, 1, 7);
  // The source's frames in full range, of which the clip has the limited one.
  for (media::Frame* frame : {&evidence.first, &evidence.last}) {
    media::Frame full = media::copy_frame(*frame);
    full.full_range = true;
    for (int y = 0; y < full.height; ++y)
      for (int x = 0; x < full.width; ++x) {
        std::uint8_t& value = media::writable(full, 0)[y * full.stride[0] + x];
        value = static_cast<std::uint8_t>((255 * (value - 16) + 109) / 219);
      }
    *frame = full;
  }
  // As it is, frame for frame, a neighbour of the same picture is no better.
  evidence.before = evidence.first;
  CHECK(said(clip, evidence).empty());
  evidence.first.full_range = evidence.last.full_range = false;
  evidence.before = frames[1];
  CHECK(said(clip, evidence) == "the clip's first frame is the source's frame before it");
}

TEST_CASE("pictures that become larger or smaller are compared in the clip's size") {
  const std::vector<media::Frame> frames = drawn_frames();
  const std::string clip = encoded(frames, 1, 5);
  ClipEvidence evidence = evidence_of(frames, 1, 5);
  evidence.last = media::Resizer(128, 96).resize(evidence.last);
  CHECK(said(clip, evidence).empty());
  // A column and a row more are not scaled: an encoder repeats them.
  evidence = evidence_of(frames, 1, 5);
  evidence.first = media::copy_frame(
      drawing::frame(kWidth - 1, kHeight - 1, drawing::Texture(2, 12, {40, 78, 78}).shifted(0, 0)));
  evidence.first.full_range = false;
  CHECK(said(clip, evidence).empty());
  // Of packed RGB the times alone are known.
  evidence.first = media::make_frame(media::PixelLayout::rgb24, kWidth, kHeight);
  CHECK(said(clip, evidence).empty());
  // A neighbour of another layout says nothing.
  evidence = evidence_of(frames, 1, 5);
  evidence.before = media::make_frame(media::PixelLayout::gray, kWidth, kHeight);
  CHECK(said(clip, evidence).empty());
}
