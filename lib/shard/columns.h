// Columns of a shard: tars beside the shard that add members to its samples.
//
// X.caption.tar, X.embed.tar and X.score.tar have the members that vfm-caption, vfm-embed and
// `vfm-caption score` add to the samples of X.tar, in the order of X.tar's samples. A shard
// record's "columns" names these tars. If a Writer refuses a key of a foreign shard ("train/0001"),
// the columns use the key's hash instead.
// Thread-safety: functions from any thread; a JoinedReader from one thread.
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

/// Returns "a/X.caption.tar" for "a/X.tar" and "caption", or "DIR/X.caption.tar" if `directory` is
/// given. The endings .tar.gz, .tgz and .tar.zst are replaced like .tar.
std::string column_tar_path(const std::string& shard, const std::string& column,
                            const std::string& directory = {});

/// Returns whether `path` is a column of an existing shard in the same folder: "a/X.embed.tar" next
/// to "a/X.tar". Either may end in ".tar.zst".
bool is_column_tar(const std::string& path);

/// Returns the files that vfm-caption and vfm-embed write beside a shard, whether they exist or
/// not. The receipt of each column comes first, as in shard_files() (shard/receipt.h).
std::vector<std::string> column_files(const std::string& shard);

/// If a shard record has no member "columns", adds it, with the tar itself as "clip" and the known
/// columns beside the tar. Waits for a tar that a part of vfm-clip wrote (a record with a place in
/// the list) until the tar has the size in the record, or until input_limits().timeout is over
/// (io/late_files.h). Throws Error.
void complete_shard(io::Record& record);

/// Compares a record's tars with their known hashes and sizes, which are in the record, or in the
/// JSON file beside the tar. Does not read tars without a known hash. Waits as complete_shard()
/// does. Throws an Error that names a changed tar.
void check_shard_bytes(const io::Record& record);

/// Returns a text that changes when the tars of a record change: their names and sizes, and their
/// known hashes (check_shard_bytes()) or else the times of their last change. Does not read the
/// tars. Throws Error if a tar cannot be opened.
std::string tars_version(const io::Record& record);

/// Returns the key of a sample in columns and in all files that vfm writes: `key` if it is a
/// valid_key(), otherwise the hash of `key`.
std::string column_key(const std::string& key);

/// Logs, once in a run, that the member `extension` of `tar` is a video or picture with several
/// dots in its name. Every reader takes "clip0.v1.mp4" as member "v1.mp4" of sample "clip0".
void say_dotted_media(const std::string& tar, std::string_view key, std::string_view extension);

/// Joins the samples of several tars: a sample has the members of all tars, in the order of the
/// tars. A member replaces the member with the same extension of an earlier tar. If samples of the
/// first tar have the same key, only the first of them is returned.
class JoinedReader {
 public:
  explicit JoinedReader(const std::vector<std::string>& tars, const ReadLimits& limits = {});
  ~JoinedReader();
  JoinedReader(JoinedReader&&) noexcept;
  /// Sets `sample` to the next sample, whose key is a column_key(). Merges "json" members: values
  /// of later tars replace values of earlier tars. If the first "json" of a sample is not an
  /// object, this member is kept unchanged. If the key is a hash, the JSON has the foreign key as
  /// "original_key". Returns false at the end or at damage. All samples returned before are whole.
  /// Throws Error if the tars have different keys, or the same keys in different orders.
  bool next(Sample& sample);
  /// Returns what was skipped so far in each tar: damaged or too large samples, repeated keys, and
  /// all data after damage.
  const std::vector<io::Fault>& faults() const;
  /// Returns whether a sample was skipped that larger ReadLimits might include.
  bool any_refused() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::shard
