// What vfm-shard reads of shards: columns, indexes, compressed tars, foreign names, facts, damage.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "base/hash.h"
#include "dataset/sample_reader.h"
#include "dataset/scan.h"
#include "dataset/scan_column.h"
#include "dataset_run.h"
#include "shard/columns.h"

using namespace vfm;
using namespace vfm::dataset;

namespace {

std::string big_endian(std::uint64_t value) {
  std::string out;
  for (int i = 8; i-- > 0;)
    out += static_cast<char>(value >> (8 * i) & 255);
  return out;
}

/// Little-endian numbers, as X.tar.idx has them.
std::string index_of(const std::vector<std::uint64_t>& offsets) {
  std::string out;
  for (const std::uint64_t at : offsets) {
    const std::string bytes = big_endian(at);
    out.append(bytes.rbegin(), bytes.rend());
  }
  return out;
}

std::string errors_of(const DatasetRun& run) {
  std::string all;
  for (const Json& error : run.lines("out/errors.jsonl"))
    all += error["input"].get<std::string>() + ": " + error["error"].get<std::string>() + " (" +
           error["code"].get<std::string>() + ")\n";
  return all;
}

std::vector<shard::Sample> letters() {
  return {video("a", "{}"), video("b", "{}"), video("c", "{}")};
}

}  // namespace

TEST_CASE("a column is asked in the order of the first, in another order, and for what it lacks") {
  const TemporaryFolder folder;
  folder.write("c.tar",
               tar_of({{"a", {{"txt", "1"}}}, {"b", {{"txt", "2"}}}, {"x/c", {{"txt", "3"}}}}));
  const auto text = [](const shard::SampleView* sample) {
    return sample ? std::string(sample->find("txt")) : "none";
  };
  for (const TarIndex index : {TarIndex::beside_it, TarIndex::made}) {
    ScanColumn column(folder / "c.tar", folder / "unpacked.tar", {}, index);
    CHECK(column.reader().samples() == 3);
    CHECK(column.faults().empty());
    CHECK(text(column.find("a")) == "1");
    CHECK(column.place().row == 0);
    CHECK(text(column.find("b")) == "2");
    CHECK(column.place().row == 1);
    CHECK(column.place().offset == 1024);
    CHECK(column.place().size == 1024);
    CHECK(text(column.find("a")) == "1");  // from the table
    CHECK(column.place().row == 0);
    CHECK(column.place().offset == 0);
    CHECK(text(column.find("d")) == "none");
    CHECK(text(column.find(shard::column_key("x/c"))) == "3");
    CHECK(column.place().row == 2);
    CHECK_FALSE(column.index_is_wrong());
    CHECK(std::string(column.at(1).key) == "b");
  }
  ScanColumn straight(folder / "c.tar", folder / "unpacked.tar", {}, TarIndex::made);
  CHECK(text(straight.find("a")) == "1");
  CHECK(text(straight.find("b")) == "2");
  CHECK(text(straight.find(shard::column_key("x/c"))) == "3");
  CHECK(text(straight.find("a")) == "1");  // past the end
  CHECK_FALSE(io::file_exists(folder / "unpacked.tar"));
}

TEST_CASE("an index beside a tar that does not fit it is told, and not used") {
  const std::string tar = tar_of(letters());
  const std::uint64_t end = tar.size() - 1024;
  const auto outcome = [&](const std::vector<std::uint64_t>& offsets, const std::string& bytes) {
    DatasetRun run;
    run.folder.write("in.tar", bytes);
    run.folder.write("in.tar.idx", index_of(offsets));
    run.options.inputs = {run.folder / "in.tar"};
    const long errors = run.run();
    return fmt::format("{} {}: {}", errors, run.keys(), run.log);
  };
  CHECK(outcome({0, 2048, 4096, end}, tar) == "0 a b c: ");
  CHECK(outcome({0, 2048, 4096, end, end}, tar) ==
        "0 a b c: 'in.tar.idx' does not fit 'in.tar' at sample 3: one of them is damaged, or "
        "the index is of another tar; copy both again, or make them again; reading the tar "
        "without it\n");
  // Two samples as one, and one as two: found at the sample.
  CHECK(outcome({0, 4096, end}, tar) ==
        "0 a b c: 'in.tar.idx' does not fit 'in.tar'; reading the tar without it\n");
  CHECK(outcome({0, 1024, 2048, 4096, end}, tar) ==
        "0 a b c: 'in.tar.idx' does not fit 'in.tar'; reading the tar without it\n");
  // The tar is damaged, and its index is right: all but the damaged one are there.
  std::string damaged = tar;
  damaged[2048 + 150] = '\xff';
  CHECK(outcome({0, 2048, 4096, end}, damaged) ==
        "1 a c: 'in.tar.idx' does not fit 'in.tar' at sample 1: one of them is damaged, or "
        "the index is of another tar; copy both again, or make them again\n");
}

