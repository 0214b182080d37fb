// The page of vfm-shard report and --report: what it says of the samples, the steps and the rules.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "dataset_run.h"
#include "support/parts.h"

using namespace vfm;
using namespace vfm::dataset;

namespace {

/// Twelve samples: a score, facts, one number that is the same, one that few have, text in a score.
void add_scored(DatasetRun& run) {
  std::vector<shard::Sample> samples;
  for (int i = 0; i < 12; ++i) {
    Json meta = {{"width", 320}, {"height", 180},   {"seconds", 1 + i % 4},
                 {"same", 7},    {"q", i * 5 % 12}, {"source_hash", "s" + std::to_string(i)}};
    if (i < 3) meta["seldom_<b>"] = i / 4.0;
    if (i % 2 == 0 || i == 9) meta["kind"] = i == 9 ? Json(30.5) : Json("x");
    if (i == 5) meta["q"] = "text";
    meta["video_encoder"] = {{"name", "own"}, {"hash", std::to_string(i % 2)}};
    const float angle = 0.1f * static_cast<float>(i * i);
    samples.push_back(video(fmt::format("k{:02}", i), dump_json(meta), {},
                            {{"txt", "caption <" + std::to_string(i) + ">"},
                             {"video.npy", vector_of({std::cos(angle), std::sin(angle)})}}));
  }
  run.add("in", samples);
  run.options.report = run.folder / "page.html";
}

}  // namespace

TEST_CASE("the page of a dataset shows its samples, numbers, steps and rules") {
  DatasetRun run;
  add_scored(run);
  run.add("more", {video("copy", R"({"width":16,"height":9})", "video k03")});
  run.folder.write("without", "k11\ns7\nnobody<\n");
  run.options.without = run.folder / "without";
  run.options.where =
      "(q > 0 OR q IS NULL) AND (video_encoder IS NULL OR video_encoder ->> 'hash' = '1')";
  run.options.balance.rules = {{"kind", 1}, {"video.npy", 1}};
  run.options.duplicate_threshold.reset();
  run.options.balance.clusters = 1;
  run.options.split = {{"train", 0.7}, {"val", 0.3}};
  CHECK(run.run() == 0);
  CHECK(run.page_text() ==
        "\n"
        "Dataset\n"
        "3 samples in 2 shards, 14.0 KiB, 8.0s of video. Read: 13; filtered out: 6; "
        "duplicates dropped: 1; left out by --without: 2; left out by --balance: 1.\n"
        "Splits\n"
        "Splits | samples | shards | bytes | duration\n"
        "train | 2 | 1 | 9.0 KiB | 6.0s\n"
        "val | 1 | 1 | 5.0 KiB | 2.0s\n"
        "Bins\n"
        "Bins | samples | shards | bytes | duration\n"
        "under256p_16x9_2s | 3 | 2 | 14.0 KiB | 8.0s\n"
        "Samples by chance\n"
        "k09: \n"
        "k09\n"
        "320 × 180, 2 s\n"
        "caption &lt;9&gt;\n"
        "q | 9\n"
        "nearest by video.npy, with the cosine\n"
        "k03: 0.608\n"
        "k01: -0.146\n"
        "k01: \n"
        "k01\n"
        "320 × 180, 2 s\n"
        "caption &lt;1&gt;\n"
        "q | 5\n"
        "nearest by video.npy, with the cosine\n"
        "k03: 0.697\n"
        "k09: -0.146\n"
        "k03: \n"
        "k03\n"
        "320 × 180, 4 s\n"
        "caption &lt;3&gt;\n"
        "q | 3\n"
        "nearest by video.npy, with the cosine\n"
        "k01: 0.697\n"
        "k09: 0.608\n"
        "Least and most\n"
        "q, the least\n"
        "k03: 3\n"
        "k01: 5\n"
        "q, the most\n"
        "k09: 9\n"
        "Numbers\n"
        "q: 3 to 9\n"
        "seconds: 2 to 4\n"
        "Always the same: bytes 9, height 180, kind 30.5 (1 sample), same 7, "
        "seldom_&lt;b&gt; 0.25 (1 sample), width 320.\n"
        "All samples\n"
        "Duration of the videos\n"
        "Shorter side\n"
        "Aspect ratio\n"
        "Size of the video or image\n"
        "Balance\n"
        "By kind, with strength 1: 2 values, 1 of 4 samples too many.\n"
        "value | samples | fair share | stay\n"
        "(none) | 3 | 2 | 2\n"
        "30.5 | 1 | 1 | 1\n"
        "By video.npy, with strength 1: 1 values, 0 of 4 samples too many.\n"
        "value | samples | fair share | stay | next to its centre\n"
        "cluster 0 | 4 | 4 | 3 | k03\n"
        "Taken out\n"
        "2 samples, by 2 of 3 lines of --without.\n"
        "source or key | samples\n"
        "k11 | 1\n"
        "s7 | 1\n"
        "nobody&lt; | 0\n"
        "Duplicates\n"
        "dropped | kept | kind | cosine | why the kept one\n"
        "copy | k03 | exact | 1.0000 | more pixels: 320x180 against 16x9\n");
}

