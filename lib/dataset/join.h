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
/// Returns the kind of media by the last part of an extension. "mp4" and "left.mp4" are video, and
/// "jpg" is image.
MediaKind media_kind(std::string_view extension);

struct JoinedSample {
  std::string key;
  /// The "json" members, merged, with "key", "media", "bytes", and "media_xxh3" if there is media.
  HeldJson meta;
  std::string media;  ///< extension of the main member: a video, else an image, else any
  /// Views of all members in the columns except "json", media first, in the order of vfm-shard(5).
  std::vector<shard::MemberView> members;

  std::string_view find(std::string_view extension) const;
};

/// Joins the parts of a sample, in the order of columns. A key that is not a valid_key() is
/// replaced by its hash, and kept as "original_key". Members and fields of later columns, such as a
/// caption column's "txt" and "caption", replace those of the first column. "split" and "bin" of an
/// earlier vfm-shard are left out. Throws Error if two later columns have different values for a
/// member or JSON field, or a "json" is not an object.
JoinedSample join_sample(const std::vector<const shard::SampleView*>& parts);

/// Gives the sample a new key: a hash of its media and old key. "original_key" keeps the old key.
/// If the sample already has an "original_key", its value stays.
void rekey(JoinedSample& sample);

}  // namespace vfm::dataset
