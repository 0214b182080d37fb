// What becomes of clips in an output folder: their samples, those of earlier runs, and what is left
// over.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "clip/cut/images.h"
#include "clip/store/clip_output.h"
#include "clip/store/earlier_clips.h"
#include "clip/store/joined.h"
#include "clip/store/leftovers.h"
#include "io/atomic_file.h"
#include "support/heard_log.h"
#include "unit/clip/clip_run.h"

using namespace vfm;
using namespace vfm::clip;
using clip_run::Lines;

namespace {

/// Notes what it is told.
struct NotingSink : ClipSink {
  KeptClips kept;
  std::vector<shard::Sample> samples;
  int kept_added = 0;
  KeptClips begin(bool keep) override { return keep ? kept : KeptClips(); }
  void add_kept() override { ++kept_added; }
  void add(const shard::Sample& sample) override { samples.push_back(sample); }
  Json finish(Json summary) override { return summary; }
};

media::StreamInfo stream_info() {
  media::StreamInfo info;
  info.stream = 2;
  info.time_base = {1, 10};
  return info;
}

}  // namespace

TEST_CASE("a clip's sample has its facts, and of its span what these lack") {
  const ClipSource source{"x/a.mp4", "h1"};
  ClipOptions options;
  NotingSink sink;
  ClipOutput output(source, options, sink);
  output.begin(true);
  CHECK_FALSE(output.has(0));
  CHECK_FALSE(output.has_more());
  GivenSpan given;
  given.fields = Json{{"who", "me"}, {"stream", 7}};
  output.add(stream_info(), {.span = {5, 12, {1, 10}},
                             .mp4 = "bytes",
                             .facts = Json{{"stream", 2}, {"source", "of the facts"}},
                             .given = &given});
  Json identity = {{"source", "h1"}, {"stream", 2},     {"begin", 5},
                   {"end", 12},      {"base", {1, 10}}, {"recipe", options.recipe.json()}};
  const std::string key = hash_hex(dump_json(identity));
  REQUIRE(sink.samples.size() == 1);
  CHECK(sink.samples[0].key == key);
  REQUIRE(sink.samples[0].members.size() == 2);
  CHECK(*sink.samples[0].find("mp4") == "bytes");
  CHECK(sink.samples[0].members[1].data == dump_json({{"key", key},
                                                      {"media", "video"},
                                                      {"source", "of the facts"},
                                                      {"source_hash", "h1"},
                                                      {"stream", 2},
                                                      {"who", "me"}}));
  CHECK(output.finish({{"frames", 3}, {"kind", "mine"}}) ==
        Json{{"kind", "mine"}, {"source", "x/a.mp4"}, {"source_hash", "h1"}, {"frames", 3}});
  // What is not as in the source is in the key.
  const auto key_of = [&](const media::StreamInfo& info, bool hdr) {
    output.add(info, {.span = {5, 12, {1, 10}}, .facts = Json::object(), .hdr = hdr});
    return sink.samples.back().key;
  };
  media::StreamInfo info = stream_info();
  CHECK(key_of(info, false) == key);
  options.recipe.keep_hdr = true;
  CHECK(key_of(info, false) == key);
  identity["recipe"] = options.recipe.json();
  CHECK(key_of(info, true) == hash_hex(dump_json(identity)));
  info.transfer = 16;
  CHECK(key_of(info, true) == hash_hex(dump_json(identity)));
  options.recipe.keep_hdr = false;
  identity["recipe"] = options.recipe.json();
  Json other = identity;
  other["tone_map"] = "bt2390";
  CHECK(key_of(info, false) == hash_hex(dump_json(other)));
  info.transfer = 14, info.primaries = 9;
  other = identity;
  other["gamut"] = "bt709";
  CHECK(key_of(info, false) == hash_hex(dump_json(other)));
  info = stream_info();
  info.interlaced = true;
  other = identity;
  other["deinterlace"] = "auto";
  CHECK(key_of(info, false) == hash_hex(dump_json(other)));
  options.readable_names = true;
  CHECK(key_of(info, false) ==
        "a-00h00m00s500-00h00m01s200-" + hash_hex(dump_json(other)).substr(0, 8));
}

