// The clips of a dataset that vfm-shard wrote, as training on pixels reads them.
//
// The shards' indexes alone are read to list them: nothing is decoded for that.
// Thread-safety: read() from any thread; free functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "data/clip_pixels.h"
#include "data/sample_text.h"
#include "io/manifest.h"

namespace vfm::shard {
struct Sample;
}

namespace vfm::data {

struct StoredClip {
  std::string key;
  std::size_t shard = 0;  ///< of the dataset, in the order of its plan
  std::int64_t row = 0;   ///< of the sample in its shard
  bool still = false;     ///< its name says that it is a picture; else it is taken for a video
  // Of listed ones with ClipListing::facts:
  ClipFacts facts;
  std::int64_t embedding_bytes = 0, caption_bytes = 0;  ///< of the largest in the columns; 0: none
};

/// What is to be known of clips beside key and place.
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
  /// Whether that dataset has clips in `split`, by vfm-shard's notes on its shards alone.
  static bool has_split(const std::string& directory, const std::string& split);

  /// In the order of the plan. Empty if the dataset has no such split.
  const std::vector<StoredClip>& clips() const;
  /// {"clips":[{"path":…,"xxh3":…},…]}: the shards, as the plan names them, and what is in them.
  /// The same however the dataset's folder is spelled, and wherever it lies.
  const Json& info() const;
  /// Throws Error naming key and shard: unreadable, without video and picture, or one that is not
  /// what vfm-shard hashed ("media_xxh3" of its JSON; a dataset from before that is not compared).
  ClipPixels read(std::size_t i, const PixelOptions& options) const;
  /// The same, with the text of the columns that is at `place`, of the window (choose_text()).
  TextedClip read(std::size_t i, const PixelOptions& options, const TextColumns& texts,
                  double place) const;
  /// Its text alone.
  SampleText text(std::size_t i, const TextColumns& texts, double place) const;
  /// For messages: "sample 'KEY' of 'TAR'".
  std::string name(std::size_t i) const;

 private:
  struct State;
  shard::Sample sample(std::size_t i) const;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::data
