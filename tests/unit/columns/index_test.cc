// Indexes of vectors: what is in their files, how they grow, and what cannot be indexed.
// SPDX-License-Identifier: Apache-2.0
#include "columns/search/index.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "columns/search/index_writer.h"
#include "columns/search/shard_coder.h"
#include "columns/search/vector_index.h"
#include "support/heard_log.h"
#include "support/temporary_folder.h"
#include "unit/columns/vector_shards.h"

using namespace vfm;
using namespace vfm::columns;

namespace {

Json index_record(const std::string& path, int vectors, int shards, int added, int dropped) {
  return {{"kind", "index"},  {"path", path},   {"vectors", vectors},
          {"shards", shards}, {"added", added}, {"dropped", dropped}};
}

/// Each vector of the index's shards is at its position, in the list and by the code that FAISS
/// gives it, and no other is in a list. Returns the number of vectors.
std::size_t check_entries(const VectorIndex& index) {
  const IndexModel& model = index.model();
  const InvertedFile file(model.dim, index.centres(), index.words());
  std::vector<std::vector<std::uint32_t>> rows(model.lists);
  std::vector<std::string> codes(model.lists);
  std::size_t entries = 0;
  std::uint64_t first = 0;
  for (std::size_t s = 0; s < index.shards().size(); ++s) {
    const IndexedShard& shard = index.shards()[s];
    CHECK(shard.first == first);
    CHECK(shard.changed().empty());
    StoredVectors stored(shard.tar, model.kind, {});
    REQUIRE(shard.rows == static_cast<std::uint64_t>(stored.rows()));
    const auto positions = index.positions(s);
    REQUIRE(positions.size() == shard.rows);
    for (std::uint64_t row = 0; row < shard.rows; ++row) {
      StoredVector vector;
      const bool has = stored.read(static_cast<std::int64_t>(row), vector) &&
                       usable(vector, model) && vector.encoder == model.encoder;
      CHECK(positions[row] == (has ? vector.at : 0));
      CHECK(index.shard_of(static_cast<std::uint32_t>(first + row)) == s);
      if (!has) continue;
      ++entries;
      std::uint32_t list = 0;
      std::string code(code_bytes(model.dim), ' ');
      file.code(vector.values.data(), 1, &list, reinterpret_cast<std::uint8_t*>(code.data()));
      rows[list].push_back(static_cast<std::uint32_t>(first + row));
      codes[list] += code;
    }
    first += shard.rows;
  }
  CHECK(index.entries() == entries);
  CHECK_THROWS_WITH(index.shard_of(static_cast<std::uint32_t>(first)), Catch::Contains("a row"));
  for (std::size_t list = 0; list < model.lists; ++list) {
    const VectorIndex::List found = index.list(list);
    CHECK(index.list_size(list) == rows[list].size());
    CHECK(std::vector(found.rows.begin(), found.rows.end()) == rows[list]);
    CHECK(codes[list] == std::string(reinterpret_cast<const char*>(found.codes),
                                     rows[list].size() * code_bytes(model.dim)));
  }
  return entries;
}

template <class Act>
std::string message_of(Act act) {
  const HeardLog lines;
  try {
    act();
  } catch (const Error& error) {
    return lines.text() + error.what();
  }
  return "nothing was refused";
}

}  // namespace

