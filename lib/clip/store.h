// Where the clips of one source go, and the json that says they are complete.
//
// A run that was killed goes on: clips that are whole are kept. ClipStore is what all formats
// share; make_clip_store() knows them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/held_json.h"
#include "base/json_fwd.h"
#include "clip/source.h"
#include "io/error_log.h"
#include "shard/receipt.h"
#include "shard/sample.h"

namespace vfm::clip {

/// shards: DIR/NAME-00000.tar... with their indexes, and DIR/NAME.json when all are there. Many
/// small videos may share a NAME (clip/joined.h).
/// files: DIR/KEY.mp4 and DIR/KEY.json, and DIR/NAME.files (shard/file_list.h) when all are there.
enum class ClipFormat { shards, files };

/// A clip that a killed run finished.
struct KeptClip {
  std::int64_t begin = 0, end = 0;  ///< pts
  std::string key;
};
using KeptClips = std::deque<KeptClip>;  ///< in the order that they were written in

/// What takes the clips of one video, one after the other. Thread-safety: one thread at a time.
class ClipSink {
 public:
  virtual ~ClipSink() = default;
  /// Begins to write. `keep`: whole clips of a killed run with these settings stay, and are given;
  /// else what is there is removed. May be repeated, if the kept clips are not this run's.
  virtual KeptClips begin(bool keep) = 0;
  /// Counts the next kept clip. All of them come before the first add().
  virtual void add_kept() = 0;
  /// The next sample. Throws Error.
  virtual void add(const shard::Sample& sample) = 0;
  /// The end, with what is to be said of the video. Gives what is known of it then.
  virtual Json finish(Json summary) = 0;
};

/// Thread-safety: one thread at a time; stores of different names are independent.
class ClipStore : public ClipSink {
 public:
  /// DIR/NAME.json or .files, if it stands there with these settings and all that it names too, and
  /// `redo` is false. Else null, and other programs are kept from these clips until finish() or the
  /// store's end; waits for one that is making them. Removes what a run left that was killed right
  /// after finishing.
  Json find_or_hold(bool redo);
  /// As find_or_hold(true), and gives what stands there then; null if nothing does.
  Json hold_and_find();
  void add_kept() override;
  void add(const shard::Sample& sample) override;
  /// Writes DIR/NAME.json or .files, and lets go: `summary` with the settings, the number of
  /// samples and what was written. Nothing is written if there is no sample and no error in the
  /// summary.
  Json finish(Json summary) override;

  /// Removes all that is of NAME: shards or files, their columns, the index. Killed at any moment
  /// what is left is complete, or notes say that it is not, and it goes with the next call or
  /// begin(). Throws Error, and has changed nothing, if another program is at work on it, or one of
  /// the files is not as it was written. The files of a sample that is `in_use` stay: a picture
  /// that was in two batches has one key.
  using InUse = std::function<bool(const std::string& key)>;
  void remove(const InUse& in_use);

  /// What `finished` says was wrong with `source`, or with the pictures that it names.
  static std::vector<io::Fault> faults(const Json& finished, const std::string& source);
  /// The manifest records of what `finished` lists.
  static std::vector<Json> records(const Json& finished, const std::string& directory);
  /// Adds what they were cut from, and is called so now, whatever its name was then.
  static void name_sources(std::vector<Json>& records, const std::vector<ClipSource>& sources);

 protected:
  /// `index`: the name of the json in DIR.
  ClipStore(std::string directory, std::string name, const std::string& index, Json settings);
  const std::string& index_path() const { return receipt_.path(); }
  /// The file that the next run needs after a killed one; removed when the index is written.
  virtual std::string notes_path() const = 0;
  /// Throws Error if a file that `found` lists is not there as it was written.
  virtual void check_files(const Json& found) const = 0;
  virtual void write(const shard::Sample& sample) = 0;
  virtual void write_kept() {}
  /// The files that are of NAME, beside index and notes, in the order to remove them in. `index`:
  /// the json; null: of a killed run, whose notes say which. Throws Error if one of them is not as
  /// it was written.
  virtual std::vector<std::string> own_files(const Json& index, const InUse& in_use) = 0;
  /// Notes by which own_files(null) finds those of `index`, and a run with any settings keeps none.
  virtual std::string notes_of_removal(const Json& index) const = 0;
  /// Ends the files, and lists them in `summary`.
  virtual void end(Json& summary) = 0;

  /// Throws Error unless `path` is a regular file, of that size, or nothing is there.
  static void check_own(const std::string& path, std::optional<std::uint64_t> bytes = {});
  /// What a killed writer of `path` left (io/atomic_file.h).
  static std::string temporary_of(const std::string& path);

  std::string directory_, name_;
  HeldJson settings_;
  std::int64_t samples_ = 0;

 private:
  void check(const Json& found) const;

  shard::Receipt receipt_;
};

/// `settings`: everything that decides the files' bytes, beside the source. `shard_bytes`: of a
/// shard.
std::unique_ptr<ClipStore> make_clip_store(ClipFormat format, std::string directory,
                                           const std::string& name, Json settings,
                                           std::uint64_t shard_bytes);

}  // namespace vfm::clip
