// A sample of a WebDataset shard: a key and its members, in order.
//
// Elsewhere: the meaning of members (columns/, pack/), their form in a tar (shard/writer.h,
// shard/reader.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vfm::shard {

/// One file of a sample: extension without the leading dot ("mp4", "text.npy"), and its bytes.
struct Member {
  std::string extension;
  std::string data;
};

/// Members are named KEY.EXTENSION in the tar. The key of a sample that vfm writes passes
/// valid_key(); that of a foreign shard is all before the first dot, with its directories.
struct Sample {
  std::string key;
  std::vector<Member> members;

  /// The member's data, or null.
  const std::string* find(std::string_view extension) const;
  std::int64_t bytes() const;  ///< of all members' data
};

/// The same without owning bytes: valid as long as its source.
struct MemberView {
  std::string_view extension;
  std::string_view data;
  std::uint64_t offset = 0;  ///< of the data in the tar, where an IndexedReader made it
};
struct SampleView {
  std::string_view key;
  std::vector<MemberView> members;

  /// The member's data; if not found, a view whose data() is null.
  std::string_view find(std::string_view extension) const;
};

/// "KEY of 'X.tar'": a sample in errors.
std::string sample_name(std::string_view key, std::string_view tar);
/// XXH3-64 of the members, 16 hex digits: of each "EXTENSION SIZE\n" and its bytes, in their order.
std::string hash_sample(const Sample& sample);

/// ASCII letters, digits, '_' and '-', at least one, not beginning with "__" (readers take those
/// names for metadata). The Writer demands this of a key.
bool valid_key(std::string_view key);
/// Lower-case ASCII letters, digits, '_', '-', and dots between them: "mp4", "text.npy".
bool valid_extension(std::string_view extension);
/// Splits a member's name as every WebDataset reader does: at the first dot after the last slash,
/// the directories belonging to the key. The extension is lower-cased and loses further leading
/// dots
/// ("KEY..mp4", as NeMo writes, is "mp4"). False for names outside samples: no dot, nothing before
/// or after it, or a first component like "__this__".
bool split_member_name(std::string_view name, std::string& key, std::string& extension);

}  // namespace vfm::shard
