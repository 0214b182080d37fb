// Facts of very many samples, as a dataset of short clips has them, without their tars.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/hash.h"
#include "support/planned_samples.h"

namespace vfm::dataset {

/// Keys of 32 digits, sources named by hash and path, ten clips of each but for every tenth, which
/// is alone; every hundredth clip is a copy of another source's.
struct ManyRecords {
  std::uint32_t count = 1'000'000;

  std::uint32_t duplicates() const { return count / kCopies; }
  ShardOptions options() const {
    ShardOptions options;
    options.split = {{"train", 0.95}, {"val", 0.05}};
    return options;
  }
  void give(const std::function<void(Item)>& take) const {
    Item item = blank();
    for (std::uint32_t i = 0; i < count; ++i) {
      fill(item, i);
      take(item);
    }
  }
  /// Gives the samples of one line of the input, which names a shard of kInShard samples.
  void give_line(std::uint32_t line, const std::function<void(Item)>& take) const {
    Item item = blank();
    for (std::uint64_t i = std::uint64_t{line} * kInShard; i < count && i / kInShard == line; ++i) {
      fill(item, static_cast<std::uint32_t>(i));
      take(item);
    }
  }
  std::uint32_t lines() const {
    return static_cast<std::uint32_t>((std::uint64_t{count} + kInShard - 1) / kInShard);
  }

 private:
  static constexpr std::uint32_t kCopies = 100, kInShard = 1000;

  static Item blank() {
    Item item;
    item.shape.media = "mp4";
    item.shape.extras = " txt text.npy video.npy";
    item.columns.resize(3);
    return item;
  }
  static void fill(Item& item, std::uint32_t i) {
    const std::uint32_t source = i / 10;
    item.key = hash_hex("key " + std::to_string(i));
    item.source = hash_hex("source " + std::to_string(source));
    item.path = "/data/videos/part-" + std::to_string(source % 1000) + "/" +
                item.source.substr(0, 12) + ".mp4";
    // The copy of the one fifty before it, which is of another source.
    const std::uint32_t content = i % kCopies == kCopies - 1 ? i - kCopies / 2 : i;
    item.content = hash_hex("content " + std::to_string(content));
    item.identity = hash_hex("identity " + std::to_string(i));
    item.width = i % 3 == 0 ? 1920 : 1280, item.height = i % 3 == 0 ? 1080 : 720;
    item.frames = 48 + i % 200, item.fps = 29.97, item.seconds = item.frames / item.fps;
    item.media_bytes = 500'000 + i % 100'000;
    item.tar_bytes = item.media_bytes / 512 * 512 + 20 * 512;
    item.json_bytes = 900 + i % 100;
    const std::uint32_t row = i % kInShard;
    for (std::size_t c = 0; c < item.columns.size(); ++c)
      item.columns[c] = {row, std::uint64_t{row} * 600'064 / (1 + 100 * c) / 512 * 512,
                         c == 0 ? item.tar_bytes : 2048};
  }
};

}  // namespace vfm::dataset
