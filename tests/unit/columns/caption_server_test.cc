// Captions of whole shards from a server: what of its answers becomes of a column, and what is
// paid for once.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <memory>

#include "columns/caption/caption.h"
#include "columns/caption/caption_queue.h"
#include "io/http.h"
#include "support/chat_server.h"
#include "support/temporary_folder.h"
#include "unit/columns/column_cases.h"

using namespace vfm;
using namespace vfm::columns;

namespace {

CaptionOptions captions_by(const ChatServer& server, const std::string& input) {
  CaptionOptions options;
  options.inputs = {input};
  options.from = parse_caption_sources({}, true);
  options.endpoint.url = server.url();
  options.endpoint.model = "m";
  options.endpoint.prompt = "Caption it.";
  options.endpoint.frames = 1;
  options.endpoint.parallel = 1;
  options.endpoint.retries = 0;
  options.endpoint.wait = 0;
  return options;
}

/// Clips "a", "b" and so on, whose facts are known.
void write_clips(const TemporaryFolder& folder, int count) {
  std::vector<shard::Sample> samples;
  for (int i = 0; i < count; ++i)
    samples.push_back({std::string(1, static_cast<char>('a' + i)),
                       {{"mp4", make_video(2, {static_cast<std::uint8_t>(40 * i), 90, 90})},
                        {"json", R"({"seconds":1,"fps":8,"frames":8,"width":64,"height":48})"}}});
  write_tar(folder / "x.tar", samples);
}

struct Captioned {
  long errors = 0;
  Json record;
  std::vector<Json> faults;
  std::map<std::string, Json> jsons;
};

Captioned caption_all(const CaptionOptions& options, const TemporaryFolder& folder) {
  Run run;
  Captioned all;
  all.errors = caption(options, run.slots, run, run.manifest);
  if (const std::vector<Json> records = run.records(); !records.empty()) all.record = records[0];
  all.faults = errors_in(folder / "caption-errors.jsonl");
  if (io::file_exists(folder / "x.caption.tar")) all.jsons = jsons_of(folder / "x.caption.tar");
  return all;
}

std::size_t paid_lines(const TemporaryFolder& folder) {
  return errors_in(folder / "x.caption.answers.jsonl").size();
}

}  // namespace

TEST_CASE("one bad clip is recorded, and the next run asks and pays for it alone") {
  if (!io::have_http()) return;
  const TemporaryFolder folder;
  write_clips(folder, 3);
  const ChatServer server({chat_says("first of all"), chat_fails(400, "not this, sk-12345"),
                           chat_says("the third", "length")});
  CaptionOptions options = captions_by(server, folder / "x.tar");
  options.endpoint.secret = "sk-12345";
  options.endpoint.input_price = 2;
  options.endpoint.output_price = 30;
  options.max_characters = 6;
  const Captioned first = caption_all(options, folder);
  CHECK(first.errors == 1);
  CHECK(first.record["caption_usage"] == Json{{"answers", 2},
                                              {"failed", 1},
                                              {"prompt_tokens", 200},
                                              {"completion_tokens", 20},
                                              {"cost", 0.001}});
  CHECK(first.record["caption_cut"] == 1);
  const Json by = {{"name", "m"}};
  const Json a = {{"caption", "first"}, {"caption_source", "endpoint"}, {"caption_model", by}};
  const Json c = {{"caption", "the"},
                  {"caption_source", "endpoint"},
                  {"caption_model", by},
                  {"caption_cut", true}};
  CHECK(first.jsons ==
        std::map<std::string, Json>{
            {"a", a}, {"b", {{"caption", ""}, {"caption_source", "none"}}}, {"c", c}});
  REQUIRE(first.faults.size() == 1);
  CHECK(first.faults[0]["input"] == "b of '" + folder.path + "/x.tar'");
  CHECK(first.faults[0]["code"] == "rejected");
  CHECK(first.faults[0]["error"] == "'" + server.url() +
                                        "/chat/completions' refuses it with "
                                        "status 400: not this, [key]");
  CHECK(paid_lines(folder) == 2);
  CHECK(caption_origins(folder / "x.caption.tar", {})["endpoint"] == 2);

  // At another address: what was paid at the first is not asked for again.
  const ChatServer other({chat_fails(400), chat_says("second")});
  options.endpoint.url = other.url();
  const Captioned again = caption_all(options, folder);
  CHECK(again.errors == 1);
  CHECK_THAT(again.faults.at(0)["error"], Catch::StartsWith("'" + other.url()));
  const Captioned second = caption_all(options, folder);
  CHECK(second.errors == 0);
  CHECK(server.asked() == 3);
  CHECK(other.asked() == 2);
  CHECK(other.requests()[1].body == server.requests()[1].body);
  CHECK(second.record["caption_usage"]["answers"] == 3);
  CHECK(second.record["caption_usage"]["failed"] == 0);
  CHECK(second.record["caption_usage"]["prompt_tokens"] == 300);
  CHECK(second.record["caption_cut"] == 1);
  CHECK(second.jsons.at("b")["caption"] == "second");
  CHECK(second.jsons.at("c") == c);
  CHECK_FALSE(io::file_exists(folder / "x.caption.answers.jsonl"));
  // Kept: nothing is asked, and the record is the same.
  CHECK(caption_all(options, folder).record == second.record);
  CHECK(other.asked() == 2);
  CHECK(server.requests()[0].json()["messages"][0]["content"].size() == 2);
}