TEST_CASE("a compressed tar is unpacked for the run; its damage and what is too large are told") {
  DatasetRun run;
  run.folder.write("in.tar", tar_of(letters()));
  run.folder.write("big.tar", tar_of({video("d", "{}", std::string(2000, 'd')), video("e", "{}")}));
  for (const char* name : {"in.tar", "big.tar"})
    REQUIRE(std::system(("gzip " + run.folder / name).c_str()) == 0);
  run.options.inputs = {run.folder / "in.tar.gz", run.folder / "big.tar.gz"};
  run.options.limits.member = 1000;
  CHECK(run.run() == 1);
  CHECK(run.keys() == "a b c e");
  CHECK(errors_of(run) ==
        "big.tar.gz: member 'd.mp4' of 'big.tar.gz' is too large: 2000 bytes or more make "
        "its sample larger than the limit of 1000 B (--max-member) (limit)\n");
  CHECK_FALSE(io::file_exists(run.folder / "out/.unpacked"));
  // The check sum at its end is another one.
  std::string zipped = io::read_file(run.folder / "in.tar.gz");
  zipped[zipped.size() - 8] ^= 1;
  run.folder.write("in.tar.gz", zipped);
  run.remove_output();
  CHECK(run.run() == 2);
  CHECK(errors_of(run) ==
        "in.tar.gz: 'in.tar.gz' is damaged: gzip says 'in.tar.gz: incorrect data check' "
        "(other)\n"
        "big.tar.gz: member 'd.mp4' of 'big.tar.gz' is too large: 2000 bytes or more make "
        "its sample larger than the limit of 1000 B (--max-member) (limit)\n");
  // A tar that breaks off.
  run.folder.write("in.tar", tar_of(letters()).substr(0, 5000));
  run.options.inputs = {run.folder / "in.tar"};
  run.remove_output();
  CHECK(run.run() == 1);
  CHECK(run.keys() == "a b");
  CHECK(errors_of(run) ==
        "in.tar: 'in.tar' is not a readable tar: Truncated input file (needed 512 bytes, "
        "only 392 available) (format)\n");
}

TEST_CASE("lines of the input that are no shards are told by their number, and cost nothing else") {
  DatasetRun run;
  run.folder.write("a.tar", tar_of({video("a", "{}")}));
  run.folder.write("b.tar", tar_of({video("b", "{}")}));
  run.folder.write("b.more.tar", tar_of({{"b", {{"json", R"({"more":1})"}}}}));
  run.folder.write("noise.tar", std::string(3000, 'n'));
  const std::string at = run.folder.path + "/";
  run.folder.write("list.jsonl",
                   "{\"kind\":\"video\",\"path\":\"a.mp4\"}\nnot json {\n" + at +
                       "a.tar\n{\"kind\":\"shard\"}\n" + at +
                       "noise.tar\n[\"list\"]\n{\"kind\":\"shard\",\"path\":\"" + at +
                       "b.tar\",\"columns\":{\"clip\":\"" + at + "b.tar\",\"more\":\"" + at +
                       "b.more.tar\"}}\n" + "{\"kind\":\"shard\",\"path\":\"" + at +
                       "a.tar\",\"xxh3\":\"" + std::string(32, '0') + "\"}\n{\"kind\"\n");
  run.options.inputs = {run.folder / "list.jsonl"};
  CHECK(run.run() == 7);
  CHECK(run.keys() == "a b");
  CHECK(run.samples().at("b").at("more") == 1);
  CHECK(errors_of(run) ==
        "a.mp4: line 1 of 'list.jsonl' is a 'video', not a shard (other)\n"
        "not json {: line 2 of 'list.jsonl' is a 'video', not a shard (other)\n"
        "line 4 of 'list.jsonl': line 4 of 'list.jsonl' has no 'path' (other)\n"
        "noise.tar: 'noise.tar' is not a readable tar: Unrecognized archive format (format)\n"
        "line 6 of 'list.jsonl': line 6 of 'list.jsonl' is JSON but not an object (line)\n"
        "a.tar: 'a.tar' is not as it was written: its xxh3 is not "
        "00000000000000000000000000000000, as its record says (format)\n"
        "line 9 of 'list.jsonl': line 9 of 'list.jsonl' is not JSON: column 8: syntax error "
        "while parsing object separator - unexpected end of input; expected ':' (line)\n");
}

