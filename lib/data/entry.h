// An entry of the index of a folder of samples.
// Thread-safety: pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json_fwd.h"

namespace vfm::data {

/// One line of index.jsonl (vfm-latents(5)).
struct Entry {
  std::string key;
  std::string shard;                      ///< relative to the split's folder
  std::int64_t row = 0;                   ///< row of the sample in its shard
  int frames = 1, height = 0, width = 0;  ///< size of the latent
  double fps = 0;                         ///< frames a second of the pixels; 0 for an image
  int text_tokens = 0;
  std::string xxh3;  ///< shard::hash_sample() when it was packed; "": not known
};

/// {"key":…,"shard":…,"row":…,"frames":…,"height":…,"width":…,"fps":…,"text_tokens":…,"xxh3":…} and
/// back; "xxh3" may be absent. `what` names the line in errors. Throws Error if another field is
/// absent, a size is below 1, or the shard is not a plain file name.
Json to_json(const Entry& entry);
Entry parse_entry(const Json& line, std::string_view what);

/// The part [begin, end) of the bytes of a sample, in units of LatentSet::about_bytes(), as it is
/// fetched from its shard.
struct SampleBytes {
  std::size_t sample = 0;
  std::int64_t begin = 0, end = 0;
  std::string bytes;
  std::string failure;  ///< "" if it was fetched
};

/// Whether an Error of this cause tells of the store that has the samples, not of a sample.
/// Training goes on without a sample that is damaged, but not without its store.
bool store_failed(Cause cause);

/// Calls `fetch` with all parts of one shard. If that throws Error, calls it with each of them
/// alone: an Error becomes the failure of its part, but is thrown if store_failed().
void fetch_or_fail(std::span<SampleBytes* const> parts,
                   const std::function<void(std::span<SampleBytes* const>)>& fetch);

/// Patches into which a latent is cut. The sample has frames * (height / patch_height) * (width /
/// patch_width) visual tokens.
struct Patch {
  int frames = 1, height = 2, width = 2;
};
std::int64_t token_count(const Entry& entry, const Patch& patch = {});

}  // namespace vfm::data