TEST_CASE("a price of one kind alone makes no cost, and prices are for the column nothing") {
  if (!io::have_http()) return;
  const TemporaryFolder folder;
  write_clips(folder, 1);
  const ChatServer server({chat_says("a fox")});
  CaptionOptions options = captions_by(server, folder / "x.tar");
  options.endpoint.input_price = 2;
  CHECK_FALSE(caption_all(options, folder).record["caption_usage"].contains("cost"));
  options.endpoint.input_price.reset();
  options.endpoint.output_price = 2;
  options.force = true;
  const Captioned all = caption_all(options, folder);
  CHECK_FALSE(all.record["caption_usage"].contains("cost"));
  CHECK_FALSE(all.record.contains("caption_cut"));
  CHECK(server.asked() == 2);
}

TEST_CASE("what does not fit a schema is asked again with other seeds, and costs its own field") {
  if (!io::have_http()) return;
  const TemporaryFolder folder;
  write_clips(folder, 2);
  // Of the first clip the second seed fits, of the second none; its short answer fails.
  std::string first_clip;
  const ChatServer server([&](const ChatRequest& request, std::size_t number) {
    const Json json = request.json();
    const std::string picture = json["messages"][0]["content"][0]["image_url"]["url"];
    if (number == 0) first_clip = picture;
    const bool first = picture == first_clip;
    if (request.prompt() == "Caption it.") return chat_says("a caption");
    if (request.prompt() == "Short?") return first ? chat_says("", "length") : chat_fails(422);
    const int seed = json.value("seed", 0);
    return chat_says("{\"n\": " + std::to_string(first ? seed : 0) + "}",
                     seed > 0 ? "length" : "stop");
  });
  CaptionOptions options = captions_by(server, folder / "x.tar");
  options.endpoint.temperature = 0.5;
  options.endpoint.also.keep_empty = true;
  const auto schema = std::make_shared<text::JsonSchema>(
      parse_json(R"({"type":"object","properties":{"n":{"type":"integer","minimum":2}}})", "it"),
      "it");
  options.endpoint.also.list = {{"facts", "Facts?", schema}, {"short", "Short?"}};
  const Captioned all = caption_all(options, folder);
  CHECK(all.errors == 2);
  CHECK(all.jsons.at("a") == Json{{"caption", "a caption"},
                                  {"caption_source", "endpoint"},
                                  {"caption_model", {{"name", "m"}}},
                                  {"caption_also_cut", {"facts", "short"}},
                                  {"caption_facts", {{"n", 2}}},
                                  {"caption_short", ""}});
  CHECK(all.jsons.at("b") == Json{{"caption", "a caption"},
                                  {"caption_source", "endpoint"},
                                  {"caption_model", {{"name", "m"}}},
                                  {"caption_also_cut", {"facts"}}});
  REQUIRE(all.faults.size() == 2);
  CHECK_THAT(all.faults[0]["error"], Catch::StartsWith("no answer 'facts', asked 3 times: $.n"));
  CHECK(all.faults[0]["code"] == "answer");
  CHECK_THAT(all.faults[1]["error"], Catch::StartsWith("no answer 'short': 'http"));
  CHECK(all.faults[1]["code"] == "rejected");
  CHECK(all.record["caption_usage"] ==
        Json{{"answers", 9}, {"failed", 2}, {"prompt_tokens", 900}, {"completion_tokens", 90}});
  CHECK(all.record["caption_cut"] == 5);
  std::vector<int> seeds;
  for (const ChatRequest& request : server.requests())
    if (request.prompt() == "Facts?") seeds.push_back(request.json().value("seed", 0));
  std::sort(seeds.begin(), seeds.end());
  CHECK(seeds == std::vector<int>{0, 0, 1, 1, 2, 2});
  CHECK(paid_lines(folder) == 9);
}