TEST_CASE("keys that come again: the same video is repeated, another one an error, --rekey keeps") {
  DatasetRun run;
  run.add("one", {video("k", R"({"source":"x"})"), video("l", "{}")});
  run.add("two", {video("k", "{}", "other"), video("l", R"({"source":"y"})", "video l")});
  CHECK(run.run() == 1);
  CHECK(run.keys() == "k l");
  CHECK(errors_of(run) ==
        "two.tar: key 'k' comes twice with different contents, first in 'one.tar'; "
        "keep one, or give new keys with --rekey (duplicate)\n");
  CHECK(run.lines("out/duplicates.jsonl").size() == 1);
  CHECK(run.json("out/dataset.json")["duplicates"] ==
        Json{{"exact", 0}, {"near", 0}, {"repeated", 1}});
  run.options.rekey = true;
  run.remove_output();
  CHECK(run.run() == 0);
  std::map<std::string, int> original;
  for (const auto& [key, meta] : run.samples()) {
    ++original[meta["original_key"]];
    CHECK(key == hash_hex(meta["media_xxh3"].get<std::string>() +
                          meta["original_key"].get<std::string>()));
  }
  CHECK(original == std::map<std::string, int>{{"k", 2}, {"l", 1}});
}

TEST_CASE("the facts of a sample come from its JSON, a picture's size from its header") {
  DatasetRun run;
  const auto png = [](char width, char height) {
    std::string bytes("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\0\0\0\0\0\x08\x06\0\0\0", 29);
    bytes[19] = width, bytes[23] = height;
    return bytes;
  };
  std::vector<shard::Sample> samples;
  int number = 0;
  for (const char* json :
       {R"({"width":640,"height":480,"duration":4.5})",
        R"({"width":640,"height":480,"seconds":12,"duration":4.5})",
        R"({"width":"640","height":480,"seconds":"long","duration":7})", R"({"duration":"7"})"})
    samples.push_back(video(fmt::format("v{}", number++), json));
  for (const auto& [json, picture] : {std::pair("{}", png(30, 20)),
                                      {R"({"width":50,"height":20})", png(40, 20)},
                                      {R"({"width":50})", png(100, 60)},
                                      {R"({"height":50,"seconds":5})", png(120, 60)},
                                      {"{}", std::string("no picture")}})
    samples.push_back({fmt::format("p{}", number++), {{"png", picture}, {"json", json}}});
  samples.push_back({"w", {{"wav", "sound"}, {"json", R"({"seconds":2})"}}});
  samples.push_back({"t", {{"txt", "text"}, {"json", "{}"}}});
  run.add("in", samples);
  CHECK(run.run() == 0);
  std::string bins;
  for (const auto& [key, meta] : run.samples())
    bins += key + " " + meta["bin"].get<std::string>() + "\n";
  CHECK(bins ==
        "p4 under256p_4x3_png_without_txt\n"
        "p5 under256p_16x9_png_without_txt\n"
        "p6 under256p_16x9_png_without_txt\n"
        "p7 under256p_16x9_png_without_txt\n"
        "p8 unsized_png_without_txt\n"
        "t unsized_untimed_nomedia\n"
        "v0 480p_4x3_2s_without_txt\n"
        "v1 480p_4x3_10s_without_txt\n"
        "v2 unsized_untimed_without_txt\n"
        "v3 unsized_untimed_without_txt\n"
        "w unsized_2s_wav_without_txt\n");
  const std::string index = run.text("out/.nv-meta/index.sqlite");
  for (const char* fact : {R"({"video_duration":4.5,"video_width":640,"video_height":480})",
                           R"({"video_duration":12.0,"video_width":640,"video_height":480})",
                           R"({"width":100,"height":60,"format":"PNG","mode":"RGBA"})"})
    CHECK(index.find(fact) != std::string::npos);
  CHECK(run.json("out/dataset.json")["seconds"] == 4.5 + 12 + 5 + 2);
  std::string configs;
  std::string card = run.text("out/README.md");
  card.resize(card.find("dataset_info"));
  for (std::size_t at = 0; (at = card.find("config_name: ", at)) != std::string::npos; ++at)
    configs += card.substr(at + 13, card.find('\n', at) - at - 13) + " ";
  CHECK(configs == R"("png" "mp4" "json" "wav" )");  // the most samples first
}

