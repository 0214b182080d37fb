// A sample of a WebDataset shard: a key and its members, in order.
//
// The folders columns/ and pack/ define the meaning of members. shard/writer.h and shard/reader.h
// define the form of samples in a tar.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vfm::shard {

/// One file of a sample: its bytes, and its extension without the leading dot ("mp4", "text.npy").
struct Member {
  std::string extension;
  std::string data;
};

/// A sample, whose members have the names KEY.EXTENSION in the tar. If vfm wrote the sample, the
/// key is a valid_key(). In a foreign shard, the key may include directories.
struct Sample {
  std::string key;
  std::vector<Member> members;

  /// Returns the member's data, or null if the sample has no such member.
  const std::string* find(std::string_view extension) const;
  std::int64_t bytes() const;  ///< Bytes of the data of all members.
};

/// A view of a Member, valid as long as the bytes that it points to.
struct MemberView {
  std::string_view extension;
  std::string_view data;
  std::uint64_t offset = 0;  ///< Offset of the data in the tar. Only an IndexedReader sets it.
};
struct SampleView {
  std::string_view key;
  std::vector<MemberView> members;

  /// Returns the member's data, or a view whose data() is null if the sample has no such member.
  std::string_view find(std::string_view extension) const;
};

/// Returns the name of a sample for errors: "KEY of 'X.tar'".
std::string sample_name(std::string_view key, std::string_view tar);
/// Returns 16 hex digits, the XXH3-64 of all members in order. Each member is hashed as "EXTENSION
/// SIZE\n", followed by its data.
std::string hash_sample(const Sample& sample);

/// Returns whether the Writer accepts the key. The key must be one or more ASCII letters, digits,
/// '_' and '-', and must not begin with "__", because readers take such names for metadata.
bool valid_key(std::string_view key);
/// Returns whether the extension has only lower-case ASCII letters, digits, '_', '-', and dots
/// between them: "mp4", "text.npy".
bool valid_extension(std::string_view extension);
/// Splits a member's name at the first dot after the last slash, as every WebDataset reader does.
/// The key includes directories. The extension is lower-cased, without further leading dots
/// ("KEY..mp4", as NeMo writes, gives "mp4"). Returns false for names that belong to no sample:
/// names without a dot, with nothing before or after the dot, or with a first component like
/// "__this__".
bool split_member_name(std::string_view name, std::string& key, std::string& extension);

}  // namespace vfm::shard
