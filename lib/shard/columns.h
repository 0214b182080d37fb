// Columns of a shard: tars beside it that add members to its samples.
//
// X.caption.tar, X.embed.tar and X.score.tar have the members that vfm-caption, vfm-embed and
// vfm-caption score add to the samples of X.tar, in the order of its keys. So adding members never
// copies video. A shard record's "columns" names the tars. A key of a foreign shard that a Writer
// refuses ("train/0001") is replaced in columns by its hash; the JSON of the sample has the key as
// "original_key". Thread-safety: functions from any thread; a JoinedReader from one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/error_log.h"
#include "io/manifest.h"
#include "shard/reader.h"
#include "shard/sample.h"

namespace vfm::shard {

/// Returns "a/X.caption.tar" for "a/X.tar" and "caption", or "DIR/X.caption.tar" if a directory is
/// given. Endings of compressed tars (.tar.gz, .tgz, .tar.zst) are removed, too.
std::string column_tar_path(const std::string& shard, const std::string& column,
                            const std::string& directory = {});

/// Returns whether `path` is a column of a shard that exists beside it: "a/X.embed.tar" next to
/// "a/X.tar".
bool is_column_tar(const std::string& path);

/// Returns the files of the columns of vfm-caption and vfm-embed beside a shard, existing or not.
/// Each column's receipt comes first, as in shard_files() (shard/receipt.h).
std::vector<std::string> column_files(const std::string& shard);

/// If a shard record has no "columns", adds the member: the tar itself as "clip", and the known
/// columns that exist beside the tar.
void complete_shard(io::Record& record);

/// Compares a record's tars with their known hashes and sizes. For "path" these are the record's
/// "xxh3" and "bytes". For columns, and for records without those fields, hash and size are in the
/// JSON file that was written beside the tar. Tars without a hash are not read. Throws Error, which
/// names a changed tar.
void check_shard_bytes(const io::Record& record);

/// Returns the key of a sample in a column and in all that vfm writes: `key`, or the hash of `key`
/// if it is not a valid_key().
std::string column_key(const std::string& key);

/// Logs, once in a run, that the member `extension` of `tar` is a video or picture whose name has
/// several dots. Every reader takes "clip0.v1.mp4" as "v1.mp4" of sample "clip0".
void say_dotted_media(const std::string& tar, std::string_view key, std::string_view extension);

/// Reads the samples of several tars as one: a sample has the members of all tars, in the order of
/// the tars. A member replaces a member of an earlier tar with the same extension. If samples have
/// the same key, only the first is returned.
class JoinedReader {
 public:
  /// Throws Error if a tar cannot be opened.
  explicit JoinedReader(const std::vector<std::string>& tars, const ReadLimits& limits = {});
  ~JoinedReader();
  JoinedReader(JoinedReader&&) noexcept;
  /// Sets `sample` to the next sample; its key is a column_key(). "json" members are merged, unless
  /// the first is not an object; values of later tars replace earlier values. If the key is a hash,
  /// the JSON has the foreign key as "original_key". Returns false at the end, and at damage;
  /// earlier samples are whole. Throws Error if the tars do not have the same keys in the same
  /// order.
  bool next(Sample& sample);
  /// Returns what was skipped so far, by tar: samples that are too large or damaged, or repeat a
  /// key, and everything after damage.
  const std::vector<io::Fault>& faults() const;
  /// Returns whether a sample was skipped, which other limits may include.
  bool any_refused() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::shard
