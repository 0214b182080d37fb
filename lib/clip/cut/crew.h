// A pool of threads that encode clips, so that one video can keep all slots busy.
//
// Each video has a thread, which decodes it, finds shots and decides where clips begin and end.
// Each clip has a lane: a queue of steps, one for each frame. Threads of the crew, each with a slot
// (share/slots.h), run the steps. Steps of a lane run one at a time, in order, so the encoder
// writes the same bytes as in one thread. Several clips of a video are encoded at once, because the
// video's thread runs ahead of the encoders while memory for waiting frames lasts. When that memory
// is full, the thread continues until more lanes than slots have frames. Then the thread encodes,
// too. Frames that exceed the memory may lose their pixels; the encoding thread decodes such frames
// again (clip/cut/late_frames.h). Without a crew (-j1, or as many videos as slots) the video's
// thread encodes each frame at once. A thread of the crew gives up its slot if a video waits for
// one.
//
// A free thread takes the lane with most steps. Each open encoder takes the memory of forty frames
// or more. Therefore at most two encoders are open for each slot, or one if many frames wait. More
// encoders are open only if a video's thread must encode and has no open encoder.
//
// A step that throws ends its lane. The video's thread rethrows the exception (VideoLanes::check)
// in the order of clips, so the reported error does not depend on threads.
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

/// The queue of steps for one clip, made by VideoLanes::open().
class Lane {
 public:
  using Step = std::function<void()>;

 private:
  friend class Crew;
  friend class VideoLanes;
  explicit Lane(const VideoLanes* video) : video_(video) {}
  bool ready() const { return !running_ && !steps_.empty(); }
  bool over() const { return !running_ && steps_.empty(); }

  // The crew's mutex guards all these.
  const VideoLanes* video_;
  std::deque<std::pair<std::uint64_t, Step>> steps_;  // with the bytes of each
  bool running_ = false;
  bool begun_ = false;   // a step ran
  bool sealed_ = false;  // no more steps come
  std::exception_ptr error_;
};

/// The pool of encoding threads. Thread-safety: any thread.
class Crew {
 public:
  /// Starts one thread fewer than `slots` has. `most_bytes`: the limit for waiting steps. If it is
  /// 0, no threads are started. `slots` must outlive this.
  Crew(share::Slots& slots, std::uint64_t most_bytes);
  /// Ends the threads. All VideoLanes must be destroyed earlier.
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
  std::condition_variable call_;              // wakes threads without a slot: there is work to take
  std::condition_variable work_;              // wakes threads with a slot
  std::condition_variable ended_;             // wakes videos' threads: steps have ended
  std::vector<std::shared_ptr<Lane>> lanes_;  // unfinished or not sealed
  std::uint64_t bytes_ = 0;                   // of all lanes
  std::uint64_t elsewhere_ = 0;               // noted by note_waiting(), of all videos
  int videos_ = 0;                            // with lanes
  int helping_ = 0, idle_ = 0;                // threads with a slot; idle_: those without work
  bool called_ = false;                       // a thread without a slot was called
  std::atomic<bool> closing_ = false;         // set under the mutex
  std::vector<std::thread> threads_;
};

/// The lanes of one video, used by its thread, which has a slot. Thread-safety: one thread at a
/// time.
class VideoLanes {
 public:
  explicit VideoLanes(Crew& crew);
  /// Drops steps that have not begun, and waits for running steps.
  ~VideoLanes();
  VideoLanes(const VideoLanes&) = delete;
  VideoLanes& operator=(const VideoLanes&) = delete;

  std::shared_ptr<Lane> open();
  /// Returns true if threads of the crew encode for the videos, or will encode, because there are
  /// fewer videos than slots.
  bool is_helped() const;
  /// Returns true if memory has room for a waiting frame of `bytes`, or is_helped() is false. A
  /// fifth of the limit is reserved for frames without pixels.
  bool has_room(std::uint64_t bytes) const;
  /// Adds `bytes`, which may be negative, to this video's waiting bytes outside of lanes. These
  /// bytes are used memory, too.
  void note_waiting(std::int64_t bytes);
  /// Adds a lane's next step, which holds `bytes`. If too many steps wait, also runs steps in the
  /// calling thread. Drops the step if an earlier step of the lane has thrown.
  void add(Lane& lane, std::uint64_t bytes, Lane::Step step);
  /// Seals the lane after its last step.
  void seal(Lane& lane);
  /// Drops the steps that have not begun, because the clip is not wanted.
  void cancel(Lane& lane);
  /// Returns true if all steps of a sealed lane have ended.
  bool is_over(const Lane& lane) const;
  /// Runs steps until is_over().
  void finish(Lane& lane);
  /// Rethrows the lane's first exception, if any.
  void check(const Lane& lane) const;

 private:
  bool waiting() const;  // a lane of this video has unfinished steps
  int lasting() const;   // lanes of this video that keep a thread busy for a while

  Crew& crew_;
  std::int64_t elsewhere_ = 0;  // by note_waiting()
};

}  // namespace vfm::clip
