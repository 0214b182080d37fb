// Makes a folder of latents in which vfm-pack finds all shards finished: what it keeps of very many
// samples can be watched without the days that encoding them takes. Shards are hollow, as vfm-pack
// reads nothing of a finished one but its size; their notes and indexes are whole.
// Usage: many_packed DIR COUNT [IN_SHARD]; DIR/first is a folder that vfm-pack wrote with the same
// options. Then: vfm-pack OPTIONS -o DIR/out DIR/shards.jsonl
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "io/file.h"
#include "pack/notes.h"
#include "support/many_samples.h"

namespace {

namespace fs = std::filesystem;
using namespace vfm;

constexpr std::uint64_t kMember = 1024, kSample = 3 * kMember;  // a header, and a block of data

void write(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  if (!out.write(text.data(), static_cast<std::streamsize>(text.size())).flush())
    fail("cannot write '{}'", path);
}

/// A file of so many bytes without any, under as many names as one may have.
class Hollow {
 public:
  void make(const std::string& path, std::uint64_t bytes) {
    if (bytes_ != bytes || names_ == 30'000) {
      write(path, "");
      fs::resize_file(path, bytes);
      latest_ = path, bytes_ = bytes, names_ = 0;
    } else {
      fs::create_hard_link(latest_, path);
    }
    ++names_;
  }

 private:
  std::string latest_;
  std::uint64_t bytes_ = 0;
  int names_ = 0;
};

/// The `i`th of 2^64 keys in no order.
std::string key_of(std::uint64_t i) {
  i = (i ^ i >> 31) * 0x9E3779B97F4A7C15;
  return fmt::format("{:016x}", (i ^ i >> 29) * 0xBF58476D1CE4E5B9);
}

void write_indexes(const std::string& stem, const std::vector<data::Entry>& entries) {
  std::string energon, dali = fmt::format("v1.2 {}\n", entries.size());
  for (std::uint64_t row = 0; row <= entries.size(); ++row) {
    const std::uint64_t offset = row * kSample;
    energon.append(reinterpret_cast<const char*>(&offset), sizeof offset);
    if (row == entries.size()) break;
    const std::string& key = entries[row].key;
    dali += fmt::format(
        "latent.npy {} 512 {}.latent.npy text.npy {} 512 {}.text.npy json {} 512 {}.json\n",
        offset + 512, key, offset + kMember + 512, key, offset + 2 * kMember + 512, key);
  }
  write(stem + ".tar.idx", energon);
  write(stem + ".idx", dali);
}

void make(const std::string& directory, std::uint64_t samples, std::uint64_t in_shard) {
  const std::string train = directory + "/out/train";
  fs::create_directories(train);
  fs::create_directories(directory + "/in");
  fs::copy_file(directory + "/first/pack.json", directory + "/out/pack.json");
  const Json settings = parse_json(io::read_file(directory + "/first/pack.json"), "pack.json");
  const Json info = parse_json(io::read_file(directory + "/first/latents.json"), "latents.json");
  const auto channels = need_integer(info, "channels", "latents.json");
  const std::string hash(32, '0');
  std::ofstream list(directory + "/shards.jsonl");
  Hollow in, out;
  for (std::uint64_t begin = 0, shard = 0; begin < samples; begin += in_shard, ++shard) {
    const std::string name = fmt::format("m-{:06}", shard);
    const std::string input = directory + "/in/" + name + ".tar";
    const std::uint64_t count = std::min(in_shard, samples - begin), bytes = count * kSample + 1024;
    in.make(input, bytes);
    out.make(train + "/" + name + ".tar", bytes);
    pack::ShardNotes notes;
    for (std::uint64_t row = 0; row < count; ++row) {
      data::Entry& entry = notes.entries.emplace_back(made_up_entry(row));
      entry.key = key_of(begin + row);
      entry.shard = name + ".tar";
      entry.xxh3 = entry.key;
      if (entry.text_tokens == 0) ++notes.without_text;
    }
    notes.input = input;
    notes.made_from = Json{{"settings", settings},
                       {"split", "train"},
                       {"sources", Json::array({{{"bytes", bytes}, {"xxh3", hash}}})}};
    notes.splits = {"train"};
    notes.record = Json{{"kind", "shard"}, {"samples", count}, {"bytes", bytes}, {"xxh3", hash}};
    notes.sums.count = static_cast<double>(count);
    notes.sums.sum.assign(static_cast<std::size_t>(channels), 0.5 * notes.sums.count);
    notes.sums.squares.assign(static_cast<std::size_t>(channels), notes.sums.count);
    notes.text_encoder = Json{{"name", "builtin:hash"}, {"dim", 8}};
    write(train + "/" + name + ".json", pack::notes_text(notes));
    write_indexes(train + "/" + name, notes.entries);
    list << dump_json({{"kind", "shard"},
                       {"path", input},
                       {"split", "train"},
                       {"samples", count},
                       {"bytes", bytes},
                       {"xxh3", hash}})
         << "\n";
  }
  if (!list.flush()) fail("cannot write '{}/shards.jsonl'", directory);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  make(argv[1], std::strtoull(argv[2], nullptr, 10),
       argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 10'000);
  return 0;
}