TEST_CASE("the same bytes are one sample; without media all members together are") {
  DatasetRun run;
  run.add("in", {{"a", {{"txt", "text"}, {"json", "{}"}}},
                 {"b", {{"txt", "text"}, {"json", "{}"}}},
                 {"c", {{"mp4", "v"}, {"txt", "one"}}},
                 {"d", {{"mp4", "v"}, {"txt", "two"}}}});
  CHECK(run.run() == 0);
  CHECK(run.keys() == "a b c");  // the JSON of a and b has their keys
  CHECK(run.samples().at("a").contains("media_xxh3") == false);
  run.options.keep_duplicates = true;
  run.remove_output();
  CHECK(run.run() == 0);
  CHECK(run.keys() == "a b c d");
  CHECK(run.text("out/duplicates.jsonl") == "(none)");
  CHECK_FALSE(run.json("out/dataset.json").contains("near_duplicates"));
}

TEST_CASE("a dataset of vfm-shard is an input, whose splits and bins are forgotten") {
  DatasetRun first;
  first.options.split = {{"train", 0.5}, {"val", 0.5}};
  first.add("in", {video("a", "{}"), video("b", R"({"source":"s"})")});
  CHECK(first.run() == 0);
  DatasetRun second;
  second.options.inputs = {first.options.output};
  CHECK(second.run() == 0);
  CHECK(second.keys() == "a b");
  for (const auto& [key, meta] : second.samples())
    CHECK(meta["split"] == "train");
}

TEST_CASE("a list that broke off ends the run before a dataset is written, and the page says so") {
  DatasetRun run;
  run.add("in", {video("a", "{}")});
  const std::string list = R"({"kind":"begin","tool":"vfm-clip","id":"1"})"
                           "\n" +
                           run.options.inputs[0] + "\n";
  run.folder.write("list.jsonl", list);
  run.options.inputs = {run.folder / "list.jsonl"};
  run.options.report = run.folder / "page.html";
  CHECK(run.failed() ==
        "the output of vfm-clip broke off in 'list.jsonl' (no end record): no "
        "dataset is written; run the same command again");
  CHECK(run.page_text() ==
        "\nDataset\nNot complete: the output of vfm-clip broke off in "
        "&#39;list.jsonl&#39; (no end record).\n");
  CHECK(run.text("out/plan.json") == "(none)");
  run.folder.write("list.jsonl", list + R"({"kind":"end","id":"1","records":1,"status":0})"
                                        "\n");
  CHECK(run.run() == 0);
  CHECK(run.keys() == "a");
}

TEST_CASE(
    "a sample that is another one in the second pass is an error, not a sample of the dataset") {
  DatasetRun run;
  std::filesystem::create_directories(run.options.output);
  run.add("in", {video("a", "{}"), video("b", "{}")});
  share::Slots slots(1);
  io::ErrorLog errors(run.folder / "errors.jsonl", "test");
  Scan scan = scan_shards(run.options, slots, no_progress(), errors);
  CHECK(scan.read == 2);
  CHECK(scan.fields == std::set<std::string>{"bytes", "key", "media", "media_xxh3"});
  REQUIRE(scan.shards.size() == 1);
  const Item a = scan.items.get(0), b = scan.items.get(1);
  CHECK(a.key == "a");
  CHECK(a.tar_bytes == 1024);
  CHECK(a.columns.at(0).offset == 0);
  CHECK(b.columns.at(0).offset == 2048);
  CHECK(b.columns.at(0).size == 2048);
  const auto read = [&](const Item& item) -> std::string {
    try {
      std::vector<shard::ReadBuffer> buffers;
      return SampleReader(scan.shards, false, {}, run.folder / "unpacked")
          .read(item, buffers)
          .find("mp4")
          .data();
    } catch (const Error& error) {
      return run.plain(error.what());
    }
  };
  CHECK(read(b).starts_with("video b"));
  run.folder.write("in.tar", tar_of({video("a", "{}"), video("c", "{}")}));
  CHECK(read(b) == "'in.tar' changed while it was read; run the command again");
  CHECK(read(a).starts_with("video a"));
}
