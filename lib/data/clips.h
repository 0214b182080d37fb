// The clips of a dataset that vfm-shard wrote, as training on pixels reads them.
//
// Listing them reads only the shards' indexes and decodes nothing. Thread-safety: read() from any
// thread; free functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "data/clip_pixels.h"
#include "data/entry.h"
#include "data/sample_text.h"
#include "io/manifest.h"

namespace vfm::shard {
struct Sample;
}

namespace vfm::data {

struct StoredClip {
  std::string key;
  std::size_t shard = 0;   ///< number of the shard, in the order of the dataset's plan
  std::int64_t row = 0;    ///< row of the sample in its shard
  std::int64_t bytes = 0;  ///< bytes that the sample takes in its shard
  bool still = false;      ///< a picture, by its name; else it is taken for a video
  // Set if ClipListing::facts was:
  ClipFacts facts;
  /// Bytes of the largest text in the columns; 0: none.
  std::int64_t embedding_bytes = 0, caption_bytes = 0;
};

/// Facts of clips that a ClipSet collects beside key and place.
struct ClipListing {
  bool facts = false;  ///< sizes, by the dataset's index (shard/media_index.h), and texts
  TextColumns texts;
};

/// A clip as training on latents takes it.
struct TextedClip {
  ClipPixels pixels;
  SampleText text;
};

class ClipSet {
 public:
  /// `split` is "train" or "val". Throws Error{usage} if `directory` is not a finished dataset.
  ClipSet(const std::string& directory, const std::string& split, const ClipListing& listing = {});
  ~ClipSet();
  ClipSet(ClipSet&&) noexcept;
  /// The name under which data/given_texts.h may have packed() of a set that is opened so. Then
  /// nothing is read.
  static std::string given_as(const std::string& directory, const std::string& split,
                              const ClipListing& listing);
  /// All that is known of the clips.
  std::string packed() const;
  /// Whether that dataset has clips in `split`, by vfm-shard's notes.
  static bool has_split(const std::string& directory, const std::string& split);

  /// The clips in the order of the plan. Empty if the dataset has no such split.
  const std::vector<StoredClip>& clips() const;
  /// {"clips":[{"path":…,"xxh3":…},…]}: the shards as the plan names them, and the hashes of their
  /// contents. The same wherever the dataset's folder lies and however its name is spelled.
  const Json& info() const;
  /// With `fetched`, the bytes are those that fetch() gave, and nothing is read.
  /// Throws Error naming key and shard if the sample cannot be read, has neither video nor picture,
  /// or is not what vfm-shard hashed ("media_xxh3" of its JSON). Samples without that are not
  /// compared.
  ClipPixels read(std::size_t i, const PixelOptions& options,
                  const std::string* fetched = nullptr) const;
  /// The same with a text of the window, from the column that `place` chooses (choose_text()).
  TextedClip read(std::size_t i, const PixelOptions& options, const TextColumns& texts,
                  double place, const std::string* fetched = nullptr) const;
  /// The text alone, as the second read() gives it.
  SampleText text(std::size_t i, const TextColumns& texts, double place) const;
  /// Whether the dataset is at an address, so that samples are best fetched ahead, several at once.
  bool is_remote() const;
  /// Fetches the bytes of whole samples, for `fetched` of read(). As LatentSet::fetch().
  void fetch(std::span<SampleBytes> samples) const;
  /// For messages: "sample 'KEY' of 'TAR'".
  std::string name(std::size_t i) const;

 private:
  struct State;
  shard::Sample sample(std::size_t i, const std::string* fetched = nullptr) const;
  void fetch_of_shard(std::size_t shard, std::span<SampleBytes* const> samples) const;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::data
