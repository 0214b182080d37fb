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

#include "io/file.h"
#include "support/parts.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::clip;

namespace {

/// The page of a video of one letter a frame, with a network that answers 0.75 for 'x', tenths for
/// digits, else 0.
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
      answers.push_back(frames[at] == 255 ? 0.75F : std::round(frames[at] / 25.5F) / 10);
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
                    : video[i] == '.' ? 16
                                      : 16 + (video[i] - '0') * 219 / 10,
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

namespace {

std::vector<std::string> captions_of(const std::vector<report::Figure>& figures) {
  std::vector<std::string> captions;
  for (const report::Figure& figure : figures)
    captions.push_back(figure.caption);
  return captions;
}

}  // namespace

TEST_CASE("of many changes the least certain are shown, of near misses the nearest") {
  std::string video = "....";
  std::vector<std::string> wanted;
  int nines = 0;
  for (int i = 0; i < 50; ++i) {
    const int tenths = 6 + i % 4;
    video += static_cast<char>('0' + tenths);
    const auto begin = static_cast<int>(video.size());
    if (tenths < 9 || ++nines <= 2)  // of those that are as certain the first
      wanted.push_back(
          vfm::format("{:.3f} s, frame {}: cut, {:.3f}", begin / 25.0, begin, tenths / 10.0));
    video += "....";
  }
  const ExplainedVideo explained_video = explained(video);
  CHECK(captions_of(explained_video.found) == wanted);
  CHECK(wanted.size() == 40);
  CHECK(explained_video.found_title == "Found: the 40 of 50 that are the least certain.");
  CHECK(explained_video.near.empty());
  CHECK(explained_video.near_title == "Nearly found: the 0 highest scores that made no change.");
  CHECK(explained_video.name == "video.mp4");
  CHECK(explained_video.chart_caption ==
        "254 frames, 50 changes of shot. The line is the highest score in each of up to 1000 parts "
        "of the video. It is the network's probability that a frame is the last one of a shot, or "
        "in a change.");
  // Scores of a quarter of the threshold and more are near.
  video = "....";
  wanted.clear();
  int threes = 0;
  for (const char tenths : std::string("12341234334344434341")) {
    video += tenths;
    const auto frame = static_cast<int>(video.size());
    if (tenths == '4' || (tenths == '3' && ++threes <= 4))
      wanted.push_back(vfm::format("{:.3f} s, frame {}: {:.3f}, below the threshold", frame / 25.0,
                                   frame, (tenths - '0') / 10.0));
    video += "....";
  }
  const ExplainedVideo none = explained(video);
  CHECK(captions_of(none.near) == wanted);
  CHECK(wanted.size() == 12);
  CHECK(none.near_title == "Nearly found: the 12 highest scores that made no change.");
  CHECK(none.found.empty());
  CHECK(none.found_title == "Found:");
}

TEST_CASE("a change of several frames is told with them, and its pictures are beside each other") {
  const ExplainedVideo video = explained(std::string(40, '.') + "xxx" + std::string(40, '.'));
  REQUIRE(video.found.size() == 1);
  CHECK(video.found[0].caption ==
        "1.680 s, frame 42: transition, 0.750 of 1; frames 41 to 42 are in no shot");
  CHECK(video.found[0].data_url.starts_with("data:image/jpeg;base64,"));
  CHECK(video.found_title == "Found:");
  CHECK(video.chart.find("found") != std::string::npos);
}

TEST_CASE("a page ends at so many videos and pairs of pictures, and says so") {
  const TemporaryFolder folder;
  const auto page_of = [&](const std::vector<std::pair<int, int>>& videos, int more = 0) {
    ExplainPage page;
    int number = 0;
    const auto figures = [&](int count) {
      std::vector<report::Figure> all;
      for (int i = 0; i < count; ++i)
        all.push_back({"data:,x", vfm::format("pair {}", ++number)});
      return all;
    };
    for (const auto& [found, near] : videos)
      page.add({"v.mp4", "<svg/>", "chart", "FOUND", "NEAR", figures(found), figures(near)});
    for (int i = 0; i < more; ++i)
      page.add({"v.mp4", "<svg/>", "chart", "FOUND", "NEAR", {}, {}});
    page.write(folder / "page.html", "");
    const std::string html = io::read_file(folder / "page.html");
    const auto count = [&](const std::string& part) { return count_of(html, part); };
    return vfm::format("{} videos, {} pairs, {} found, {} near, {} more", count(">v.mp4<"),
                       count("data:,x"), count("FOUND"), count("NEAR"),
                       count("The page ends at 100 videos and 240 pairs of pictures; there were "
                             "more."));
  };
  CHECK(page_of({{3, 0}, {0, 2}}) == "2 videos, 5 pairs, 1 found, 1 near, 0 more");
  CHECK(page_of({{100, 100}, {0, 40}}) == "2 videos, 240 pairs, 1 found, 2 near, 0 more");
  CHECK(page_of({{100, 100}, {41, 40}}) == "2 videos, 240 pairs, 1 found, 2 near, 1 more");
  CHECK(page_of({}, 100) == "100 videos, 0 pairs, 0 found, 0 near, 0 more");
  CHECK(page_of({}, 101) == "100 videos, 0 pairs, 0 found, 0 near, 1 more");
}
