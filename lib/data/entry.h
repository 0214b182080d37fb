// What the index of a folder of samples says of one of them.
// Thread-safety: pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json_fwd.h"

namespace vfm::data {

/// One line of index.jsonl (vfm-latents(5)).
struct Entry {
  std::string key;
  std::string shard;                      ///< relative to the split's folder
  std::int64_t row = 0;                   ///< of the sample in its shard
  int frames = 1, height = 0, width = 0;  ///< of the latent
  double fps = 0;                         ///< of the pixels; 0 for an image
  int text_tokens = 0;
  std::string xxh3;  ///< shard::hash_sample() of it when it was packed; "": not known
};

/// {"key":…,"shard":…,"row":…,"frames":…,"height":…,"width":…,"fps":…,"text_tokens":…,"xxh3":…} and
/// back; the last may be absent.
/// `what` names the line in errors. Throws Error on absent fields, sizes below 1, a shard that is
/// not a plain file name.
Json to_json(const Entry& entry);
Entry parse_entry(const Json& line, std::string_view what);

/// Visual tokens of a sample whose latent is cut in patches: frames * (height / patch_height) *
/// (width / patch_width).
struct Patch {
  int frames = 1, height = 2, width = 2;
};
std::int64_t token_count(const Entry& entry, const Patch& patch = {});

}  // namespace vfm::data
