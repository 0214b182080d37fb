// Captions of whole shards from what is there: which source each has, and what is told of it.
// SPDX-License-Identifier: Apache-2.0
#include "columns/caption/caption.h"

#include <catch2/catch.hpp>

#include "columns/caption/caption_queue.h"
#include "columns/caption/caption_report.h"
#include "columns/embed/glimpse.h"
#include "curate/measures/describe.h"
#include "support/heard_log.h"
#include "support/temporary_folder.h"
#include "unit/columns/column_cases.h"

using namespace vfm;
using namespace vfm::columns;

namespace {

CaptionOptions captions_from(const std::vector<std::string>& from, const std::string& input) {
  CaptionOptions options;
  options.inputs = {input};
  options.from = parse_caption_sources(from, false);
  return options;
}

shard::Sample clip_sample(const std::string& key, const std::string& mp4, const std::string& json,
                          const std::string& txt) {
  return {key, {{"mp4", mp4}, {"json", json}, {"txt", txt}}};
}

std::string measured_caption(const std::string& mp4, Json facts) {
  const Seen seen = see_member({"mp4", mp4}, "it", facts, nullptr);
  facts.update(seen.facts);
  return curate::describe(facts, seen.glimpse);
}

}  // namespace

TEST_CASE("each sample has the caption of the first source that has words for it") {
  const TemporaryFolder folder;
  const std::string red = make_video(8, kRed), video = folder / "video.mp4";
  const Json known = {{"media", "video"}, {"seconds", 2}, {"fps", 4},
                      {"frames", 8},      {"width", 32},  {"height", 24}};
  const Json of_video = {{"source", video}, {"begin", 1}, {"end", 2}};
  write_tar(folder / "a.tar",
            {clip_sample("member", red, dump_json(known), " mine,\n all \n"),
             clip_sample("field", red, R"({"caption":"of the field","width":64,"height":48})", ""),
             clip_sample("beside", red, dump_json(of_video), " "),
             clip_sample("measured", red, dump_json(known), ""), clip_sample("bare", red, "{}", ""),
             clip_sample("list", red, "[1]", ""), clip_sample("broken", "no video", "{", "")});
  folder.write("video.srt", "1\n00:00:03,000 --> 00:00:04,000\nbeside it\n");
  folder.write(
      "in.jsonl",
      dump_json({{"kind", "shard"}, {"path", folder / "a.tar"}, {"source", video}}) + "\n");
  CaptionOptions options = captions_from({"existing", "builtin:measure"}, folder / "in.jsonl");
  Run run;
  CHECK(caption(options, run.slots, run, run.manifest) == 3);
  CHECK(run.unit == "samples");
  CHECK(run.total == 7);
  CHECK(run.done == 7);
  // The subtitles count from 0, the source from 2 s: their span is another one.
  const std::string tar = folder / "a.caption.tar";
  const Json measured = {{"width", 64}, {"height", 48}, {"seconds", 1}, {"fps", 8}, {"frames", 8}};
  const auto by_measure = [&](const Json& facts, const Json& more) {
    Json json = {{"caption", measured_caption(red, facts)}, {"caption_source", "builtin:measure"}};
    json.update(more);
    return json;
  };
  std::map<std::string, Json> jsons = jsons_of(tar);
  CHECK(jsons["member"] == Json{{"caption", "mine, all"}, {"caption_source", "existing:member"}});
  CHECK(jsons["field"] == Json{{"caption", "of the field"}, {"caption_source", "existing:field"}});
  CHECK(jsons["beside"] == by_measure(of_video, measured));
  CHECK(jsons["measured"] == by_measure(known, Json::object()));
  CHECK(jsons["bare"] == by_measure(Json::object(), measured));
  CHECK(jsons["list"] == by_measure(Json::object(), measured));
  CHECK(jsons["broken"] == Json{{"caption", ""}, {"caption_source", "none"}});
  std::vector<std::string> keys;
  for (const shard::Sample& sample : samples_of(tar)) {
    keys.push_back(sample.key);
    CHECK(*sample.find("txt") == jsons[sample.key]["caption"]);
  }
  CHECK(keys == std::vector<std::string>{"member", "field", "beside", "measured", "bare", "list",
                                         "broken"});
  const std::vector<Json> errors = errors_in(folder / "caption-errors.jsonl");
  REQUIRE(errors.size() == 3);
  CHECK(errors[0]["tool"] == "vfm-caption");
  CHECK(errors[0]["input"] == "list of '" + folder.path + "/a.tar'");
  CHECK(errors[0]["error"] == "its json member is not an object");
  CHECK(errors[0]["code"] == "format");
  CHECK(errors[1]["code"] == "format");
  CHECK_THAT(errors[1]["error"], Catch::Contains("broken.json"));
  CHECK_THAT(errors[2]["error"], Catch::Contains("broken.mp4"));
  CHECK(caption_origins(tar, {}) ==
        std::map<std::string, std::int64_t>{{"existing:member", 1}, {"existing:field", 1}});

  const Json notes = parse_json(io::read_file(folder / "a.caption.json"), "it");
  CHECK(notes["made_from"]["settings"] ==
        Json{{"version", 1},
             {"from", {"existing", "builtin:measure"}},
             {"max_characters", 0},
             {"empty", "skip"},
             {"beside", {{"folders", Json::array()}, {"source", "video.mp4"}}}});
  // Seen from the container's start.
  Json late = of_video;
  late["begin"] = 5, late["end"] = 6, late["source_begin"] = 2;
  write_tar(folder / "a.tar", {clip_sample("beside", red, dump_json(late), "")});
  Run again;
  CHECK(caption(options, again.slots, again, again.manifest) == 0);
  CHECK(jsons_of(tar)["beside"] ==
        Json{{"caption", "beside it"}, {"caption_source", "existing:srt"}});
  CHECK_FALSE(io::file_exists(folder / "caption-errors.jsonl"));
}

