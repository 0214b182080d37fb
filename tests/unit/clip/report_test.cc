// The pages of vfm-clip: what --report shows of finished sources, and --explain of decisions.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "clip/clip_report.h"
#include "clip/lists/explanation.h"
#include "clip/store/store.h"
#include "media/encode/encoder.h"
#include "report/html.h"
#include "support/heard_log.h"
#include "support/parts.h"
#include "unit/clip/clip_run.h"

using namespace vfm;
using namespace vfm::clip;

namespace {

/// A folder with finished sources, whose clips are pictures.
struct ReportFolder {
  TemporaryFolder folder;
  ClipReport report{folder / "page.html", folder.path};
  int sources = 0;

  /// The text of a finished source with these clips.
  std::string finished(const std::vector<Json>& facts, Json summary,
                       const std::string& member = clip_run::drawn_bitmap(5)) {
    const std::string name = vfm::format("{:016}", ++sources);
    const auto store =
        make_clip_store(ClipFormat::shards, folder.path, name, {{"recipe", 1}}, 1 << 28);
    store->find_or_hold(true);
    store->begin(false);
    for (std::size_t i = 0; i < facts.size(); ++i)
      store->add(
          {vfm::format("clip{}-{}", sources, i), {{"bmp", member}, {"json", dump_json(facts[i])}}});
    summary["errors"] = Json::array();
    return dump_json(store->finish(std::move(summary)));
  }
  std::string page(const std::string& incomplete = "") {
    report.write(incomplete);
    return io::read_file(folder / "page.html");
  }
};

Json clip_facts(double begin, const std::string& hash) {
  return {{"source_hash", hash}, {"begin", begin}, {"end", begin + 1}, {"seconds", 1.0}};
}

/// The time line of a page.
std::string bar(const std::string& rects) {
  return "<svg viewBox='0 0 1000 24' width='100%' height='24' preserveAspectRatio='none'>"
         "<rect width='1000' height='24' fill='#7fa8c9'/>" +
         rects + "</svg>";
}
std::string gap_rect(const char* x, const char* width) {
  return std::string("<rect x='") + x + "' width='" + width + "' height='24' fill='#e4e4e4'/>";
}
std::string stroke(const char* x, const char* colour) {
  return std::string("<rect x='") + x + "' width='2' height='24' fill='" + colour + "'/>";
}

}  // namespace

TEST_CASE("a time line begins where the earliest clip or gap does, and has a stroke a change") {
  ReportFolder folder;
  const Json cuts = {{{"time", 12.0}, {"type", "cut"}},
                     {{"time", 13.5}, {"type", "fade"}},
                     {{"time", 15.0}, {"type", "wipe"}},
                     {{"time", 99.0}, {"type", "dissolve"}}};
  const Json gaps = {{{"begin", 11.0}, {"end", 12.0}}, {{"begin", 14.0}, {"end", 14.001}}};
  Json video = {{"kind", "clips"}, {"source", "a.mp4"}, {"source_hash", "h1"},
                {"seconds", 10.0}, {"cuts", cuts},      {"left_out", gaps}};
  // From 10 s on, though the first clip listed begins later.
  folder.report.add(folder.finished({clip_facts(13, "h1"), clip_facts(10, "h1")}, video));
  video["source"] = "b.mp4";
  folder.report.add(folder.finished({clip_facts(12, "h1")}, video));
  video["source"] = "c.mp4";
  video["left_out"] = Json::array();
  folder.report.add(folder.finished({clip_facts(12, "another")}, video));
  const std::string page = folder.page();
  const std::string strokes = stroke("200.0", "#222") + stroke("350.0", "#8a2be2") +
                              stroke("500.0", "#d2691e") + stroke("1000.0", "#d2691e");
  CHECK(count_of(page, bar(gap_rect("100.0", "100.0") + gap_rect("400.0", "0.5") + strokes)) == 1);
  CHECK(count_of(page, bar(gap_rect("0.0", "100.0") + gap_rect("300.0", "0.5") +
                           stroke("100.0", "#222") + stroke("250.0", "#8a2be2") +
                           stroke("400.0", "#d2691e") + stroke("1000.0", "#d2691e"))) == 1);
  // Where nothing is known of the beginning it is 0.
  CHECK(count_of(page, bar(stroke("1000.0", "#222") + stroke("1000.0", "#8a2be2") +
                           stroke("1000.0", "#d2691e") + stroke("1000.0", "#d2691e"))) == 1);
  CHECK(count_of(page, "a.mp4\u2069: 10s, 4 changes of shot, 2 clips") +
            count_of(page, "a.mp4\u2069: 10.0s, 4 changes of shot, 2 clips") ==
        1);
  CHECK(count_of(page, "4 clips of 3 sources.") == 1);
  CHECK(count_of(page, "The colours of the time lines.") == 1);
  const std::string legend =
      "<rect x='360' y='4' width='10' height='10' fill='#d2691e' stroke='currentColor' "
      "stroke-width='.5'/><text x='376' y='13'>dissolve, wipe or transition</text>";
  CHECK(count_of(page, legend) == 1);
}