TEST_CASE("clips that a killed run finished are not made again, where they are this run's") {
  const ClipSource source{"a.mp4", "h1"};
  const ClipOptions options;
  NotingSink sink;
  const auto clip = [](std::int64_t begin, bool known) {
    return Clip{.span = {begin, begin + 5, {1, 10}}, .facts = Json::object(), .known = known};
  };
  {
    ClipOutput output(source, options, sink);
    output.begin(false);
    output.add(stream_info(), clip(0, false));
    output.add(stream_info(), clip(5, false));
  }
  const KeptClips both = {{0, 5, sink.samples[0].key}, {5, 10, sink.samples[1].key}};
  const auto resume = [&](const KeptClips& kept) {
    sink = {};
    sink.kept = kept;
    ClipOutput output(source, options, sink);
    output.begin(true);
    std::string text;
    for (const std::int64_t begin : {0, 5, 10}) {
      const bool known = output.has(begin);
      text += known ? "known " : "new ";
      output.add(stream_info(), clip(begin, known));
      text += output.has_more() ? "more " : "";
      if (!output.fits()) text += "unfit ";
    }
    const Json end = output.finish(Json::object());
    return text + vfm::format("{} {} {}", sink.kept_added, sink.samples.size(),
                              end.is_null() ? "null" : "ended");
  };
  CHECK(resume(both) == "known more known new 2 1 ended");
  CHECK(resume({both[0]}) == "known new new 1 2 ended");
  CHECK(resume({}) == "new new new 0 3 ended");
  // Of another key, of another end, or of another begin than any that comes.
  CHECK(resume({both[0], {5, 10, "other"}}) == "known more known unfit new unfit 1 0 null");
  CHECK(resume({{0, 6, both[0].key}}) == "known unfit new unfit new unfit 0 0 null");
  CHECK(resume({{1, 6, both[0].key}}) == "new more unfit new more unfit new more unfit 0 0 null");
  CHECK(resume({both[0], both[1], {10, 15, "x"}, {15, 20, "y"}}) ==
        "known more known more known more unfit 2 0 null");
}

namespace {

/// A folder with clips of earlier runs.
struct EarlierFolder {
  TemporaryFolder folder;
  const std::string hash = "0123456789abcdef0123456789abcdef";
  const Json settings = {{"recipe", 1}, {"shard_bytes", 5000}};

  shard::Sample sample(int number) const {
    return {"clip" + std::to_string(number), {{"mp4", "mp4"}, {"json", "{}"}}};
  }
  Json write(const std::string& name, const Json& made_by, int first, int count, Json summary) {
    const auto store = make_clip_store(ClipFormat::shards, folder.path, name, made_by, 5000);
    store->find_or_hold(true);
    store->begin(false);
    for (int i = first; i < first + count; ++i)
      store->add(sample(i));
    return store->finish(std::move(summary));
  }
  /// The entry found, and the clips.
  std::pair<Json, std::string> find(const Json& made_by, const std::string& of,
                                    const std::string& spans = "") {
    EarlierClips earlier(folder.path, made_by);
    std::string keys;
    Json entry = earlier.find({"a.mp4", of}, spans,
                              [&](const shard::Sample& one) { keys += one.key + " "; });
    return {entry, keys};
  }
};
using Found = std::pair<Json, std::string>;

}  // namespace