TEST_CASE("a field of the sample comes before the record's, and has the words of the span") {
  const TemporaryFolder folder;
  const auto sample = [](const std::string& key, const Json& json) {
    return shard::Sample{key, {{"json", dump_json(json)}}};
  };
  write_tar(folder / "a.tar",
            {sample("own", {{"meta", {{"note", "its own"}}}, {"begin", 0}, {"end", 2}}),
             sample("first", {{"begin", 0}, {"end", 2}}),
             sample("later", {{"begin", 2}, {"end", 4}}), sample("all", Json::object()),
             sample("none", {{"begin", 8}, {"end", 9}}), sample("wrong", {{"meta.note", 7}})});
  const Json note = Json::array({{{"start", 0}, {"end", 2}, {"caption", "begin"}},
                                 {{"start", 2}, {"end", 4}, {"caption", "end of it all"}}});
  folder.write(
      "in.jsonl",
      dump_json({{"kind", "shard"}, {"path", folder / "a.tar"}, {"meta", {{"note", note}}}}) +
          "\n");
  CaptionOptions options = captions_from({"field:meta.note"}, folder / "in.jsonl");
  options.max_characters = 8;
  const auto run_it = [&] {
    Run run;
    const long errors = caption(options, run.slots, run, run.manifest);
    CHECK(run.records().size() == 1);
    return errors;
  };
  CHECK(run_it() == 2);
  std::map<std::string, Json> jsons = jsons_of(folder / "a.caption.tar");
  const auto said = [&](const char* key) { return jsons[key]["caption"].get<std::string>(); };
  CHECK(said("own") == "its own");
  CHECK(said("first") == "begin");
  CHECK(said("later") == "end of");
  CHECK(said("all") == "begin");
  CHECK(said("none").empty());
  CHECK(said("wrong").empty());
  CHECK(jsons["own"]["caption_source"] == "field:meta.note");
  CHECK(jsons["none"]["caption_source"] == "none");
  std::vector<Json> errors = errors_in(folder / "caption-errors.jsonl");
  REQUIRE(errors.size() == 2);
  CHECK(errors[0]["error"] == "no source has a caption for it");
  CHECK(errors[0]["code"] == "missing");
  CHECK_THAT(errors[1]["error"], Catch::Contains("'meta.note'"));
  const Json notes = parse_json(io::read_file(folder / "a.caption.json"), "it");
  CHECK(notes["made_from"]["settings"]["fields"] == Json{{"meta.note", note}});
  // What may be empty is no error, but a field that is no caption is.
  options.keep_empty = true;
  options.max_characters = 0;
  CHECK(run_it() == 1);
  jsons = jsons_of(folder / "a.caption.tar");
  CHECK(said("later") == "end of it all");
  CHECK(jsons["none"] == Json{{"caption", ""}, {"caption_source", "none"}});
}

TEST_CASE("an empty caption is passed over, or kept where that is asked for") {
  const TemporaryFolder folder;
  write_tar(folder / "a.tar", {{"empty", {{"json", R"({"caption":"field"})"}, {"txt", " \n"}}},
                               {"full", {{"json", "{}"}, {"txt", "a fox"}}}});
  CaptionOptions options = captions_from({"existing"}, folder / "a.tar");
  options.directory = folder / "out";
  const std::string tar = folder / "out/a.caption.tar";
  for (const bool keep : {false, true}) {
    options.keep_empty = keep;
    Run run;
    const HeardLog lines;
    CHECK(caption(options, run.slots, run, run.manifest) == 0);
    const Json json = jsons_of(tar)["empty"];
    CHECK(json["caption"] == (keep ? "" : "field"));
    CHECK(json["caption_source"] == (keep ? "existing:member" : "existing:field"));
    CHECK(lines.text() ==
          (keep ? "'" + tar +
                      "' is replaced: 1 of its samples were made from existing:field, "
                      "and 0 are now\n"
                : std::string()));
    CHECK(run.records()[0]["columns"]["caption"] == tar);
  }
  CHECK(caption_origins(tar, {}) == std::map<std::string, std::int64_t>{{"existing:member", 2}});
}