TEST_CASE("each video of a batch has its line, and what is missing on a page is told") {
  ReportFolder folder;
  const auto video = [](const char* name, const char* hash, int clips) {
    return Json{{"source", name},        {"source_hash", hash},       {"seconds", 4.0},
                {"cuts", Json::array()}, {"left_out", Json::array()}, {"clips", clips}};
  };
  folder.report.add(folder.finished({clip_facts(0, "h1"), clip_facts(2, "h2")},
                                    {{"kind", "joined"},
                                     {"sources",
                                      {video("a.mp4", "h1", 1),
                                       {{"source", "bad.mp4"}, {"failed", "why"}},
                                       video("b.mp4", "h2", 2)}}}));
  folder.report.add(
      folder.finished({{{"media", "image"}, {"width", 7}, {"height", 5}}}, {{"kind", "images"}}));
  const std::string page = folder.page("the input broke off");
  CHECK(count_of(page, "3 clips of 4 sources.") == 1);
  CHECK(count_of(page, bar("")) == 2);
  CHECK(count_of(page, "0 changes of shot, 1 clip</figcaption>") == 1);
  CHECK(count_of(page, "0 changes of shot, 2 clips</figcaption>") == 1);
  CHECK(count_of(page, ">7 x 5</figcaption>") == 1);
  CHECK(count_of(page, "the input broke off") == 1);
  CHECK(count_of(page, "<h2>Measures</h2>") == 1);
}

TEST_CASE("a clip's picture is its middle frame, and one that cannot be decoded has none") {
  media::VideoEncoder encoder({.encoder = "ffv1",
                               .width = 160,
                               .height = 120,
                               .time_base = {1, 10},
                               .frame_rate = {10, 1}});
  std::vector<media::Frame> frames;
  for (int i = 0; i < 4; ++i) {
    const drawing::Texture texture(static_cast<std::uint64_t>(i + 1), 12, {40, 78, 78});
    media::Frame frame = media::copy_frame(drawing::frame(160, 120, texture.shifted(0, 0)));
    frame.full_range = false;
    frame.color = {1, 1, 1};
    frame.pts = i;
    frame.duration = 1;
    frames.push_back(frame);
    encoder.add(frame);
  }
  const std::string video = encoder.finish();
  /// As a Windows bitmap has it: from below, blue first.
  const auto url_of = [](const media::Frame& frame) {
    media::RgbImage image;
    media::Scaler().to_rgb(frame, {.width = 160, .height = 120}, image);
    std::string file(54, '\0');
    const auto put = [&](std::size_t at, std::uint32_t value) {
      for (std::size_t i = 0; i < 4; ++i)
        file[at + i] = static_cast<char>(value >> (8 * i) & 255);
    };
    file[0] = 'B', file[1] = 'M', file[26] = 1, file[28] = 24;
    put(2, 54 + 3 * 160 * 120), put(10, 54), put(14, 40), put(18, 160), put(22, 120);
    for (std::size_t y = 120; y-- > 0;)
      for (std::size_t x = 0; x < 160; ++x)
        for (std::size_t c = 3; c-- > 0;)
          file += static_cast<char>(image.pixels[3 * (160 * y + x) + c]);
    return report::data_url("image/bmp", file);
  };
  for (const auto& [count, middle] : {std::pair{1, 0}, {2, 1}, {3, 1}, {4, 2}, {9, 3}}) {
    CAPTURE(count);
    ReportFolder folder;
    Json facts = clip_facts(0, "h1");
    facts.update({{"frames", count}, {"start_type", "cut"}, {"end_type", "fade"}});
    folder.report.add(folder.finished({facts}, {{"kind", "images"}}, video));
    const std::string page = folder.page();
    CHECK(count_of(page, url_of(frames[static_cast<std::size_t>(middle)])) == 1);
    CHECK(count_of(page, ">0.00 s to 1.00 s, cut to fade</figcaption>") == 1);
    CHECK(count_of(page, "<h2>Measures</h2>") == 0);  // of one clip there is no spread
    CHECK(count_of(page, "1 clip of 1 source.") == 1);
  }
  ReportFolder folder;
  const HeardLog told(LogLevel::info);
  folder.report.add(folder.finished({clip_facts(0, "h")}, {{"kind", "images"}}, "no picture"));
  const std::string page = folder.page();
  CHECK(count_of(page, "<h2>Clips</h2>") == 0);
  CHECK(count_of(page, "1 clip of 1 source.") == 1);
  REQUIRE(HeardLog::lines().size() == 1);
  CHECK(HeardLog::lines()[0].starts_with("no picture of clip1-0: "));
}

TEST_CASE("a page shows so many clips of a video, and in all, and so many lines") {
  ReportFolder folder;
  const std::vector<Json> many(25, clip_facts(0, "h1"));
  const Json line = {{"kind", "clips"},
                     {"source", "a"},
                     {"seconds", 1.0},
                     {"cuts", Json::array()},
                     {"left_out", Json::array()}};
  // A picture of eight by two pixels, as a small one is quick.
  std::string bitmap(54 + 24 * 2, '\x40');
  std::fill_n(bitmap.begin(), 54, '\0');
  bitmap[0] = 'B', bitmap[1] = 'M', bitmap[2] = 54 + 48, bitmap[10] = 54, bitmap[14] = 40;
  bitmap[18] = 8, bitmap[22] = 2, bitmap[26] = 1, bitmap[28] = 24;
  folder.report.add(folder.finished(many, line, bitmap));
  CHECK(count_of(folder.page(), "<img ") == 24);
  for (int i = 0; i < 5; ++i)
    folder.report.add(folder.finished(many, line, bitmap));
  for (int i = 6; i < 103; ++i)
    folder.report.add(dump_json({{"source", "a"},
                                 {"seconds", 1.0},
                                 {"cuts", Json::array()},
                                 {"left_out", Json::array()},
                                 {"shards", Json::array()},
                                 {"clips", 0}}));
  const std::string page = folder.page();
  CHECK(count_of(page, "<img ") == 120);
  CHECK(count_of(page, bar("")) == 100);
  CHECK(count_of(page, "150 clips of 103 sources.") == 1);
}

TEST_CASE("without a path there is no page") {
  const TemporaryFolder folder;
  ClipReport report("", folder.path);
  report.add("no JSON");
  report.write("");
  CHECK(std::filesystem::is_empty(folder.path));
}