TEST_CASE("an answer may have no caption, and a caption no answer") {
  if (!io::have_http()) return;
  const TemporaryFolder folder;
  write_clips(folder, 3);
  // Of the first the caption fails, of the second all, of the third the further question.
  std::vector<std::string> seen;
  const ChatServer server([&](const ChatRequest& request, std::size_t) {
    const std::string picture = request.json()["messages"][0]["content"][0]["image_url"]["url"];
    if (seen.empty() || seen.back() != picture) seen.push_back(picture);
    const bool whole = request.prompt() == "Caption it.";
    if (seen.size() == 1) return whole ? chat_says("", "content_filter") : chat_says("short");
    if (seen.size() == 2) return whole ? chat_fails(400) : chat_says(" ");
    return whole ? chat_says("a caption") : chat_says("it is sk-12345");
  });
  CaptionOptions options = captions_by(server, folder / "x.tar");
  options.endpoint.secret = "sk-12345";
  options.endpoint.also.list = {{"short", "Short?"}};
  const Captioned all = caption_all(options, folder);
  CHECK(all.errors == 3);
  CHECK(all.jsons.at("a") == Json{{"caption", ""},
                                  {"caption_source", "none"},
                                  {"caption_model", {{"name", "m"}}},
                                  {"caption_short", "short"}});
  CHECK(all.jsons.at("b") == Json{{"caption", ""}, {"caption_source", "none"}});
  CHECK(all.jsons.at("c")["caption_short"] == "it is [key]");
  REQUIRE(all.faults.size() == 3);
  CHECK(all.faults[0]["error"] ==
        "the server's caption for it is empty: finish_reason is content_filter");
  CHECK(all.faults[0]["code"] == "answer");
  CHECK(all.faults[2]["error"] == "no answer 'short': it is empty");
  CHECK(all.record["caption_usage"]["answers"] == 5);
  CHECK(all.record["caption_usage"]["failed"] == 3);
  // Empty answers were paid for, too: they are not asked for again.
  const std::size_t asked = server.asked();
  options.force = true;
  const Captioned again = caption_all(options, folder);
  CHECK(server.asked() == asked + 1);
  CHECK(again.errors == 2);
  CHECK(again.faults.at(0) == all.faults[0]);
  CHECK(again.faults.at(1) == all.faults[2]);
}

TEST_CASE("a key inside of an answer's JSON is in no field") {
  if (!io::have_http()) return;
  const TemporaryFolder folder;
  write_clips(folder, 1);
  const ChatServer server([&](const ChatRequest& request, std::size_t) {
    return chat_says(request.prompt() == "Caption it." ? "a caption"
                                                       : "{\"says\": \"\\u0073k-12345\"}");
  });
  CaptionOptions options = captions_by(server, folder / "x.tar");
  options.endpoint.secret = "sk-12345";
  options.endpoint.also.list = {
      {"facts", "Facts?", std::make_shared<text::JsonSchema>(Json{{"type", "object"}}, "it")}};
  const Captioned all = caption_all(options, folder);
  REQUIRE(all.faults.size() == 1);
  CHECK(all.faults[0]["error"] == "no answer 'facts': it repeats the server's key");
  CHECK_FALSE(all.jsons.at("a").contains("caption_facts"));
}

TEST_CASE("a shard of which no clip has an answer gets no column") {
  if (!io::have_http()) return;
  const TemporaryFolder folder;
  write_clips(folder, 2);
  for (const int status : {400, 500, 401}) {
    INFO(status);
    const ChatServer server({chat_fails(status)});
    const Captioned all = caption_all(captions_by(server, folder / "x.tar"), folder);
    CHECK(all.errors == 1);
    CHECK(all.record.is_null());
    CHECK(all.jsons.empty());
    REQUIRE(all.faults.size() == 1);
    CHECK(all.faults[0]["code"] == (status == 400 ? "rejected" : "server"));
    CHECK_THAT(all.faults[0]["error"], Catch::Contains("status " + std::to_string(status)));
    CHECK(all.faults[0]["error"].get<std::string>().starts_with("no sample of it has an answer") ==
          (status != 401));
    CHECK(server.asked() == (status == 401 ? 1 : 2));
  }
}

TEST_CASE("clips that are no videos are not asked about, and others' captions come first") {
  if (!io::have_http()) return;
  const TemporaryFolder folder;
  const std::string clip = make_video(2, kBlue);
  write_tar(folder / "x.tar", {{"bad", {{"mp4", "none"}, {"txt", ""}}},
                               {"has", {{"mp4", clip}, {"txt", "its own"}}},
                               {"asked", {{"mp4", clip}, {"txt", ""}}}});
  const ChatServer server({chat_says("by a server")});
  CaptionOptions options = captions_by(server, folder / "x.tar");
  options.from = parse_caption_sources({"existing"}, true);
  const Captioned all = caption_all(options, folder);
  CHECK(all.errors == 1);
  CHECK(server.asked() == 1);
  CHECK(all.jsons.at("bad") == Json{{"caption", ""}, {"caption_source", "none"}});
  CHECK(all.jsons.at("has") == Json{{"caption", "its own"}, {"caption_source", "existing:member"}});
  CHECK(all.jsons.at("asked") == Json{{"caption", "by a server"},
                                      {"caption_source", "endpoint"},
                                      {"caption_model", {{"name", "m"}}},
                                      {"width", 64},
                                      {"height", 48},
                                      {"seconds", 0.25},
                                      {"fps", 8},
                                      {"frames", 2}});
  CHECK(all.record["caption_usage"]["answers"] == 1);
  CHECK(all.record["caption_usage"]["failed"] == 0);
  const Json notes = parse_json(io::read_file(folder / "x.caption.json"), "it");
  CHECK(notes["made_from"]["settings"]["endpoint"] == endpoint_config(options.endpoint));
  CHECK(notes["made_from"]["settings"]["from"] == Json{"existing", "endpoint"});
}
