// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "base/error.h"
#include "base/json.h"
#include "base/philox.h"
#include "data/index_file.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::data;
using Catch::Contains;

namespace {

const Json kInfo = {{"version", 1}, {"channels", 2}};

/// Of four shards, the second of which lacks every third row; some have no hash.
std::vector<Entry> made_up(std::size_t count) {
  const Random random(5, Purpose::test);
  std::vector<Entry> entries;
  std::int64_t row = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Entry& entry = entries.emplace_back();
    const std::size_t shard = i * 4 / count;
    if (i > 0 && fmt::format("s-{}.tar", shard) != entries[i - 1].shard) row = 0;
    entry.key = fmt::format("key-{}", random.bits(8 * i));
    entry.shard = fmt::format("s-{}.tar", shard);
    if (shard == 1 && row % 3 == 1) ++row;
    entry.row = row++;
    entry.frames = 1 + static_cast<int>(random.bits(8 * i + 1) % 4);
    entry.height = 2 + 2 * static_cast<int>(random.bits(8 * i + 2) % 3);
    entry.width = 4;
    entry.fps = entry.frames == 1 ? 0 : 23.976;
    entry.text_tokens = static_cast<int>(random.bits(8 * i + 3) % 1000);
    if (i % 7 != 0) entry.xxh3 = fmt::format("{:016x}", random.bits(8 * i + 4));
  }
  return entries;
}

std::string lines_of(const std::vector<Entry>& entries) {
  std::string lines;
  for (const Entry& entry : entries)
    lines += dump_json(to_json(entry)) + "\n";
  return lines;
}

/// A list, and the index that is made of it.
struct Indexed {
  TemporaryFolder folder;
  std::vector<Entry> entries;
  std::string list = folder / "index.jsonl", path = folder / "index.bin";

  explicit Indexed(std::size_t count) : entries(made_up(count)) {
    io::write_file(list, lines_of(entries));
    make();
  }
  void make() const {
    io::AtomicFile file(path);
    make_index(list, file, kInfo);
    file.commit();
  }
  std::string error(const Json& info = kInfo) const {
    try {
      map_index(path, list, info);
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  }
  void change(std::uint64_t at, const std::function<char(char)>& how) const {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const char old = static_cast<char>(file.get());
    file.seekp(static_cast<std::streamoff>(at));
    file.put(how(old));
  }
};

}  // namespace

TEST_CASE("an index file says of each sample, and of all, what the list says") {
  const Indexed indexed(1000);
  const auto file = map_index(indexed.path, indexed.list, kInfo);
  const auto list = list_index(indexed.entries);
  REQUIRE(file->size() == 1000);
  REQUIRE(file->forms().size() == list->forms().size());
  std::uint64_t samples = 0;
  for (std::size_t k = 0; k < list->forms().size(); ++k) {
    const Form &a = file->forms()[k], &b = list->forms()[k];
    CHECK(std::tie(a.frames, a.height, a.width, a.fps, a.count, a.first) ==
          std::tie(b.frames, b.height, b.width, b.fps, b.count, b.first));
    if (k > 0) CHECK(list->forms()[k - 1].first < a.first);
    samples += a.count;
  }
  CHECK(samples == 1000);
  for (std::size_t i = 0; i < 1000; ++i) {
    const Entry &entry = indexed.entries[i], read = file->entry(i), sizes = file->sizes(i);
    CHECK(to_json(read) == to_json(entry));
    for (const SampleIndex* index : {file.get(), list.get()}) {
      const SamplePlace place = index->place(i);
      CHECK(index->shard_name(place.shard) == entry.shard);
      CHECK(place.row == entry.row);
      CHECK(index->text_tokens(i) == entry.text_tokens);
      CHECK(index->form_of(i) == list->form_of(i));
      CHECK(index->has_hash(i) == !entry.xxh3.empty());
      CHECK(index->check(i) == entry_check(entry.key, entry.xxh3));
      CHECK(index->name(i) == entry.key);
    }
    CHECK(std::tie(sizes.shard, sizes.row, sizes.frames, sizes.height, sizes.width, sizes.fps) ==
          std::tie(entry.shard, entry.row, entry.frames, entry.height, entry.width, entry.fps));
  }
  CHECK(file->keys() == list->keys());
  CHECK(file->fingerprint(kInfo) == list->fingerprint(kInfo));
  // As runs know data since the first version.
  Hasher hasher;
  hasher.update(dump_json(kInfo));
  for (const Entry& e : indexed.entries)
    hasher.update(fmt::format("\n{} {} {} {} {} {}", e.key, e.frames, e.height, e.width, e.fps,
                              e.text_tokens));
  CHECK(file->fingerprint(kInfo) == hasher.hex128());
  CHECK_THROWS_AS(file->form_of(1000), Error);
  // 15 1/8 bytes a sample, the header, and tables that do not grow with samples.
  CHECK(io::File::open_read(indexed.path).size() <
        4096 + 15 * 1000 + 1000 / 8 + 40 * 12 + 24 * 150);
}

