// Joins one sample from its columns.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/held_json.h"
#include "shard/sample.h"

namespace vfm::dataset {

enum class MediaKind { video, image, other };
/// By the last part of an extension: "mp4", "left.mp4" -> video; "jpg" -> image.
MediaKind media_kind(std::string_view extension);

struct JoinedSample {
  std::string key;
  /// The "json" members, merged, with "key", "media", "bytes", and "media_xxh3" if there is media.
  HeldJson meta;
  std::string media;  ///< extension of the main member: a video, else an image, else any
  /// All members except "json", media first, in the order of vfm-shard(5). Views into the columns.
  std::vector<shard::MemberView> members;

  std::string_view find(std::string_view extension) const;
};

/// Joins the parts of one sample, the first column first. A key that is not a valid_key() is
/// replaced by its hash, and kept as "original_key". Members and fields of later columns, such as a
/// caption column's "txt" and "caption", replace those of the first column. "split" and "bin" of an
/// earlier vfm-shard are left out. Throws Error if two later columns have different values for a
/// member or JSON field, or a "json" is not an object.
JoinedSample join_sample(const std::vector<const shard::SampleView*>& parts);

/// Gives the sample a new key: a hash of its media and old key. "original_key" keeps the old key,
/// or an older one that it already has.
void rekey(JoinedSample& sample);

}  // namespace vfm::dataset
