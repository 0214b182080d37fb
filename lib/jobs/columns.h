// Columns of a shard: more members for its samples, kept in tars of their own beside it.
//
// X.caption.tar and X.embed.tar hold what vfm-caption and vfm-embed add to the samples of X.tar, in
// the same order of keys, so video is never copied. A shard record's "columns" names the tars.
// Foreign keys that a Writer refuses ("train/0001") stand in columns as their hash.
// Thread-safety: functions any thread; JoinedReader one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/manifest.h"
#include "shard/sample.h"

namespace vfm::jobs {

/// "a/X.tar", "caption" -> "a/X.caption.tar", or "DIR/X.caption.tar" if a directory is given.
/// Endings of compressed tars (.tar.gz, .tgz, .tar.zst) are taken off too.
std::string column_tar_path(const std::string& shard, const std::string& column,
                            const std::string& directory = {});

/// Whether `path` is a column of a shard that exists beside it: "a/X.embed.tar" where "a/X.tar" is.
/// So `vfm-embed a/*.tar` can pass over them.
bool is_column_tar(const std::string& path);

/// Gives a shard record that has none its "columns": the tar itself as "clip" and the known columns
/// that exist beside it.
void complete_shard(io::Record& record);

/// Compares the bytes of the tars of a record with the hashes that vouch for them: the record's
/// "xxh3" and "bytes" for its "path", and what was noted when a column was made. Tars that nobody
/// vouches for are not read. Throws Error naming the tar that is not as it was written.
void check_shard_bytes(const io::Record& record);

/// The key of a sample in a column, and in what vfm writes: itself, or its hash where it is not a
/// valid_key().
std::string column_key(const std::string& key);

/// What is said of a sample that JoinedReader::repeated() names.
inline constexpr const char* kRepeated =
    "the key comes twice in its shard; the first sample is kept";

/// Reads the samples of several tars as one: members of all, the first tar's first. An extension
/// that an earlier tar has too replaces it. Of samples with one key only the first is given.
class JoinedReader {
 public:
  /// Throws Error if a tar cannot be opened.
  explicit JoinedReader(const std::vector<std::string>& tars);
  ~JoinedReader();
  JoinedReader(JoinedReader&&) noexcept;
  /// The next sample, its key a column_key(). "json" members are merged, later ones winning; into
  /// one that is no object nothing is merged. False at the end. Throws Error when a tar is damaged,
  /// or the tars do not have the same keys in one order.
  bool next(shard::Sample& sample);
  /// Keys of the samples that were passed over because the key was there before.
  const std::vector<std::string>& repeated() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::jobs
