// A folder of latents of as many samples as are asked for: its index is whole, its index.jsonl is
// whole or hollow (of the right size, without a line), and all its shards are one tar under many
// names.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "data/index_file.h"
#include "io/atomic_file.h"
#include "io/npy.h"
#include "shard/sample.h"
#include "shard/writer.h"

namespace vfm {

struct ManySamples {
  std::uint64_t samples = 0;
  std::uint64_t in_shard = 50'000;  ///< of each but the last
  std::uint64_t links = 30'000;     ///< names that a file may have; then it is copied
  bool shards = false;              ///< else there are none
  bool lines = false;               ///< index.jsonl has them
};

/// Half images, half videos of 2 to 16 latent frames, of five shapes: of the `row`th of a shard.
inline data::Entry made_up_entry(std::uint64_t row) {
  static constexpr int kShapes[5][2] = {{4, 4}, {2, 8}, {8, 2}, {4, 6}, {6, 4}};
  const std::uint64_t chance = (row + 1) * 0x9E3779B97F4A7C15;
  data::Entry entry;
  entry.row = static_cast<std::int64_t>(row);
  entry.height = kShapes[(chance >> 20) % 5][0];
  entry.width = kShapes[(chance >> 20) % 5][1];
  entry.frames = (chance >> 40) % 2 == 0 ? 1 : 2 + static_cast<int>((chance >> 44) % 15);
  entry.fps = entry.frames > 1 ? 24 : 0;
  entry.text_tokens = static_cast<int>((chance >> 52) % 4);
  return entry;
}

/// DIR/latents.json, and DIR/train.
inline void write_many(const std::string& directory, const ManySamples& many) {
  constexpr std::uint64_t kLine = 130;  // bytes of a line of index.jsonl
  constexpr int kChannels = 4, kWidth = 8;
  namespace fs = std::filesystem;
  const std::string train = directory + "/train";
  fs::create_directories(train);
  const Json info = {{"version", 1},
                     {"tokenizer", {{"name", "builtin:wavelet"}}},
                     {"text_encoder", {{"name", "builtin:hash"}, {"dim", kWidth}}},
                     {"channels", kChannels},
                     {"mean", std::vector<double>(kChannels, 0.0)},
                     {"std", std::vector<double>(kChannels, 1.0)}};
  io::write_file(directory + "/latents.json", dump_json_pretty(info));

  // What differs between the samples of one tar; the keys of all others are the same.
  std::vector<data::Entry> rows;
  for (std::uint64_t row = 0; row < std::min(many.in_shard, many.samples); ++row) {
    rows.push_back(made_up_entry(row));
    rows.back().key = fmt::format("sample-{:06}", row);
  }
  const auto name_of = [](std::uint64_t shard) { return fmt::format("m-{:06}.tar", shard); };
  const std::uint64_t count = (many.samples + many.in_shard - 1) / many.in_shard;
  const std::string first = train + "/" + name_of(0);
  if (many.shards) {
    shard::Writer writer(first);
    for (data::Entry& entry : rows) {
      const std::vector<float> latent(
          static_cast<std::size_t>(kChannels * entry.frames * entry.height * entry.width), 0.5f);
      const std::vector<float> text(static_cast<std::size_t>(entry.text_tokens * kWidth), 0.25f);
      const shard::Sample sample{
          entry.key,
          {{"latent.npy",
            io::make_npy_half({kChannels, entry.frames, entry.height, entry.width}, latent)},
           {"text.npy", io::make_npy_half({entry.text_tokens, kWidth}, text)},
           {"json", "{}"}}};
      entry.xxh3 = shard::hash_sample(sample);
      writer.add(sample);
    }
    writer.finish();
  }
  io::AtomicFile file(train + "/index.bin");
  data::IndexWriter writer(file, many.samples, info);
  std::string latest = first;  // that has names left
  std::string lines;
  for (std::uint64_t shard = 0; shard < count; ++shard) {
    const std::string name = name_of(shard), tar = train + "/" + name;
    if (many.shards && shard > 0) {
      if (shard % many.links == 0)
        fs::copy_file(first, tar), latest = tar;
      else
        fs::create_hard_link(latest, tar);
      fs::create_hard_link(first + ".idx", tar + ".idx");
    }
    const std::uint64_t begin = shard * many.in_shard;
    for (std::uint64_t i = begin; i < std::min(begin + many.in_shard, many.samples); ++i) {
      data::Entry& entry = rows[i - begin];
      if (i == begin || entry.shard != name) entry.shard = name;
      writer.add(entry, many.lines ? lines.size() : i * kLine);
      if (many.lines) lines += dump_json(to_json(entry)) + "\n";
    }
  }
  io::write_file(train + "/index.jsonl", lines);
  if (!many.lines) fs::resize_file(train + "/index.jsonl", kLine * many.samples);
  writer.finish(train + "/index.jsonl");
  file.commit();
}

}  // namespace vfm
