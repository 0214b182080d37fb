// A sample of a WebDataset shard: a key and its members, in order.
//
// columns/ and pack/ define the meaning of members; shard/writer.h and shard/reader.h define their
// form in a tar.
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

/// Members are named KEY.EXTENSION in the tar. If vfm wrote the sample, its key passes valid_key().
/// In a foreign shard, the key is all before the first dot of the base name, with directories.
struct Sample {
  std::string key;
  std::vector<Member> members;

  /// Returns the member's data, or null if there is no such member.
  const std::string* find(std::string_view extension) const;
  std::int64_t bytes() const;  ///< bytes of all members' data
};

/// A Member that does not own its bytes. It is valid as long as its source.
struct MemberView {
  std::string_view extension;
  std::string_view data;
  std::uint64_t offset = 0;  ///< of the data in the tar, if from an IndexedReader
};
struct SampleView {
  std::string_view key;
  std::vector<MemberView> members;

  /// Returns the member's data, or a view whose data() is null if there is no such member.
  std::string_view find(std::string_view extension) const;
};

/// Returns "KEY of 'X.tar'", which names a sample in errors.
std::string sample_name(std::string_view key, std::string_view tar);
/// Returns the XXH3-64 of "EXTENSION SIZE\n" and the bytes of each member, in order; 16 hex digits.
std::string hash_sample(const Sample& sample);

/// Returns whether the Writer accepts the key: ASCII letters, digits, '_' and '-', at least one,
/// not beginning with "__" (readers take such names for metadata).
bool valid_key(std::string_view key);
/// Returns whether the extension has only lower-case ASCII letters, digits, '_', '-', and dots
/// between them: "mp4", "text.npy".
bool valid_extension(std::string_view extension);
/// Splits a member's name as every WebDataset reader does, at the first dot after the last slash;
/// directories belong to the key. The extension is lower-cased and loses further leading dots
/// ("KEY..mp4", as NeMo writes, gives "mp4"). Returns false for names that belong to no sample: no
/// dot, nothing before or after it, or a first component like "__this__".
bool split_member_name(std::string_view name, std::string& key, std::string& extension);

}  // namespace vfm::shard