TEST_CASE("a video's own clips of an earlier run are found by its contents, settings and spans") {
  EarlierFolder earlier;
  CHECK(earlier.find(earlier.settings, earlier.hash) == Found{nullptr, ""});
  earlier.write("0123456789abcdef", earlier.settings, 0, 5,
                {{"kind", "clips"},
                 {"source", "x.mp4"},
                 {"source_hash", earlier.hash},
                 {"frames", 9},
                 {"errors", Json::array()}});
  const Json entry = {{"source", "x.mp4"},
                      {"source_hash", earlier.hash},
                      {"frames", 9},
                      {"errors", Json::array()},
                      {"clips", 5}};
  // Of two shards.
  CHECK(earlier.find(earlier.settings, earlier.hash) ==
        Found{entry, "clip0 clip1 clip2 clip3 clip4 "});
  Json larger = earlier.settings;
  larger["shard_bytes"] = 9999;
  CHECK(earlier.find(larger, earlier.hash).first == entry);
  CHECK(earlier.find({{"recipe", 2}}, earlier.hash) == Found{nullptr, ""});
  CHECK(earlier.find(earlier.settings, "0123456789abcdeffedcba9876543210") == Found{nullptr, ""});
  CHECK(earlier.find(earlier.settings, earlier.hash, "s1") == Found{nullptr, ""});
  // A byte of the second shard is another one.
  const std::string tar = earlier.folder / "0123456789abcdef-00001.tar";
  std::string bytes = io::read_file(tar);
  ++bytes[600];
  io::write_file(tar, bytes);
  const HeardLog told(LogLevel::info);
  CHECK(earlier.find(earlier.settings, earlier.hash) == Found{nullptr, ""});
  CHECK(HeardLog::any("'" + tar + "' is not as it was written"));
}

TEST_CASE("clips of given spans are found for the same spans alone") {
  EarlierFolder earlier;
  Json settings = earlier.settings;
  settings["spans"] = "s1";
  earlier.write("0123456789abcdef", settings, 0, 1,
                {{"kind", "clips"}, {"source_hash", earlier.hash}, {"errors", Json::array()}});
  const Json entry = {
      {"source_hash", earlier.hash}, {"errors", Json::array()}, {"clips", 1}, {"spans", "s1"}};
  CHECK(earlier.find(earlier.settings, earlier.hash) == Found{nullptr, ""});
  CHECK(earlier.find(earlier.settings, earlier.hash, "s2") == Found{nullptr, ""});
  CHECK(earlier.find(earlier.settings, earlier.hash, "s1") == Found{entry, "clip0 "});
}

TEST_CASE("of a batch each video has the clips behind those of the videos before it") {
  EarlierFolder earlier;
  const Json one = {{"source", "a"}, {"source_hash", "h1"}, {"clips", 3}, {"spans", "s"}};
  const Json failed = {{"source", "b"}, {"source_hash", "h2"}, {"clips", 0}, {"failed", "why"}};
  const Json last = {{"source", "c"}, {"source_hash", "h3"}, {"clips", 2}};
  const Json none = {{"source", "d"}, {"source_hash", "h4"}, {"clips", 0}};
  const Json more = {{"source", "e"}, {"source_hash", "h5"}, {"clips", 1}};
  earlier.write("joined-0123456789abcdef", earlier.settings, 0, 5,
                {{"kind", "joined"},
                 {"sources", {one, failed, last, none, more}},
                 {"errors", Json::array()}});
  earlier.folder.write("joined-0000000000000000.json", "no JSON");
  earlier.folder.write("joined-more.json", "no batch");
  const auto find = [&](const std::string& hash, const std::string& spans = "") {
    return earlier.find(earlier.settings, hash, spans);
  };
  CHECK(find("h1", "s") == Found{one, "clip0 clip1 clip2 "});
  CHECK(find("h1") == Found{nullptr, ""});
  CHECK(find("h2") == Found{nullptr, ""});
  CHECK(find("h3") == Found{last, "clip3 clip4 "});
  CHECK(find("h4") == Found{none, ""});
  CHECK(find("h5") == Found{nullptr, ""});  // whose clip is not there
  // Where a batch cannot be used, the video's own are.
  earlier.write("joined-0123456789abcdef", earlier.settings, 0, 1,
                {{"kind", "joined"},
                 {"sources", {{{"source", "a"}, {"source_hash", earlier.hash}, {"failed", "why"}}}},
                 {"errors", Json::array()}});
  earlier.write("0123456789abcdef", earlier.settings, 7, 1,
                {{"kind", "clips"}, {"source_hash", earlier.hash}, {"errors", Json::array()}});
  CHECK(find(earlier.hash).second == "clip7 ");
}