TEST_CASE("the page alone has what a dataset would, and leaves nothing else behind") {
  DatasetRun run;
  add_scored(run);
  run.options.output.clear();
  run.options.report = run.folder / "pages/page.html";
  run.options.report_scores = {"seldom_<b>", "width"};
  run.options.duplicate_threshold = 0.999;
  CHECK(run.run() == 0);
  CHECK(run.records.empty());
  CHECK(run.log.find("made the folder 'pages' for the report") != std::string::npos);
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(run.folder / "pages"))
    left.push_back(entry.path().filename());
  CHECK(left == std::vector<std::string>{"page.html"});
  std::filesystem::rename(run.folder / "pages/page.html", run.folder / "page.html");
  CHECK(run.page_text() ==
        "\n"
        "Dataset\n"
        "12 samples, 30.0s of video; no dataset was written. Read: 12; filtered out: 0; "
        "duplicates: 0.\n"
        "Splits\n"
        "Splits | samples\n"
        "train | 12\n"
        "Bins\n"
        "Bins | samples\n"
        "under256p_16x9_2s | 9\n"
        "under256p_16x9_under2s | 3\n"
        "Samples by chance\n"
        "k08: \n"
        "k08\n"
        "320 × 180, 1 s\n"
        "caption &lt;8&gt;\n"
        "width | 320\n"
        "nearest by video.npy, with the cosine\n"
        "k00: 0.993\n"
        "k02: 0.960\n"
        "k04: 0.088\n"
        "k10: -0.897\n"
        "k07: \n"
        "k07\n"
        "320 × 180, 4 s\n"
        "caption &lt;7&gt;\n"
        "width | 320\n"
        "nearest by video.npy, with the cosine\n"
        "k11: 0.608\n"
        "k01: 0.088\n"
        "k03: -0.653\n"
        "k05: -0.738\n"
        "k06: \n"
        "k06\n"
        "320 × 180, 3 s\n"
        "caption &lt;6&gt;\n"
        "width | 320\n"
        "nearest by video.npy, with the cosine\n"
        "k10: 0.993\n"
        "k04: -0.416\n"
        "k00: -0.897\n"
        "k08: -0.942\n"
        "k09: \n"
        "k09\n"
        "320 × 180, 2 s\n"
        "caption &lt;9&gt;\n"
        "width | 320\n"
        "nearest by video.npy, with the cosine\n"
        "k05: 0.776\n"
        "k03: 0.608\n"
        "k01: -0.146\n"
        "k11: -0.654\n"
        "k05: \n"
        "k05\n"
        "320 × 180, 2 s\n"
        "caption &lt;5&gt;\n"
        "width | 320\n"
        "nearest by video.npy, with the cosine\n"
        "k09: 0.776\n"
        "k03: -0.029\n"
        "k07: -0.738\n"
        "k01: -0.738\n"
        "k04: \n"
        "k04\n"
        "320 × 180, 1 s\n"
        "caption &lt;4&gt;\n"
        "width | 320\n"
        "nearest by video.npy, with the cosine\n"
        "k02: 0.362\n"
        "k08: 0.088\n"
        "k00: -0.029\n"
        "k06: -0.416\n"
        "k01: \n"
        "k01\n"
        "320 × 180, 2 s\n"
        "caption &lt;1&gt;\n"
        "seldom_&lt;b&gt; | 0.25\n"
        "width | 320\n"
        "nearest by video.npy, with the cosine\n"
        "k11: 0.844\n"
        "k03: 0.697\n"
        "k07: 0.088\n"
        "k09: -0.146\n"
        "k11: \n"
        "k11\n"
        "320 × 180, 4 s\n"
        "caption &lt;11&gt;\n"
        "width | 320\n"
        "nearest by video.npy, with the cosine\n"
        "k01: 0.844\n"
        "k07: 0.608\n"
        "k03: 0.203\n"
        "k09: -0.654\n"
        "k02: \n"
        "k02\n"
        "320 × 180, 3 s\n"
        "caption &lt;2&gt;\n"
        "seldom_&lt;b&gt; | 0.5\n"
        "width | 320\n"
        "nearest by video.npy, with the cosine\n"
        "k08: 0.960\n"
        "k00: 0.921\n"
        "k04: 0.362\n"
        "k10: -0.984\n"
        "k03: \n"
        "k03\n"
        "320 × 180, 4 s\n"
        "caption &lt;3&gt;\n"
        "width | 320\n"
        "nearest by video.npy, with the cosine\n"
        "k01: 0.697\n"
        "k09: 0.608\n"
        "k11: 0.203\n"
        "k05: -0.029\n"
        "k10: \n"
        "k10\n"
        "320 × 180, 3 s\n"
        "caption &lt;10&gt;\n"
        "width | 320\n"
        "nearest by video.npy, with the cosine\n"
        "k06: 0.993\n"
        "k04: -0.519\n"
        "k00: -0.839\n"
        "k08: -0.897\n"
        "k00: \n"
        "k00\n"
        "320 × 180, 1 s\n"
        "caption &lt;0&gt;\n"
        "seldom_&lt;b&gt; | 0\n"
        "width | 320\n"
        "nearest by video.npy, with the cosine\n"
        "k08: 0.993\n"
        "k02: 0.921\n"
        "k04: -0.029\n"
        "k10: -0.839\n"
        "Least and most\n"
        "seldom_&lt;b&gt;, the least\n"
        "k00: 0\n"
        "k01: 0.25\n"
        "seldom_&lt;b&gt;, the most\n"
        "k02: 0.5\n"
        "width, the least\n"
        "k08: 320\n"
        "k07: 320\n"
        "k06: 320\n"
        "k09: 320\n"
        "k05: 320\n"
        "width, the most\n"
        "k08: 320\n"
        "k07: 320\n"
        "k06: 320\n"
        "k09: 320\n"
        "k05: 320\n"
        "Numbers\n"
        "seldom_&lt;b&gt;: 0 to 0.5 (3 samples)\n"
        "q: 0 to 11 (11 samples)\n"
        "seconds: 1 to 4\n"
        "Always the same: bytes 9, height 180, kind 30.5 (1 sample), same 7, width 320.\n"
        "All samples\n"
        "Duration of the videos\n"
        "Shorter side\n"
        "Aspect ratio\n"
        "Size of the video or image\n");
}