TEST_CASE("an index has lists for two thirds of the root of its vectors") {
  CHECK(index_lists(0) == 1);
  CHECK(index_lists(8) == 1);
  CHECK(index_lists(9) == 2);
  CHECK(index_lists(90'000) == 200);
  CHECK(index_lists(std::uint64_t{1} << 40) == 4096);
}

TEST_CASE("an index has each vector where it stands, its shards and its encoder") {
  if (faiss_version().empty()) return;
  const TemporaryFolder folder;
  const std::string a = folder / "a.tar", b = folder / "deep/b.tar";
  std::filesystem::create_directory(folder / "deep");
  write_tar(a, {vector_sample("x", axis(1)), vector_sample("none", axis(0, 16, 0)),
                vector_sample("y", axis(2, 16, 3)), vector_sample("z", random_vectors(1, 1)[0])});
  write_vectors(b, "b", random_vectors(6, 2));
  write_tar(folder / "deep/b.caption.tar", {{"b0000", {{"txt", "words"}}}});
  const std::string path = folder / "index";
  const Built built = build(path, {a, b});
  CHECK(built.errors == 0);
  CHECK(built.warnings.empty());
  CHECK(built.record == index_record(path, 9, 2, 2, 0));
  CHECK(built.total == 10);
  CHECK(built.done == 10);
  const VectorIndex index(path);
  CHECK(is_index_file(path));
  CHECK_FALSE(is_index_file(a));
  CHECK(index.model().kind == VectorKind::video);
  CHECK(index.model().encoder == made_encoder());
  CHECK(index.model().dim == 16);
  CHECK(index.model().lists == 2);
  CHECK(index.model().trained == 10);
  CHECK(check_entries(index) == 9);
  REQUIRE(index.shards().size() == 2);
  const IndexedShard& second = index.shards()[1];
  CHECK(second.path == b);
  CHECK(second.tar == b);
  CHECK(second.columns == Json{{"clip", b}, {"caption", folder / "deep/b.caption.tar"}});
  CHECK(second.files == std::vector<IndexedFile>{file_state(b)});
  CHECK(second.record().json == Json{{"kind", "shard"}, {"path", b}, {"columns", second.columns}});
  const std::string bytes = io::read_file(path);
  CHECK(bytes.find("deep/b.caption.tar") != bytes.npos);  // named from its own folder
  CHECK(bytes.find(folder.path) == bytes.npos);
  build(folder / "again", {a, b}, false, VectorKind::video, 3);
  CHECK(io::read_file(folder / "again") == bytes);
  // One of the columns is named twice.
  CHECK(build(folder / "twice", {a, b, folder / "deep/../a.tar"}).record["shards"] == 2);
}

TEST_CASE(
    "vectors in a column are indexed there, and the shard's own tar counts while it is there") {
  if (faiss_version().empty()) return;
  const TemporaryFolder folder;
  const std::string a = folder / "a.tar", embed = folder / "a.embed.tar", path = folder / "index";
  write_tar(a, {{"a0000", {{"txt", "x"}}}, {"a0001", {{"txt", "y"}}}});
  write_vectors(embed, "a", random_vectors(2, 1));
  build(path, {a});
  const IndexedShard shard = VectorIndex(path).shards().at(0);
  CHECK(shard.path == a);
  CHECK(shard.tar == embed);
  CHECK(shard.files == std::vector<IndexedFile>{file_state(embed), file_state(a)});
  CHECK(shard.changed().empty());
  folder.write("a.tar", "other");
  CHECK(shard.changed() == "'" + a + "' has changed");
  std::filesystem::remove(a);
  CHECK(shard.changed() == "'" + a + "' is not there any more");
  CHECK(file_state(a) == IndexedFile{a, -1, 0});
  folder.write("in.jsonl",
               dump_json({{"kind", "shard"}, {"path", a}, {"columns", {{"embed", embed}}}}) + "\n");
  CHECK(build(path, {folder / "in.jsonl"}).record["added"] == 1);
  CHECK(VectorIndex(path).shards().at(0).files == std::vector<IndexedFile>{file_state(embed)});
}

TEST_CASE("shards are added to an index, changed ones anew, and missing ones leave it") {
  if (faiss_version().empty()) return;
  const TemporaryFolder folder;
  const std::string path = folder / "index";
  const auto tar = [&](const std::string& name) { return folder / (name + ".tar"); };
  for (const char* name : {"a", "b", "c"})
    write_vectors(tar(name), name, random_vectors(20, static_cast<std::uint32_t>(name[0])));
  build(path, {tar("a"), tar("b")});
  const Built more = build(path, {tar("a"), tar("c")});
  CHECK(more.record == index_record(path, 60, 3, 1, 0));
  CHECK(more.total == 20);
  CHECK(check_entries(VectorIndex(path)) == 60);
  CHECK(VectorIndex(path).model().trained == 40);
  // Nothing is to do: the file stays.
  const auto written = std::filesystem::last_write_time(path);
  const Built same = build(path, {tar("b"), tar("c")});
  CHECK(same.record["added"] == 0);
  CHECK(same.record["vectors"] == 60);
  CHECK(std::filesystem::last_write_time(path) == written);
  // One changes, one goes away, unasked.
  write_vectors(tar("b"), "b", random_vectors(7, 9));
  std::filesystem::remove(tar("c"));
  const Built changed = build(path, {tar("b")});
  CHECK(changed.errors == 0);
  CHECK(changed.warnings ==
        tar("c") + ": '" + tar("c") + "' is not there any more; it is taken out of the index\n");
  CHECK(changed.record == index_record(path, 27, 2, 1, 1));
  const VectorIndex index(path);
  CHECK(check_entries(index) == 27);
  CHECK(index.shards()[1].path == tar("b"));
  // One that changed and cannot be read any more leaves the index, and is counted.
  folder.write("b.tar", "no tar");
  const Built broken = build(path, {tar("b")});
  CHECK(broken.errors == 1);
  CHECK_THAT(broken.warnings, Catch::Contains("'" + tar("b") + "'") && !Catch::Contains("''"));
  CHECK(broken.record["dropped"] == 1);
  CHECK(broken.record["vectors"] == 20);
  CHECK(check_entries(VectorIndex(path)) == 20);
  // The last one may not.
  folder.write("a.tar", "no tar");
  CHECK_THAT(message_of([&] { build(path, {tar("a")}); }),
             Catch::EndsWith("none of the shards could be indexed"));
  CHECK(VectorIndex(path).entries() == 20);
}

TEST_CASE("an index that has outgrown what it was made for is told, and force makes another") {
  if (faiss_version().empty()) return;
  const TemporaryFolder folder;
  const std::string path = folder / "index", a = folder / "a.tar", b = folder / "b.tar";
  write_vectors(a, "a", random_vectors(2, 1));
  write_vectors(b, "b", random_vectors(30, 2));
  build(path, {a});
  CHECK(build(path, {b}).warnings.empty());
  write_vectors(b, "b", random_vectors(31, 2));
  CHECK(build(path, {b}).warnings == "'" + path +
                                         "' was made for 2 vectors and has 33 now: "
                                         "--force makes a faster one\n");
  CHECK(build(path, {a, b}, true).warnings.empty());
  CHECK(VectorIndex(path).model().trained == 33);
  CHECK(check_entries(VectorIndex(path)) == 33);
}

TEST_CASE("vectors that an index does not take are told, and the others are in it") {
  if (faiss_version().empty()) return;
  const TemporaryFolder folder;
  const std::string path = folder / "index", a = folder / "a.tar", b = folder / "b.tar",
                    c = folder / "c.tar";
  const Json other = {{"name", "other"}};
  Json moved = made_encoder();
  moved["path"] = "there";
  write_tar(a, {vector_sample("first", axis(1)),
                vector_sample("moved", axis(2), {{"video_encoder", moved}}),
                vector_sample("other", axis(3), {{"video_encoder", other}}),
                vector_sample("short", axis(1, 8)),
                vector_sample("wild", Vector(16, INFINITY)),
                {"table", {{"json", "{}"}, {"video.npy", io::make_npy_half({4, 4}, axis(1))}}},
                vector_sample("last", axis(4))});
  write_tar(b, {vector_sample("zeros", axis(0, 16, 0))});
  write_tar(c, {{"k", {{"json", "{}"}}}});
  const Built built = build(path, {a, b, c, folder / "gone.tar"});
  CHECK(built.errors == 5);
  CHECK(built.record["vectors"] == 3);
  CHECK(built.record["added"] == 1);
  CHECK_THAT(built.warnings, Catch::Contains(a +
                                             ": 1 samples are not in the index: table.video.npy "
                                             "of '" +
                                             a +
                                             "' is not one vector in half "
                                             "precision: an index takes one a sample\n"));
  CHECK_THAT(built.warnings, Catch::Contains(a + ": 1 samples were embedded by " +
                                             dump_json(other) + ", the index is of " +
                                             dump_json(made_encoder()) + ": index them apart\n"));
  CHECK_THAT(built.warnings, Catch::Contains(b + ": all of its video vectors are zero\n"));
  CHECK_THAT(built.warnings,
             Catch::Contains(c + ": has no video vectors; run vfm-embed on it first\n"));
  CHECK_THAT(built.warnings, Catch::Contains(folder / "gone.tar"));
  const VectorIndex index(path);
  std::vector<bool> has;
  for (const std::uint64_t at : index.positions(0))
    has.push_back(at != 0);
  CHECK(has == std::vector<bool>{true, true, false, false, false, false, true});
  CHECK(index.entries() == 3);
}

TEST_CASE("a tar that is damaged is indexed up to there") {
  if (faiss_version().empty()) return;
  const TemporaryFolder folder;
  const std::string a = folder / "a.tar";
  write_vectors(a, "a", random_vectors(4, 1));
  const std::string bytes = io::read_file(a);
  folder.write("a.tar", bytes.substr(0, bytes.size() / 2 + 100));
  const Built built = build(folder / "index", {a});
  CHECK(built.errors == 1);
  CHECK_THAT(built.warnings, Catch::Contains("; what comes before is in the index\n"));
  const VectorIndex index(folder / "index");
  CHECK(index.shards()[0].rows == 2);
  CHECK(index.entries() == 2);
}

TEST_CASE("what cannot be indexed at all makes no index") {
  if (faiss_version().empty()) return;
  const TemporaryFolder folder;
  const std::string path = folder / "index", a = folder / "a.tar";
  const auto refused = [&](const std::vector<std::string>& inputs,
                           VectorKind kind = VectorKind::video) {
    const std::string why = message_of([&] { build(path, inputs, false, kind); });
    CHECK_FALSE(io::file_exists(path));
    return why;
  };
  write_tar(a, {vector_sample("zeros", axis(0, 16, 0))});
  CHECK(refused({a}) == "all vectors are zero; there is nothing to index");
  CHECK(refused({a}, VectorKind::text) ==
        "there are no text vectors to index; run vfm-embed on the shards first");
  write_tar(a, {vector_sample("wide", axis(0, 65537))});
  CHECK(refused({a}) ==
        "there are no video vectors to index: a vector has 65537 numbers, an index "
        "takes 65536");
  write_tar(a, {{"k", {{"video.npy", "none"}}}});
  CHECK_THAT(refused({a}), Catch::StartsWith("there are no video vectors to index: "));
  write_tar(a, {{"k",
                 {{"json", R"({"text_encoder":{"name":"builtin:hash"}})"},
                  {"text.npy", io::make_npy_half({2, 8}, axis(1))}}}});
  const std::string words =
      " are words by builtin:hash; an index takes one vector a sample: embed "
      "with --text DIR (a sentence encoder)";
  CHECK(refused({a}, VectorKind::text) ==
        "there are no text vectors to index: k.text.npy of '" + a + "'" + words);
  write_tar(a, {{"k",
                 {{"json", R"({"text_encoder":{"name":"builtin:hash"}})"},
                  {"text.npy", io::make_npy_half({1, 8}, axis(1, 8))}}}});
  CHECK(refused({a}, VectorKind::text) == "the captions" + words);
  folder.write("in.jsonl", "{\"kind\":\"video\",\"path\":\"v.mp4\"}\n");
  CHECK_THAT(refused({folder / "in.jsonl"}),
             Catch::Contains("is a 'video', not a shard") &&
                 Catch::EndsWith("the input has no shard to index; name shards that vfm-embed has "
                                 "embedded"));
  write_vectors(a, "a", random_vectors(3, 1));
  build(path, {a});
  CHECK_THAT(message_of([&] { build(path, {a}, false, VectorKind::text); }),
             Catch::Contains("is an index of video vectors; add to it with --vectors video"));
  const std::string b = folder / "b";
  folder.write("b", "no index, but longer than the head of one, which has 64 bytes in all");
  for (const bool force : {false, true}) {
    CHECK_THAT(message_of([&] { build(b, {a}, force); }),
               Catch::Contains("'" + b + "' is not an index of vfm-embed"));
    CHECK(io::read_file(b).starts_with("no index"));
  }
}

TEST_CASE("captions by a sentence encoder have an index of their own") {
  if (faiss_version().empty()) return;
  const TemporaryFolder folder;
  const std::string path = folder / "index", a = folder / "a.tar";
  const Json encoder = {{"name", "sentence:made"}, {"path", "x"}, {"hash", "1a"}, {"dim", 8}};
  const auto sample = [&](const std::string& key, std::size_t number, const Json& facts) {
    return shard::Sample{
        key,
        {{"json", dump_json(facts)}, {"text.npy", io::make_npy_half({1, 8}, axis(number, 8))}}};
  };
  write_tar(a, {sample("k", 1, {{"text_encoder", encoder}}), sample("l", 2, Json::object()),
                sample("m", 3, {{"text_encoder", encoder}})});
  const Built built = build(path, {a}, false, VectorKind::text);
  CHECK(built.errors == 1);
  CHECK(built.warnings == a + ": 1 samples are not in the index: l.text.npy of '" + a +
                              "': its json has no 'text_encoder'\n");
  const VectorIndex index(path);
  CHECK(index.model().kind == VectorKind::text);
  CHECK(index.model().encoder == encoder);
  CHECK(index.entries() == 2);
}

TEST_CASE("an index that is damaged is told, whatever is damaged") {
  if (faiss_version().empty()) return;
  const TemporaryFolder folder;
  const std::string path = folder / "index", bad = folder / "bad", a = folder / "a.tar";
  write_vectors(a, "a", random_vectors(30, 1));
  build(path, {a});
  const std::string bytes = io::read_file(path);
  const auto open_all = [&](const std::string& changed) {
    folder.write("bad", changed);
    return message_of([&] {
      const VectorIndex index(bad);
      for (std::size_t list = 0; list < index.model().lists; ++list)
        index.list(list);
      index.positions(0);
    });
  };
  const IndexModel model = VectorIndex(path).model();
  const IndexLayout at(model, 30, 30);
  CHECK(at.rows == 64);
  CHECK(at.lists == 64 + 30 * 8);
  CHECK(at.centres == at.lists + model.lists * 24);
  CHECK(at.words == at.centres + model.lists * 16 * 4);
  CHECK(at.entries == at.words + 256 * 16 * 4);
  CHECK(at.codes == at.entries + 30 * 4);
  CHECK(at.end == at.codes + 30 * 2);
  const std::string again = " is not as it was written; make it again with --force";
  const auto damaged_at = [&](std::uint64_t place) {
    std::string changed = bytes;
    changed[place] = static_cast<char>(changed[place] ^ 0x40);
    return open_all(changed);
  };
  CHECK(damaged_at(0) == "'" + bad + "' is not an index of vfm-embed");
  CHECK_THAT(damaged_at(8), Catch::Contains("is an index of version 65, and this program reads 1"));
  for (const std::uint64_t place : {16, 24, 32, 48, 63})
    CHECK(damaged_at(place) == "'" + bad + "' is damaged: its header" + again);
  CHECK(damaged_at(at.rows) == "'" + bad + "' is damaged: where vectors stand" + again);
  CHECK(damaged_at(at.lists - 1) == "'" + bad + "' is damaged: where vectors stand" + again);
  for (const std::uint64_t place : {at.lists, at.centres, at.words, at.entries - 1})
    CHECK(damaged_at(place) ==
          "'" + bad + "' is not as vfm-embed writes an index: its lists are damaged");
  CHECK(damaged_at(at.entries) == "'" + bad + "' is damaged: a list" + again);
  CHECK(damaged_at(at.end - 1) == "'" + bad + "' is damaged: a list" + again);
  CHECK(damaged_at(at.end) == "'" + bad + "' is damaged: what it says of itself" + again);
  CHECK(open_all(bytes.substr(0, 63)) == "'" + bad + "' is not an index of vfm-embed");
  CHECK(open_all(bytes.substr(0, 64)) == "'" + bad + "' is damaged: its size" + again);
  CHECK(open_all(bytes + " ") == "'" + bad + "' is damaged: its size" + again);
  CHECK(open_all(bytes) == "nothing was refused");
  // A damaged index is not added to, but made anew on demand.
  folder.write("bad", bytes.substr(0, bytes.size() - 1));
  CHECK_THAT(message_of([&] { build(bad, {a}); }), Catch::Contains("is damaged: its size"));
  build(bad, {a}, true);
  CHECK(io::read_file(bad) == bytes);
  CHECK_THROWS_AS(VectorIndex(folder / "gone"), Error);
}

TEST_CASE("facts of an index that cannot be are told, though their hashes are right") {
  if (faiss_version().empty()) return;
  const TemporaryFolder folder;
  const std::string path = folder / "index", bad = folder / "bad", a = folder / "a.tar";
  write_vectors(a, "a", random_vectors(30, 1));
  build(path, {a});
  const std::string bytes = io::read_file(path);
  IndexHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  const Json facts = parse_json(bytes.substr(header.facts_at), "it");
  CHECK(facts["rows"] == 30);
  CHECK(facts["shards"][0]["path"] == "a.tar");
  const auto with = [&](const std::function<void(Json&)>& change) {
    Json other = facts;
    change(other);
    const std::string said = dump_json(other);
    IndexHeader head = header;
    head.facts_bytes = said.size();
    head.facts_hash = index_hash({said});
    const std::string_view begin(reinterpret_cast<const char*>(&head), sizeof head);
    head.header_hash = index_hash({begin.substr(0, sizeof head - 16)});
    std::string changed = bytes.substr(0, header.facts_at) + said;
    std::memcpy(changed.data(), &head, sizeof head);
    folder.write("bad", changed);
    const std::string why = message_of([&] { VectorIndex index(bad); });
    const std::string begins = "'" + bad + "' is not as vfm-embed writes an index: ";
    return why.starts_with(begins) ? why.substr(begins.size()) : why;
  };
  CHECK(with([](Json&) {}) == "nothing was refused");
  CHECK(with([](Json& f) { f["vectors"] = "sound"; }) == "'vectors' is 'sound'");
  CHECK(with([](Json& f) { f["vectors"] = "text"; }) == "nothing was refused");
  CHECK(with([](Json& f) { f["dim"] = 65537; }) == "'dim' is 65537");
  CHECK(with([](Json& f) { f["lists"] = -1; }) == "'lists' is -1");
  CHECK(with([](Json& f) { f["lists"] = 65537; }) == "'lists' is 65537");
  const std::string sizes = "its parts do not have the size that they should";
  CHECK(with([](Json& f) { f["dim"] = 0; }) == sizes);
  CHECK(with([](Json& f) { f["lists"] = 0; }) == sizes);
  CHECK(with([](Json& f) { f["rows"] = 31; }) == sizes);
  CHECK(with([](Json& f) { f["trained"] = (std::int64_t{1} << 32) + 1; }) ==
        "'trained' is 4294967297");
  CHECK(with([](Json& f) { f["trained"] = std::int64_t{1} << 32; }) == "nothing was refused");
  CHECK(with([](Json& f) { f["model_xxh3"] = "0"; }) == "its lists are damaged");
  const std::string numbers = "its numbers do not fit each other";
  CHECK(with([](Json& f) { f["shards"][0]["rows"] = 29; }) == numbers);
  CHECK(with([](Json& f) { f["shards"][0]["rows"] = 31; }) == numbers);
  CHECK(with([](Json& f) { f["shards"] = Json::array(); }) == numbers);
  CHECK(with([](Json& f) { f["shards"][0]["columns"]["clip"] = 7; }) == "column 'clip' is no path");
  CHECK_THAT(with([](Json& f) { f["shards"][0]["files"][0].erase("mtime"); }),
             Catch::Contains("mtime"));
  CHECK_THAT(with([](Json& f) { f.erase("encoder"); }), Catch::Contains("encoder"));
}

TEST_CASE("an index is learned from some of very many vectors, at even distances") {
  if (faiss_version().empty()) return;
  const TemporaryFolder folder;
  const std::string a = folder / "a.tar", b = folder / "b.tar";
  write_vectors(a, "a", random_vectors(1100, 1, 8));
  write_vectors(b, "b", random_vectors(100, 2, 8));
  Run run;
  const HeardLog lines(LogLevel::info);
  IndexOptions options;
  options.path = folder / "index";
  options.inputs = {a, b};
  CHECK(build_index(options, run.slots, run, run.manifest) == 0);
  CHECK_THAT(lines.text(), Catch::Contains("23 lists are made of 1104 vectors\n"));
  const VectorIndex index(folder / "index");
  CHECK(index.model().trained == 1200);
  CHECK(check_entries(index) == 1200);
}