TEST_CASE("a hash of spans is of their times and fields, in order") {
  ClipSource source;
  CHECK(hash_of_spans(source).empty());
  std::vector<GivenSpan> spans(2);
  spans[1].fields = Json{{"a", 1}};
  source.spans = &spans;
  CHECK(hash_of_spans(source) == hash_hex(spans[0].text() + spans[1].text()));
}

TEST_CASE("of a batch a clip's key is used once in a video, and no shard takes what it cannot") {
  TemporaryFolder folder;
  ClipParts parts(folder / "parts", {}, false);
  ClipPart part(parts);
  CHECK(part.begin(true).empty());
  const shard::Sample sample{"one", {{"mp4", "x"}, {"json", "{}"}}};
  part.add(sample);
  CHECK_THROWS_WITH(part.add(sample), "two clips have the key 'one'");
  CHECK_THROWS_AS(part.add({"no key", {{"mp4", "x"}}}), Error);
  part.begin(false);
  part.add(sample);
  CHECK(part.finish({{"kind", "clips"}, {"source", "a"}, {"frames", 3}}) ==
        Json{{"source", "a"}, {"frames", 3}});
  std::vector<GivenSpan> spans(1);
  const ClipSource source{"a", "h1", {}, 0, &spans};
  part.end(source);
  REQUIRE(parts.find("h1"));
  CHECK(parts.find("h1")->clips.size() == 1);
  CHECK(
      parts.find("h1")->summary ==
      dump_json({{"source", "a"}, {"frames", 3}, {"clips", 1}, {"spans", hash_of_spans(source)}}));
}

namespace {

/// Outputs of the sources a, b and c (pictures) in one folder.
struct LeftFolder {
  TemporaryFolder folder, others;
  const std::string a = std::string(16, 'a'), b = std::string(16, 'b'),
                    c = std::string("joined-") + std::string(16, 'c');

  LeftFolder() {
    write(a, "clips", ClipFormat::shards);
    write(b, "images", ClipFormat::files);
    write(c, "joined", ClipFormat::shards);
  }
  void write(const std::string& name, const char* kind, ClipFormat format) const {
    const auto store = make_clip_store(format, folder.path, name, {{"recipe", 1}}, 5000);
    store->find_or_hold(true);
    store->begin(false);
    store->add({"key-" + name, {{"mp4", "x"}, {"json", "{}"}}});
    store->finish({{"kind", kind}, {"source", "x.mp4"}, {"errors", Json::array()}});
  }
  static ClipItem item(ClipItem::Kind kind, const std::string& hash) {
    return {kind, {{"x.mp4", hash + std::string(16, '0')}}, "x.mp4", "wrong"};
  }
  /// What is in errors.jsonl afterwards.
  Lines finish(const std::vector<ClipItem>& items, bool remove, const std::string& broken = "",
               bool readable = false) const {
    Leftovers leftovers(folder.path, readable);
    for (const ClipItem& one : items)
      leftovers.see(one);
    io::ErrorLog errors(others / "errors.jsonl", "vfm-clip");
    leftovers.finish(remove, broken, errors);
    errors.finish();
    Lines lines;
    for (const Json& line : clip_run::json_lines(others / "errors.jsonl"))
      lines.push_back(line.at("input").get<std::string>() + ": " +
                      line.at("error").get<std::string>());
    return lines;
  }
  Lines names() const {
    Lines all;
    for (const auto& file : std::filesystem::directory_iterator(folder.path))
      if (const std::string name = file.path().filename().string();
          name.ends_with(".json") || name.ends_with(".files") || name.starts_with("."))
        all.push_back(name);
    std::sort(all.begin(), all.end());
    return all;
  }
};

}  // namespace

