// Columns of a shard: more members for its samples, kept in tars of their own beside it.
//
// X.caption.tar, X.embed.tar and X.score.tar hold the additions of vfm-caption, vfm-embed and
// vfm-caption score to the samples of X.tar, in the same order of keys, so video is never copied.
// A shard record's "columns" names the tars.
// Foreign keys that a Writer refuses ("train/0001") stand in columns as their hash, and in the JSON
// of their sample as "original_key".
// Thread-safety: functions any thread; JoinedReader one thread.
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

/// "a/X.tar", "caption" -> "a/X.caption.tar", or "DIR/X.caption.tar" if a directory is given.
/// Endings of compressed tars (.tar.gz, .tgz, .tar.zst) are taken off too.
std::string column_tar_path(const std::string& shard, const std::string& column,
                            const std::string& directory = {});

/// Whether `path` is a column of a shard that exists beside it: "a/X.embed.tar" where "a/X.tar" is.
/// So `vfm-embed a/*.tar` can pass over them.
bool is_column_tar(const std::string& path);

/// The files of vfm-caption and vfm-embed for the columns beside a shard, existing or not; for each
/// column the receipt first, as in shard_files() (shard/receipt.h).
std::vector<std::string> column_files(const std::string& shard);

/// Gives a shard record that has none its "columns": the tar itself as "clip" and the known columns
/// that exist beside it.
void complete_shard(io::Record& record);

/// Compares the bytes of a record's tars with the known hashes: the record's "xxh3" and "bytes" for
/// its "path"; for columns, and a path whose record has none, those in the JSON file that was
/// written beside the tar. Tars without a hash are not read. Throws Error naming a changed tar.
void check_shard_bytes(const io::Record& record);

/// The key of a sample in a column, and in what vfm writes: itself, or its hash if it is not a
/// valid_key().
std::string column_key(const std::string& key);

/// Logs, once in a run, that the member `extension` of `tar` is a video or picture whose name has
/// several dots: "clip0.v1.mp4" is "v1.mp4" of sample "clip0" for every reader.
void say_dotted_media(const std::string& tar, std::string_view key, std::string_view extension);

/// Reads the samples of several tars as one: members of all, the first tar's first. A member
/// replaces an earlier tar's with the same extension. Only the first of samples with one key is
/// given.
class JoinedReader {
 public:
  /// Throws Error if a tar cannot be opened.
  explicit JoinedReader(const std::vector<std::string>& tars, const ReadLimits& limits = {});
  ~JoinedReader();
  JoinedReader(JoinedReader&&) noexcept;
  /// The next sample, its key a column_key(). "json" members are merged, later ones winning, unless
  /// the first is not an object. If the key is a hash, they have the foreign key as "original_key".
  /// False at the end, and where a tar is damaged: the samples before that are whole. Throws Error
  /// when the tars do not have the same keys in one order.
  bool next(Sample& sample);
  /// The parts skipped so far, by tar: samples that are too large or damaged, or repeat a key, and
  /// all that follows damage.
  const std::vector<io::Fault>& faults() const;
  /// Whether a sample was skipped, perhaps for its size: another limit may include it.
  bool any_refused() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::shard