TEST_CASE("many duplicates and lines are told by their number, and shown in part") {
  DatasetRun run;
  std::vector<shard::Sample> samples;
  std::string without;
  for (int i = 0; i < 202; ++i) {
    samples.push_back(video(fmt::format("k{:03}", i), "{}", "same"));
    without += fmt::format("line {}\n", i);
  }
  run.add("in", samples);
  samples.resize(2);
  run.folder.write("without", without + "k005\n");
  run.options.without = run.folder / "without";
  run.options.report = run.folder / "page.html";
  const auto has = [&](const std::string& line) {
    return run.page_text().find("\n" + line + "\n") != std::string::npos;
  };
  CHECK(run.run() == 0);
  CHECK_FALSE(has("The first 200 of 200; all are in duplicates.jsonl."));
  CHECK(has("k201 | k000 | exact | 1.0000 | equal in size and bytes; the first by key"));
  CHECK(
      has("1 samples, by 1 of 203 lines of --without. The first 200 lines; all samples are in "
          "left_out.jsonl."));
  CHECK(has("line 199 | 0"));
  CHECK_FALSE(has("line 200 | 0"));
  run.folder.write("without", without.substr(0, without.find("line 199\n")) + "k005\n");
  run.remove_output();
  CHECK(run.run() == 0);
  CHECK(has("1 samples, by 1 of 200 lines of --without."));
  CHECK(has("k005 | 1"));
  run.options.without.clear();
  run.remove_output();
  CHECK(run.run() == 0);
  CHECK(has("The first 200 of 201; all are in duplicates.jsonl."));
  CHECK(has("k200 | k000 | exact | 1.0000 | equal in size and bytes; the first by key"));
  CHECK_FALSE(has("k201 | k000 | exact | 1.0000 | equal in size and bytes; the first by key"));
  CHECK_FALSE(has("Taken out"));
}

TEST_CASE("long captions are cut at whole characters; more scores than fit are counted") {
  DatasetRun run;
  std::string umlauts = "a";
  for (int i = 0; i < 800; ++i)
    umlauts += "ä";
  const std::string longest(80, 'k');
  Json meta = Json::object();
  for (int i = 0; i < 33; ++i)
    meta[fmt::format("score{:02}", i)] = i;
  const auto captioned = [&](const std::string& key, const std::string& caption, int more) {
    Json own = meta;
    own["score00"] = more;
    if (more < 3) own["width"] = 640, own["height"] = 90 * more;
    if (more > 1) own["seconds"] = more + 0.25;
    for (int i = 1; i < 33; ++i)
      own[fmt::format("score{:02}", i)] = more + i;
    return video(key, dump_json(own), {}, {{"txt", caption}});
  };
  run.add("in", {captioned("short", std::string(600, 'x'), 1), captioned(longest, umlauts, 2),
                 captioned("third", std::string(601, 'y'), 3)});
  run.options.report = run.folder / "page.html";
  CHECK(run.run() == 0);
  const std::string page = "\n" + run.page_text();
  const auto has = [&](const std::string& line) {
    return page.find("\n" + line + "\n") != std::string::npos;
  };
  CHECK(has(std::string(600, 'x')));
  CHECK(has(umlauts.substr(0, 599) + "…"));
  CHECK(has(std::string(600, 'y') + "…"));
  CHECK(has(longest));
  CHECK(has("640 × 90"));
  CHECK(has("640 × 180, 2.25 s"));
  CHECK(has("3.25 s"));
  CHECK(has("1 more scores are not shown: 32 are at most. vfm-shard report --scores chooses."));
  CHECK(has("score31, the most"));
  CHECK_FALSE(has("score32, the most"));
}