TEST_CASE("clips of measured captions that have no media are told, and are no loss") {
  const TemporaryFolder folder;
  write_tar(folder / "a.tar", {{"k", {{"json", R"({"seconds":2})"}}}});
  CaptionOptions options = captions_from({"builtin:measure"}, folder / "a.tar");
  Run run;
  CHECK(caption(options, run.slots, run, run.manifest) == 1);
  CHECK(errors_in(folder / "caption-errors.jsonl")[0]["code"] == "missing");
  CHECK(jsons_of(folder / "a.caption.tar")["k"] ==
        Json{{"caption", ""}, {"caption_source", "none"}});
  CHECK(caption_origins(folder / "a.caption.tar", {}).empty());
}

TEST_CASE(
    "a page of captions shows the first clips of each shard, and how many have which source") {
  const TemporaryFolder folder;
  std::vector<shard::Sample> samples;
  for (int i = 0; i < 14; ++i)
    samples.push_back(clip_sample("k" + std::to_string(i), make_video(4, kGreen), "{}",
                                  i == 0 ? std::string(400, 'x') : "two words"));
  samples[2].members[0].data = "no video";
  write_tar(folder / "a.tar", samples);
  write_tar(folder / "b.tar", {clip_sample("b", make_video(60, kRed), "{}", "a b c")});
  folder.write("in.jsonl", dump_json({{"kind", "shard"}, {"path", folder / "a.tar"}}) + "\n" +
                               dump_json({{"kind", "shard"}, {"path", folder / "b.tar"}}) + "\n");
  CaptionOptions options = captions_from({"existing"}, folder / "in.jsonl");
  options.report = folder / "page.html";
  Run run;
  CHECK(caption(options, run.slots, run, run.manifest) == 0);
  const std::string page = io::read_file(folder / "page.html");
  const auto count = [&](const std::string& word) {
    std::size_t n = 0;
    for (std::size_t at = page.find(word); at != page.npos; at = page.find(word, at + 1))
      ++n;
    return n;
  };
  CHECK(count("data:video/mp4") == 12);  // 11 of the first, without the one that is none
  CHECK(count(">two words</figcaption>") == 10);
  CHECK(count(">a b c</figcaption>") == 1);
  CHECK(count(">" + std::string(300, 'x') + "</figcaption>") == 1);
  CHECK_THAT(page, Catch::Contains("15 samples."));
  CHECK_THAT(page, Catch::Contains("existing:member") && Catch::Contains(">15<"));
  CHECK_THAT(page, Catch::Contains("words in a caption") && Catch::Contains(folder.path));
  CHECK_THAT(page, !Catch::Contains("texts of models were cut"));
}

TEST_CASE("a page of captions says how many texts were cut, and what is not complete") {
  const TemporaryFolder folder;
  write_tar(folder / "a.tar", {{"k", {{"json", "{}"}, {"txt", "a fox"}}},
                               {"l", {{"json", "{}"}, {"txt", "an owl"}}}});
  write_tar(folder / "c.tar", {{"k", {{"json", R"({"caption_source":"x:y"})"}, {"txt", "a fox"}}},
                               {"l", {{"json", "{}"}, {"txt", ""}}}});
  io::Record record;
  record.json = Json{{"path", folder / "a.tar"},
                     {"caption_cut", 3},
                     {"columns", {{"clip", folder / "a.tar"}, {"caption", folder / "c.tar"}}}};
  const auto page_of = [&](int times, const std::string& incomplete) {
    CaptionReport report(folder / "page.html");
    for (int i = 0; i < times; ++i)
      report.add(record);
    report.write(incomplete);
    return io::read_file(folder / "page.html");
  };
  CHECK_THAT(page_of(2, "the pipe broke"),
             Catch::Contains("4 samples.") && Catch::Contains("the pipe broke") &&
                 Catch::Contains("6 texts of models were cut: they reached their most tokens.") &&
                 Catch::Contains("x:y</td><td dir=\"auto\">2</td>") && Catch::Contains("unknown"));
  CHECK_THAT(page_of(0, ""), Catch::Contains("0 samples.") && !Catch::Contains("were cut") &&
                                 !Catch::Contains("words in a caption"));
  CaptionReport none("");
  none.add({});
  none.write("");
}
