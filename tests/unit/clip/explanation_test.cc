// What the page of --explain keeps of a long video.
// SPDX-License-Identifier: Apache-2.0
#include "clip/lists/explanation.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

using namespace vfm;
using namespace vfm::clip;

namespace {

/// The page of a video of one letter a frame, with a network that answers 0.75 for 'x', else 0.
ExplainedVideo explained(const std::string& video) {
  curate::ShotOptions options;
  options.detector = curate::Detector::transnetv2;
  options.threshold = 0.5;
  options.explain = true;
  media::StreamInfo info;
  info.display_width = 96, info.display_height = 54;
  info.time_base = {1, 25};
  const auto model = [](std::span<const std::uint8_t> frames) {
    std::vector<float> answers;
    constexpr std::size_t kFrame = std::size_t{3} * curate::kChangeWidth * curate::kChangeHeight;
    for (std::size_t at = 0; at < frames.size(); at += kFrame)
      answers.push_back(frames[at] > 128 ? 0.75F : 0);
    return answers;
  };
  ShotFinder finder(options, model, info);
  Explanation explanation("video.mp4", info, options, {});
  const auto settle = [&] {
    for (const curate::ShotChange& change : finder.take())
      explanation.found(change);
    explanation.settle(finder);
  };
  for (std::size_t i = 0; i < video.size(); ++i) {
    media::Frame frame = media::make_frame(media::PixelLayout::yuv420, 96, 54);
    frame.index = frame.pts = static_cast<std::int64_t>(i);
    for (int p = 0; p < 3; ++p)
      for (int y = 0; y < media::plane_rows(frame, p); ++y)
        std::memset(media::writable(frame, p) + std::ptrdiff_t{y} * frame.stride[p],
                    p > 0             ? 128
                    : video[i] == 'x' ? 235
                                      : 16,
                    static_cast<std::size_t>(media::plane_row_bytes(frame, p)));
    finder.push(frame, {});
    explanation.add(frame, {}, finder);
    settle();
  }
  finder.finish();
  settle();
  return explanation.explained();
}

}  // namespace

TEST_CASE("of a series of any length a thousand points stay, the highest among them") {
  for (const int count : {1, 999, 1000, 1001, 2001, 123457}) {
    Peaks peaks;
    const auto value = [](int i) { return std::fmod(i * 0.7548776662, 1.0) + (i == 700 ? 5 : 0); };
    for (int i = 0; i < count; ++i)
      peaks.add(i, value(i));
    REQUIRE(peaks.x().size() == peaks.y().size());
    CHECK(peaks.x().size() <= Peaks::kMost);
    CHECK(peaks.x().size() >= std::min<std::size_t>(static_cast<std::size_t>(count), 500));
    CHECK(std::is_sorted(peaks.x().begin(), peaks.x().end()));
    for (std::size_t i = 0; i < peaks.x().size(); ++i)
      CHECK(peaks.y()[i] == value(static_cast<int>(peaks.x()[i])));
    if (count > 700) CHECK(*std::max_element(peaks.y().begin(), peaks.y().end()) == value(700));
    // No part without a point: their ends are near each other.
    CHECK(peaks.x().back() >= count - 1 - 2.0 * count / 500);
  }
}

TEST_CASE("a network's change is found once, however long it lasts, and is no near miss") {
  for (const std::size_t frames : {2, 20, 30, 90, 250}) {
    const std::string still(70, '.'), change(frames, 'x');
    const ExplainedVideo middle = explained(still + change + still);
    CHECK(middle.found.size() == 1);
    CHECK(middle.near.empty());
    // With which the video begins or ends.
    CHECK(explained(change + still).near.empty());
    CHECK(explained(still + change).near.empty());
    // Where all is above the threshold there is no change.
    const ExplainedVideo whole = explained(change);
    CHECK(whole.found.empty());
    CHECK_FALSE(whole.near.empty());
    for (const report::Figure& figure : whole.near)
      CHECK(figure.caption.find("above the threshold, as all of the video is") !=
            std::string::npos);
  }
}
