// Small videos that share shards: DIR/joined-<h>-00000.tar, ..., and DIR/joined-<h>.json, <h> being
// 16 digits of a hash of the hashes of all of them, in their order.
//
// Which videos go together follows from the input (clip/source.h). Each is cut by itself, on any
// thread; its clips wait in a file of parts (clip/store/parts.h). When the last one has ended the
// shards are written, in the order of the videos: so bytes do not depend on threads, nor on where a
// killed run stopped, whose finished clips stay. Clips that are complete in the folder, in another
// batch or shards of their own, are copied (clip/store/earlier_clips.h).
//
// The json also has "sources": for each video "source", "source_hash", "clips", and the fields that
// the json of a single video has. A video that could not be used has the reason in "failed". The
// next run tries it again, and writes only if it succeeds. A video left out because another video's
// clip has its key, in "equal_key", would fail again: if nothing else is to be tried, it is not cut
// until it has another name.
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
#include "clip/clip.h"
#include "clip/source.h"
#include "clip/store/earlier_clips.h"
#include "clip/store/parts.h"
#include "clip/store/store.h"

namespace vfm::clip {

/// The sink of one video's clips in the batch.
class ClipPart : public ClipSink {
 public:
  explicit ClipPart(ClipParts& parts) : parts_(parts) {}
  KeptClips begin(bool keep) override;
  void add_kept() override {}  // there are none: a video that did not end begins anew
  void add(const shard::Sample& sample) override;
  Json finish(Json summary) override;
  /// Ends the video. `entry`: its entry in the json, instead of the summary of finish().
  void end(const ClipSource& video);
  void end(const ClipSource& video, const Json& entry);

 private:
  ClipParts& parts_;
  std::vector<ClipParts::Place> places_;
  std::set<std::string> keys_;
  HeldJson summary_;
};

/// One batch. Thread-safety: begin() and finish() one thread at a time; make() any, of different
/// videos.
class Joined {
 public:
  /// `batch`: its kind is joined. `settings`: the clips', without their spans. `earlier` must
  /// outlive this.
  Joined(const ClipItem& batch, const ClipOptions& options, const Json& settings,
         EarlierClips& earlier);

  /// Looks for finished work, and locks it. Returns the places of the videos that make() must be
  /// called for. Throws Error; Stopped.
  std::vector<std::size_t> begin();
  const ClipSource& source(std::size_t place) const { return sources_[place]; }
  const std::vector<ClipSource>& sources() const { return sources_; }
  std::size_t size() const { return sources_.size(); }
  const std::string& name() const { return name_; }

  /// Copies the clips of a video if possible, and returns true; else calls `cut` to make them. An
  /// Error of the video from `cut` is kept.
  using Cut = std::function<void(ClipSink& sink)>;
  bool make(std::size_t place, const Cut& cut);
  /// Writes the shards, when all are made, and gives the json. Throws Error; Stopped.
  Json finish();

 private:
  bool take_earlier(std::size_t place);
  bool is_of_this(const Json& found) const;
  std::vector<std::size_t> to_be_tried() const;
  bool has_clip(std::size_t place, const std::string& key) const;
  bool failed_as_before() const;
  void refuse_equal_keys();
  Json write();

  std::vector<ClipSource> sources_;
  std::string directory_, name_;
  bool force_, readable_;
  HeldJson settings_;
  EarlierClips& earlier_;
  std::unique_ptr<ClipStore> store_;
  std::optional<ClipParts> parts_;  // while it is made
  HeldJson found_;                  // that an earlier run finished
  std::mutex mutex_;                // guards what follows
  std::map<std::size_t, io::Fault> failed_;
  std::map<std::size_t, std::string> equal_keys_;  // of those that failed for that
};

/// Takes the items of an input, and the videos of an unfinished batch one by one. Thread-safety:
/// one thread at a time.
class JoinedItems {
 public:
  struct Work {
    ClipItem item;
    std::shared_ptr<Joined> batch;  ///< the batch of video `item`; or `item` itself, of kind joined
    std::size_t place = 0;          ///< of the video in the batch
    bool last = false;              ///< the batch must be finished after it
    std::size_t there = 0;          ///< for `last`: videos that were there already
  };
  using See = std::function<void(const ClipItem& item)>;

  /// `see` is called with each input item; a batch is one item. All must outlive this.
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
  std::vector<std::size_t> places_;  // of it, to be made
  std::size_t at_ = 0;               // in places_
};

/// A hash of a video's given spans; empty without any.
std::string hash_of_spans(const ClipSource& source);

}  // namespace vfm::clip
