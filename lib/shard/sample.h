// A sample of a WebDataset shard: a key and its members, in order.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vfm::shard {

/// One file of a sample: extension without the leading dot ("mp4", "text.npy"), and its bytes.
struct Member {
  std::string extension;
  std::string data;
};

/// Members are named KEY.EXTENSION in the tar. The key holds no dot, no slash, only ASCII.
struct Sample {
  std::string key;
  std::vector<Member> members;

  /// The member's data, or null.
  const std::string* find(std::string_view extension) const;
};

}  // namespace vfm::shard
