// The encoding of clips, done by whichever thread is free: so one video keeps all slots busy.
//
// A video has one thread of its own, which decodes it, finds its shots and decides where clips
// begin and end. What is to be done for a clip, frame by frame, goes into the clip's lane, and the
// crew's threads, each with a slot of its own (base/slots.h), empty the lanes. Of a lane one step
// runs at a time, in the order that they came in: an encoder sees what it would see in one thread,
// and writes the same bytes. Several clips of one video are encoded at once, as the video's thread
// runs ahead of the encoders: while there is room for what waits, of all videos together, and then
// until there is a lane for each slot and one to spare, each with some frames, so that no thread is
// soon without. Then it encodes, too. The pixels of frames for which there is no room may be freed:
// a frame without them hardly counts, and who encodes decodes it once more (clip/late_frames.h).
// With no crew at hand (-j1, or as many videos as slots) it encodes each frame as it comes, and
// none waits. A thread of the crew gives up its slot when a video waits for one.
//
// What lasts longest is begun first: a free thread takes the lane that has most steps. Few encoders
// are open at a time, since they have memory of their own, forty frames and more: two for each
// slot, one where much waits, and more only where a video's thread has to encode and has none that
// is open.
//
// A step that throws ends its lane; the video's thread asks for that (VideoLanes::check), when it
// comes to the clip in the order of the video. So which error is reported does not depend on the
// threads.
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

#include "base/slots.h"

namespace vfm::clip {

class VideoLanes;

/// What is to be done for one clip, step by step. Made by VideoLanes::open().
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
  /// As many threads as `slots` has beside one; none where `most_bytes`, of the steps that wait, is
  /// 0. `slots` must outlive this.
  Crew(Slots& slots, std::uint64_t most_bytes);
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

  Slots& slots_;
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
  /// Drops what has not begun, and waits for what has.
  ~VideoLanes();
  VideoLanes(const VideoLanes&) = delete;
  VideoLanes& operator=(const VideoLanes&) = delete;

  std::shared_ptr<Lane> open();
  /// Whether other threads help, or are to: there are fewer videos than slots. Frames wait for
  /// them.
  bool is_helped() const;
  /// Whether a frame of so many bytes may wait, with a fifth left for notes of frames without
  /// pixels; true where none has to.
  bool has_room(std::uint64_t bytes) const;
  /// So many bytes of this video more, or less, wait elsewhere: they take room, but no lane that
  /// encodes would free it.
  void note_waiting(std::int64_t bytes);
  /// The next step of a lane, and the memory that waits with it. Works, too, where the crew is
  /// behind. Dropped if an earlier step has thrown.
  void add(Lane& lane, std::uint64_t bytes, Lane::Step step);
  /// No step comes after those that there are.
  void seal(Lane& lane);
  /// Drops the steps that have not begun: nobody wants what they would make.
  void cancel(Lane& lane);
  /// Whether all steps of a sealed lane have ended.
  bool is_over(const Lane& lane) const;
  /// Works until they have.
  void finish(Lane& lane);
  /// Throws what the first step that threw has thrown.
  void check(const Lane& lane) const;

 private:
  bool waiting() const;  // whether a lane of this video has steps that have not ended
  int lasting() const;   // lanes of it that keep a thread busy for a while

  Crew& crew_;
  std::int64_t elsewhere_ = 0;  // bytes that wait
};

}  // namespace vfm::clip