TEST_CASE(
    "what is left over of sources that the input does not name is told, and removed if asked") {
  const LeftFolder left;
  const Lines all = left.names();
  const std::vector<ClipItem> items = {LeftFolder::item(ClipItem::Kind::video, left.a)};
  {
    const HeardLog told(LogLevel::info);
    CHECK(left.finish(items, false).empty());
    CHECK(HeardLog::lines() ==
          Lines{"'" + left.folder.path +
                "' holds the output of 2 sources that the input does not name"});
  }
  CHECK(left.names() == all);
  // Somebody else's files of such names.
  const std::string own(16, 'd'), odd(16, 'e');
  left.folder.write(own + ".json", "{\"kind\":\"mine\",\"settings\":{}}");
  left.folder.write("." + own + ".settings", "{\"mine\":1}\n");
  left.folder.write(odd + ".json", "{\"kind\":\"clips\",\"settings\":7}");
  left.folder.write(std::string(15, 'a') + ".json", "{}");
  left.folder.write(std::string(15, 'a') + "G.json", "{}");
  // What runs left that were killed.
  const std::string killed(16, 'f');
  left.folder.write("." + killed + ".settings", "{\"recipe\":1}\n");
  left.folder.write("." + std::string(16, '1') + ".parts", "{\"settings\":1}\n");
  left.folder.write("." + std::string(16, '2') + ".journal", "{\"settings\":1}\n");
  {
    const HeardLog told(LogLevel::info);
    CHECK(left.finish(items, true).empty());
    const std::string path = left.folder.path + "/";
    CHECK(HeardLog::any("removed from '" + left.folder.path +
                        "' the output of 5 sources that the input does not name"));
    for (const std::string& line :
         {"'" + path + left.c + ".json' is not of this input: a batch of joined videos",
          "'" + path + left.b + ".files' is not of this input: pictures",
          "'" + path + "." + killed + ".settings' is not of this input: a run that did not end",
          "'" + path + own + ".json' is left alone: '" + path + own + ".json' does not list clips",
          "'" + path + odd + ".json' is left alone: '" + path + odd + ".json' does not list clips",
          "'" + path + "." + own + ".settings' is left alone: '" + path + "." + own +
              ".settings' is not of vfm-clip"}) {
      CAPTURE(line, HeardLog::lines());
      CHECK(HeardLog::any(line));
    }
  }
  CHECK(left.names() == Lines{"." + own + ".settings", std::string(15, 'a') + ".json",
                              std::string(15, 'a') + "G.json", left.a + ".json", own + ".json",
                              odd + ".json"});
  // The source of one, and nothing else left over.
  for (const std::string& name : {"." + own + ".settings", own + ".json", odd + ".json"})
    std::filesystem::remove(left.folder / name);
  {
    const HeardLog told(LogLevel::info);
    CHECK(left.finish({LeftFolder::item(ClipItem::Kind::video, left.b)}, false).empty());
    CHECK(HeardLog::any("holds the output of 1 source that the input does not name"));
    CHECK(left.finish(items, false).empty());
    CHECK(left.finish(items, true).empty());
    CHECK(HeardLog::lines().size() == 1);
    CHECK(left.finish({LeftFolder::item(ClipItem::Kind::video, left.b)}, true).empty());
    CHECK(HeardLog::any(left.a + ".json' is not of this input: x.mp4"));
    CHECK(left.names() == Lines{std::string(15, 'a') + ".json", std::string(15, 'a') + "G.json"});
  }
}

