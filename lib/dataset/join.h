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
/// Returns the kind of media for the last part of an extension. For example, "mp4" and "left.mp4"
/// are videos, and "jpg" is an image.
MediaKind media_kind(std::string_view extension);

struct JoinedSample {
  std::string key;
  /// The merged "json" members, with "key", "media" and "bytes", and with "media_xxh3" if the
  /// sample has media.
  HeldJson meta;
  std::string media;  ///< Extension of the main member: a video, else an image, else any member.
  /// Views of all members in the columns except "json", in the order of vfm-shard(5), media first.
  std::vector<shard::MemberView> members;

  std::string_view find(std::string_view extension) const;
};

/// Joins the parts of a sample, in the order of columns. If the key is not a valid_key(), a hash
/// replaces the key, and "original_key" has the old key. Members and fields of a column after the
/// first, such as a caption column's "txt" and "caption", replace those of the first column. The
/// fields "split" and "bin" of an earlier run of vfm-shard are removed. Throws Error if two columns
/// after the first have different values for a member or JSON field, or if a "json" is not an
/// object.
JoinedSample join_sample(const std::vector<const shard::SampleView*>& parts);

/// Gives the sample a new key, a hash of its media and old key. Sets "original_key" to the old key
/// unless the sample already has an "original_key".
void rekey(JoinedSample& sample);

}  // namespace vfm::dataset
