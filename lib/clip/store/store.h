// Stores the clips of one source, and a json that says that the clips are complete. The complete
// clips of a killed run are kept.
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

/// The format of a store. With `shards` the store writes DIR/NAME-00000.tar... with their indexes,
/// and then DIR/NAME.json. With `files` the store writes DIR/KEY.mp4 and DIR/KEY.json, and then
/// DIR/NAME.files (shard/file_list.h).
enum class ClipFormat { shards, files };

/// A clip that a killed run finished.
struct KeptClip {
  std::int64_t begin = 0, end = 0;  ///< Begin and end as pts.
  std::string key;
};
using KeptClips = std::deque<KeptClip>;  ///< Kept clips in the order of writing.

/// Receives the clips of one video, in order. Thread-safety: one thread at a time.
class ClipSink {
 public:
  virtual ~ClipSink() = default;
  /// Begins to write. If `keep` is true, keeps and returns complete clips of a killed run with the
  /// same settings. Otherwise removes existing clips. If the kept clips differ from this run's
  /// clips, call begin(false) to start again.
  virtual KeptClips begin(bool keep) = 0;
  /// Counts the next kept clip. Call add_kept() for all kept clips before the first add().
  virtual void add_kept() = 0;
  /// Adds the next sample. Throws Error.
  virtual void add(const shard::Sample& sample) = 0;
  /// Ends the video, and returns `summary` with the fields that the sink adds.
  virtual Json finish(Json summary) = 0;
};

/// Thread-safety: one thread at a time; stores of different names are independent.
class ClipStore : public ClipSink {
 public:
  /// Returns the index (DIR/NAME.json or DIR/NAME.files) if `redo` is false, the settings are the
  /// same, and all files of the index exist. Otherwise locks the clips until finish() or the
  /// store's destruction, and returns null. Waits while another program makes the clips.
  Json find_or_hold(bool redo);
  /// Acts as find_or_hold(true), but returns the existing index, or null if no index exists.
  Json hold_and_find();
  void add_kept() override;
  void add(const shard::Sample& sample) override;
  /// Adds the settings, the files and the number of samples to `summary`, writes the result to
  /// DIR/NAME.json or DIR/NAME.files, and unlocks the clips. Writes nothing if there are neither
  /// samples nor errors.
  Json finish(Json summary) override;

  /// Removes all files of NAME: shards or files, their columns, and the index. If the program is
  /// killed during remove(), the next remove() or begin() removes the remaining files. Each
  /// remaining file is complete, or notes mark it as incomplete. Keeps the files of samples for
  /// which `in_use` returns true. If another program uses NAME, or if a file has changed since it
  /// was written, throws Error and removes nothing.
  using InUse = std::function<bool(const std::string& key)>;
  void remove(const InUse& in_use);

  /// Returns the errors in `finished`. Errors of a video are reported for `source`, and errors of
  /// pictures for each picture.
  static std::vector<io::Fault> faults(const Json& finished, const std::string& source);
  /// Returns the manifest records for the outputs that `finished` lists.
  static std::vector<Json> records(const Json& finished, const std::string& directory);
  /// Adds to each record the present names of its sources.
  static void name_sources(std::vector<Json>& records, const std::vector<ClipSource>& sources);

 protected:
  /// Opens a store whose json in DIR is named `index`.
  ClipStore(std::string directory, std::string name, const std::string& index, Json settings);
  const std::string& index_path() const { return receipt_.path(); }
  /// Returns the path of the notes from which a killed run is resumed. When the index is written,
  /// the notes are removed.
  virtual std::string notes_path() const = 0;
  /// Removes the notes.
  virtual void end_notes();
  /// Throws Error if a file that `found` lists is missing or changed.
  virtual void check_files(const Json& found) const = 0;
  virtual void write(const shard::Sample& sample) = 0;
  virtual void write_kept() {}
  /// Returns the files of NAME except index and notes, in the order of removal. `index` lists the
  /// files. If `index` is null, the notes of a killed run list the files. Throws Error if a file
  /// has changed since it was written.
  virtual std::vector<std::string> own_files(const Json& index, const InUse& in_use) = 0;
  /// Returns the notes that own_files(null) reads to list the files of `index`. The notes prevent
  /// all runs from using these files.
  virtual std::string notes_of_removal(const Json& index) const = 0;
  /// Completes the files, and lists them in `summary`.
  virtual void end(Json& summary) = 0;

  /// Throws Error if `path` exists, but is not a regular file of `bytes` bytes.
  static void check_own(const std::string& path, std::optional<std::uint64_t> bytes = {});
  /// Return whether a killed writer of `path` left a temporary file (io/atomic_file.h). A bucket
  /// has none.
  static bool has_temporary(const std::string& path);
  static bool remove_temporary_of(const std::string& path);

  std::string directory_, name_;
  HeldJson settings_;
  std::int64_t samples_ = 0;

 private:
  void check(const Json& found) const;

  shard::Receipt receipt_;
};

/// Opens a store. `settings` are all facts that affect the files' bytes, except the source. If
/// `shared` is true, processes of several hosts may write the files of NAME, with the same bytes
/// (clip/store/listed.h). Then begin() removes no files, and keeps clips without notes. Only the
/// format `shards` can be shared.
std::unique_ptr<ClipStore> make_clip_store(ClipFormat format, std::string directory,
                                           const std::string& name, Json settings,
                                           std::uint64_t shard_bytes, bool shared = false);

}  // namespace vfm::clip