TEST_CASE(
    "near duplicates by clusters, and of many encoders, are told in the page and dataset.json") {
  DatasetRun run;
  std::vector<shard::Sample> samples;
  const auto add = [&](int hash, float x, float y) {
    const int number = static_cast<int>(samples.size());
    samples.push_back(video(fmt::format("k{:03}", number),
                            fmt::format(R"({{"video_encoder":{{"name":"e","hash":"{}"}}}})", hash),
                            {}, {{"video.npy", vector_of({x, y})}}));
  };
  for (int i = 0; i < 65; ++i)
    add(i, 1, 0);
  add(7, 1, 0.01f), add(7, 0, 1), add(7, 0.01f, 1);
  run.add("in", samples);
  run.options.report = run.folder / "page.html";
  run.options.duplicate_method = DuplicateMethod::clusters;
  run.options.near_bytes = 1 << 20;
  CHECK(run.run() == 0);
  CHECK(run.json("out/dataset.json")["duplicates"]["near"] == 2);
  const Json near = run.json("out/dataset.json")["near_duplicates"];
  CHECK(near["method"] == "clusters");
  REQUIRE(near["sets"].size() == 64);
  std::string seven;
  for (const Json& set : near["sets"])
    if (set["encoder"].is_object() && set["encoder"]["hash"] == "7") seven = dump_json(set);
  CHECK(seven ==
        R"({"media":"video","encoder":{"name":"e","hash":"7"},"samples":4,)"
        R"("clusters":{"count":4,"margin":1.0,"most":64,"numbers":128,"looked_at":8,"cut":0,)"
        R"("decided":2}})");
  std::string method = run.lines("out/duplicates.jsonl")[0]["method"];
  CHECK(method == "clusters=4 margin=1 most=64 numbers=128");
  const std::string page = run.page_text();
  CHECK(page.find("\nAnd of 1 more encoders and kinds.\n") != std::string::npos);
  const std::size_t at = page.find("Near duplicates of 4 videos");
  CHECK(page.substr(at, page.find('\n', at) - at) ==
        "Near duplicates of 4 videos: among 4 clusters (clusters=4 margin=1 most=64 "
        "numbers=128), so some may be missed; each sample was compared with 2.0 clusters on "
        "average.");
  CHECK(page.find("\nCosine of near duplicates to what was kept\n") != std::string::npos);
  CHECK(run.log ==
        "the 'video.npy' of the samples are of 65 encoders; only those of one are "
        "compared with each other, so near duplicates across them stay\n");
}

TEST_CASE("of many samples the page shows some in full, with links to these alone") {
  DatasetRun run;
  std::vector<shard::Sample> samples;
  for (int i = 0; i < 60; ++i) {
    const float angle = 0.01f * static_cast<float>(i);
    samples.push_back(video(fmt::format("k{:02}", i), fmt::format(R"({{"q":{}}})", i), {},
                            {{"video.npy", vector_of({std::cos(angle), std::sin(angle)})}}));
  }
  run.add("in", samples);
  run.options.report = run.folder / "page.html";
  run.options.duplicate_threshold.reset();
  CHECK(run.run() == 0);
  const std::string page = run.text("page.html");
  const auto count = [&](const std::string& part) { return count_of(page, part); };
  CHECK(count("<h2>Samples by chance</h2>") == 1);
  CHECK(count("<h2>Samples with the least and the most of something</h2>") == 1);
  const int cards = count("<article"), links = count("<a href=\"#c"),
            plain = count("<div><span class=\"pic");
  CHECK(cards == 31);                      // three at the ends are among those by chance
  CHECK(links + plain == 4 * cards + 10);  // near each, and at both ends
  CHECK(plain == 35);
  const std::size_t others = page.find("of something</h2>");
  int by_chance = 0;
  for (std::size_t at = 0; (at = page.find("<article", at)) < others; ++at)
    ++by_chance;
  CHECK(by_chance == 24);
}
