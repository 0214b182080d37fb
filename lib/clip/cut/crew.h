// Encodes clips on any free thread, so that one video keeps all slots busy.
//
// A video has one thread of its own, which decodes it, finds its shots and decides where clips
// begin and end. The work for a clip, frame by frame, goes into the clip's lane as steps, and the
// crew's threads, each with its own slot (share/slots.h), empty the lanes. The steps of a lane run
// one at a time, in order: an encoder gets the same calls as in one thread, and writes the same
// bytes. Several clips of one video are encoded at once, since the video's thread runs ahead of the
// encoders. It does so while there is room for waiting frames of all videos, and then until each
// slot, and one more, has a lane with some frames. Then it encodes, too. Frames without room may
// lose their pixels: such a frame hardly takes memory, and the encoding thread decodes it again
// (clip/cut/late_frames.h). Without a crew (-j1, or as many videos as slots) the video's thread
// encodes each frame at once. A thread of the crew gives up its slot when a video waits for one.
//
// The longest work begins first: a free thread takes the lane with most steps. Few encoders are
// open at a time, since each takes the memory of forty frames or more: two for each slot, one if
// much waits, and more only if a video's thread must encode and has none open.
//
// A step that throws ends its lane; the video's thread checks for that (VideoLanes::check) when it
// reaches the clip in the order of the video. So the reported error does not depend on the threads.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "share/slots.h"

namespace vfm::clip {

class VideoLanes;

/// The work for one clip, step by step. Made by VideoLanes::open().
class Lane {
 public:
  using Step = std::function<void()>;

 private:
  friend class Crew;
  friend class VideoLanes;
  explicit Lane(const VideoLanes* video) : video_(video) {}
  bool ready() const { return !running_ && !steps_.empty(); }
  bool over() const { return !running_ && steps_.empty(); }

  // All guarded by the crew's mutex.
  const VideoLanes* video_;
  std::deque<std::pair<std::uint64_t, Step>> steps_;  // with the bytes that each holds
  bool running_ = false;
  bool begun_ = false;   // a step ran
  bool sealed_ = false;  // no step comes
  std::exception_ptr error_;
};

/// The threads. Thread-safety: all of it may be called from any thread.
class Crew {
 public:
  /// Starts one thread fewer than `slots` has; none if `most_bytes`, the limit for waiting steps,
  /// is 0. `slots` must outlive this.
  Crew(share::Slots& slots, std::uint64_t most_bytes);
  /// Ends the threads. All VideoLanes must have gone before.
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

 private:
  friend class VideoLanes;
  using Lock = std::unique_lock<std::mutex>;
  bool helps() const;
  void help();
  void help_while_needed(Lock& lock);
  Lane* choose(const VideoLanes* video) const;
  void run(Lane& lane, Lock& lock);
  void drop(Lane& lane);
  void call();

  share::Slots& slots_;
  const std::uint64_t most_bytes_;
  std::mutex mutex_;
  std::condition_variable call_;   // for threads without a slot: there is work that nobody takes
  std::condition_variable work_;   // for those that have one
  std::condition_variable ended_;  // steps ended: for the videos' threads
  std::vector<std::shared_ptr<Lane>> lanes_;  // that are not over, or not sealed
  std::uint64_t bytes_ = 0;                   // of all lanes
  std::uint64_t elsewhere_ = 0;               // that wait for their place, of all videos
  int videos_ = 0;                            // that have lanes
  int helping_ = 0, idle_ = 0;                // threads with a slot; of these, without work
  bool called_ = false;                       // a thread without a slot
  std::atomic<bool> closing_ = false;         // set under the mutex
  std::vector<std::thread> threads_;
};

/// The lanes of one video, for its thread, which has a slot. Thread-safety: one thread at a time.
class VideoLanes {
 public:
  explicit VideoLanes(Crew& crew);
  /// Drops steps that have not begun, and waits for the others.
  ~VideoLanes();
  VideoLanes(const VideoLanes&) = delete;
  VideoLanes& operator=(const VideoLanes&) = delete;

  std::shared_ptr<Lane> open();
  /// True if other threads help or shall help, since there are fewer videos than slots. Frames wait
  /// for them.
  bool is_helped() const;
  /// Whether a frame of `bytes` may wait, with a fifth kept for frames without pixels; true if no
  /// frame has to wait.
  bool has_room(std::uint64_t bytes) const;
  /// Adds to this video's bytes that wait elsewhere: they take room that encoding lanes do not
  /// free.
  void note_waiting(std::int64_t bytes);
  /// Adds the next step of a lane, and the bytes that wait with it. Also works itself if the crew
  /// is behind. Drops the step if an earlier one has thrown.
  void add(Lane& lane, std::uint64_t bytes, Lane::Step step);
  /// Says that no more steps come.
  void seal(Lane& lane);
  /// Drops the steps that have not begun, since their results are not wanted.
  void cancel(Lane& lane);
  /// Whether all steps of a sealed lane have ended.
  bool is_over(const Lane& lane) const;
  /// Works until they have ended.
  void finish(Lane& lane);
  /// Rethrows the lane's first exception, if any.
  void check(const Lane& lane) const;

 private:
  bool waiting() const;  // whether a lane of this video has steps that have not ended
  int lasting() const;   // lanes of it that keep a thread busy for a while

  Crew& crew_;
  std::int64_t elsewhere_ = 0;  // bytes that wait
};

}  // namespace vfm::clip