TEST_CASE("an index file that is damaged, or of something else, is not taken") {
  const Indexed indexed(200);
  const std::string good = io::read_file(indexed.path), list = io::read_file(indexed.list);
  CHECK(indexed.error() == "none");
  CHECK_THAT(indexed.error({{"version", 1}, {"channels", 3}}), Contains("another latents.json"));
  const LatentIndexLayout layout = [&] {
    LatentIndexHeader header;
    std::copy_n(good.data(), sizeof header, reinterpret_cast<char*>(&header));
    return LatentIndexLayout(header);
  }();
  const auto inverted = [](char c) { return static_cast<char>(~c); };
  for (const std::uint64_t at : {std::uint64_t{0}, std::uint64_t{8}, std::uint64_t{24},
                                 std::uint64_t{40}, layout.form_table + 3, layout.runs + 16,
                                 layout.name_ends, layout.names + 1, layout.end - 1}) {
    INFO(at);
    indexed.change(at, inverted);
    CHECK(indexed.error() != "none");
    indexed.change(at, inverted);
  }
  CHECK(indexed.error() == "none");
  for (const std::size_t size : {std::size_t{0}, std::size_t{100}, good.size() - 1}) {
    io::write_file(indexed.path, good.substr(0, size));
    CHECK(indexed.error() != "none");
  }
  io::write_file(indexed.path, good);
  // Other lines of as many bytes.
  std::string other = list;
  other[other.find("key-") + 5] ^= 1;
  io::write_file(indexed.list, other);
  CHECK_THAT(indexed.error(), Contains("was made from another"));
  io::write_file(indexed.list, list);
  // What no hash covers is found where it is used.
  indexed.change(layout.checks + 8 * 17, inverted);
  const auto index = map_index(indexed.path, indexed.list, kInfo);
  CHECK_THROWS_WITH(index->entry(17), Contains("is damaged") && Contains("line 18"));
  CHECK(index->entry(18).key == indexed.entries[18].key);
  CHECK_THAT(index->name(17), Contains("of s-0.tar"));
  indexed.change(layout.checks + 8 * 17, inverted);
  for (const std::uint64_t at : {layout.forms + 4 * 20, layout.texts + 3 * 20}) {
    indexed.change(at, [](char c) { return static_cast<char>(c ^ 1); });
    const auto changed = map_index(indexed.path, indexed.list, kInfo);
    CHECK_THROWS_WITH(changed->entry(20), Contains("is damaged") && Contains("line 21"));
    indexed.change(at, [](char c) { return static_cast<char>(c ^ 1); });
  }
}

TEST_CASE("of few samples the list is read, of many an index file is made once", "[long]") {
  const Indexed few(100);
  std::filesystem::remove(few.path);
  CHECK(open_index(few.folder.path, kInfo)->entry(99).key == few.entries[99].key);
  CHECK(!io::file_exists(few.path));
  // One that does not fit is not used.
  few.make();
  io::write_file(few.list, lines_of(made_up(90)));
  CHECK(open_index(few.folder.path, kInfo)->size() == 90);

  const TemporaryFolder many;
  std::string lines = lines_of(made_up(4000));
  while (lines.size() < std::size_t{17} << 20)
    lines += lines;
  io::write_file(many / "index.jsonl", lines);
  const auto count = static_cast<std::size_t>(std::ranges::count(lines, '\n'));
  std::vector<std::thread> threads;
  std::vector<std::unique_ptr<SampleIndex>> found(3);
  for (auto& index : found)
    threads.emplace_back([&] { index = open_index(many.path, kInfo); });
  for (std::thread& thread : threads)
    thread.join();
  for (const auto& index : found) {
    REQUIRE(index->size() == count);
    CHECK(index->entry(count - 1).key == index->entry(3999).key);
  }
  const auto written = std::filesystem::last_write_time(many / "index.bin");
  open_index(many.path, kInfo);
  CHECK(std::filesystem::last_write_time(many / "index.bin") == written);
  std::filesystem::resize_file(many / "index.bin", 5000);
  CHECK(open_index(many.path, kInfo)->size() == count);
  CHECK(io::File::open_read(many / "index.bin").size() > 5000);
  CHECK(!io::file_exists(many / ".index.bin.tmp"));
}
