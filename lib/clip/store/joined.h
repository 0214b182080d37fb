// Small videos that share shards: DIR/joined-<h>-00000.tar, ..., and DIR/joined-<h>.json, where <h>
// is 16 digits of a hash of the videos' hashes.
//
// The shards are written after the last video of the batch (clip/source.h) is cut. The bytes of the
// shards do not depend on threads or on killed runs. Complete clips of other shards in the folder
// are copied (clip/store/earlier_clips.h), but not in a part of a list.
//
// The json has a list "sources". Each video's entry has "source", "source_hash", "clips", and the
// fields that the json of a single video has. The field "failed" says why a video could not be
// used. The next run tries a failed video again, and rewrites the shards only if the video
// succeeds. If a clip has the same key as a clip of another video, the clip's video is left out,
// and the field "equal_key" has this key. A video with "equal_key" is tried again only after it is
// renamed, or together with other failed videos.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/held_json.h"
#include "base/json_fwd.h"
#include "clip/options.h"
#include "clip/source.h"
#include "clip/store/earlier_clips.h"
#include "clip/store/listed.h"
#include "clip/store/parts.h"
#include "clip/store/store.h"

namespace vfm::clip {

/// Receives the clips of one video of the batch.
class ClipPart : public ClipSink {
 public:
  explicit ClipPart(ClipParts& parts) : parts_(parts) {}
  KeptClips begin(bool keep) override;
  // A video that did not end is cut again from its begin, so no clip is kept.
  void add_kept() override {}
  void add(const shard::Sample& sample) override;
  Json finish(Json summary) override;
  /// Ends the video with `entry`, or with an entry made from the summary of finish().
  void end(const ClipSource& video);
  void end(const ClipSource& video, const Json& entry);

 private:
  ClipParts& parts_;
  std::vector<ClipParts::Place> places_;
  std::set<std::string> keys_;
  HeldJson summary_;
};

/// Thread-safety: begin() and finish() one thread at a time; make() any thread, for different
/// videos.
class Joined {
 public:
  /// `batch` has the kind `joined`. `settings` are the settings of the clips, without the spans.
  /// `earlier` must outlive the batch.
  Joined(const ClipItem& batch, const ClipOptions& options, const Json& settings,
         EarlierClips& earlier);

  /// Looks for finished work and locks the batch. Returns the indices in sources() of the videos
  /// for which make() must be called. Throws Error and Stopped.
  std::vector<std::size_t> begin();
  const ClipSource& source(std::size_t place) const { return sources_[place]; }
  const std::vector<ClipSource>& sources() const { return sources_; }
  std::size_t size() const { return sources_.size(); }
  const std::string& name() const { return place_.name; }
  /// Returns the folder of the shards.
  const std::string& directory() const { return place_.directory; }

  /// Returns true if the clips of a video were found and copied. Otherwise calls `cut` to make the
  /// clips, and returns false. If `cut` throws an Error about the video, records the error.
  using Cut = std::function<void(ClipSink& sink)>;
  bool make(std::size_t place, const Cut& cut);
  /// Writes the shards and returns the json. Call finish() after the last make(). Throws Error and
  /// Stopped.
  Json finish();
  /// Returns the faults of videos that may pass (clip/store/listed.h). In a part of a list, do not
  /// call finish() if there are any. The finished clips of the batch then wait for the next try.
  std::vector<io::Fault> faults_of_machine() const;

 private:
  std::string parts_path() const { return ClipParts::path_of(place_.unfinished, place_.name); }
  std::vector<std::size_t> unfinished_videos() const;
  bool take_earlier(std::size_t place);
  bool is_of_this(const Json& found) const;
  std::vector<std::size_t> to_be_tried() const;
  bool has_clip(std::size_t place, const std::string& key) const;
  bool failed_as_before() const;
  void refuse_equal_keys();
  Json write();

  std::vector<ClipSource> sources_;
  bool force_, readable_;
  const ListedPart* listed_;
  HeldJson settings_;
  StorePlace place_;
  EarlierClips& earlier_;
  std::unique_ptr<ClipStore> store_;
  std::optional<ClipParts> parts_;
  HeldJson found_;    // the json of an earlier run
  std::mutex mutex_;  // guards the members below
  std::map<std::size_t, io::Fault> failed_;
  std::map<std::size_t, std::string> equal_keys_;
};

/// Iterates over the items of an input. If a batch is not finished, each video of the batch that
/// needs work becomes an item. Thread-safety: one thread at a time.
class JoinedItems {
 public:
  struct Work {
    ClipItem item;
    /// The batch of the video `item`. If the batch needs no work, `item` is the batch itself.
    std::shared_ptr<Joined> batch;
    std::size_t place = 0;  ///< Index of the video in the batch.
    bool last = false;      ///< If true, finish the batch after the video.
    std::size_t there = 0;  ///< If `last` is true, the number of videos that needed no work.
  };
  using See = std::function<void(const ClipItem& item)>;

  /// `see` is called with each input item. All arguments must outlive the iterator.
  JoinedItems(ClipItems& items, const ClipOptions& options, Json settings, See see);
  std::optional<Work> next();

 private:
  Work next_video();
  Work begin_batch(const ClipItem& item);

  ClipItems& items_;
  const ClipOptions& options_;
  HeldJson settings_;
  See see_;
  EarlierClips earlier_;
  std::shared_ptr<Joined> batch_;
  std::vector<std::size_t> places_;
  std::size_t at_ = 0;
};

/// Returns a hash of a video's given spans, or an empty text without spans.
std::string hash_of_spans(const ClipSource& source);

}  // namespace vfm::clip