TEST_CASE("of more than a hundred sources that are left over the number is not told") {
  const LeftFolder left;
  const std::vector<ClipItem> items = {LeftFolder::item(ClipItem::Kind::video, left.a)};
  for (int i = 2; i < 100; ++i)
    left.folder.write(vfm::format(".{:016}.parts", i), "");
  const HeardLog told(LogLevel::info);
  CHECK(left.finish(items, false).empty());
  CHECK(HeardLog::any("holds the output of 100 sources that the input does not name"));
  left.folder.write(vfm::format(".{:016}.parts", 100), "");
  CHECK(left.finish(items, false).empty());
  CHECK(HeardLog::any("holds the output of more than 100 sources that the input does not name"));
}

TEST_CASE("nothing is removed where it is not known what the input names") {
  const LeftFolder left;
  const Lines all = left.names();
  using Kind = ClipItem::Kind;
  const ClipItem video = LeftFolder::item(Kind::video, left.a);
  const std::string here = left.folder.path + ": --prune removed nothing: ",
                    end = ", so it is unknown what is left over";
  CHECK(left.finish({video, LeftFolder::item(Kind::bad, left.b)}, true) ==
        Lines{here + "'x.mp4' was not read" + end});
  ClipItem unread = LeftFolder::item(Kind::duplicate, left.b);
  unread.unread = true;
  CHECK(left.finish({unread, video}, true) == Lines{here + "'x.mp4' was not read" + end});
  CHECK(left.finish({video}, true, "it broke off") == Lines{here + "it broke off" + end});
  CHECK(left.finish({}, true) == Lines{here + "the input names no source" + end});
  CHECK(left.finish({LeftFolder::item(Kind::duplicate, left.b)}, true) ==
        Lines{here + "the input names no source" + end});
  ClipItem shard = LeftFolder::item(Kind::passed, left.b);
  shard.sources[0].record = Json{{"kind", "shard"}, {"path", "y/" + left.b + ".files"}};
  CHECK(left.finish({video, shard}, true) ==
        Lines{here + "'y/" + left.b + ".files' is in the input, and not its source" + end});
  CHECK(left.names() == all);
  const HeardLog told(LogLevel::info);
  CHECK(left.finish({}, false).empty());
  CHECK(HeardLog::lines().empty());
  // A shard of another folder, or another record of the same path, says nothing of this one.
  shard.sources[0].record = Json{{"kind", "shard"}, {"path", "y/other.files"}};
  ClipItem other = shard;
  other.sources[0].record = Json{{"kind", "mine"}, {"path", left.b + ".files"}};
  CHECK(left.finish({video, shard, other}, true).empty());
  CHECK(left.names() == Lines{left.a + ".json"});
}

TEST_CASE("a picture that is in another batch now stays, and what was changed is an error") {
  const LeftFolder left;
  const std::string hash = left.a + std::string(16, '0');
  for (const bool readable : {false, true}) {
    const std::string key = image_key("x.png", hash, readable), name(16, readable ? '7' : '8');
    const auto store =
        make_clip_store(ClipFormat::files, left.folder.path, name, {{"recipe", 1}}, 5000);
    store->find_or_hold(true);
    store->begin(false);
    store->add({key, {{"png", "picture"}, {"json", "{}"}}});
    store->add({"other", {{"png", "picture"}, {"json", "{}"}}});
    store->finish({{"kind", "images"}, {"errors", Json::array()}});
    ClipItem images = LeftFolder::item(ClipItem::Kind::images, left.a);
    images.sources[0].path = "x.png";
    left.folder.write(left.c + "-00000.tar", "changed");
    const Lines errors = left.finish({images}, true, "", readable);
    REQUIRE(errors.size() == 1);
    CHECK(errors[0] == left.folder / left.c + ": is left: '" + left.folder / left.c +
                           "-00000.tar' is not the file that vfm-clip wrote there; remove it by "
                           "hand");
    CHECK(std::filesystem::exists(left.folder / (key + ".png")));
    CHECK_FALSE(std::filesystem::exists(left.folder / "other.png"));
    CHECK(std::filesystem::exists(left.folder / (left.c + ".json")));
  }
}
