// A pool of threads that encode clips, so that the clips of one video can use all slots
// (share/slots.h).
//
// Each video has a thread that decodes the video and decides where clips begin and end. Each clip
// has a Lane, which is a queue of steps with one step for each frame. Threads of the crew run the
// steps of a lane in order, so an encoder writes the same bytes with any number of threads. If the
// memory for waiting frames is full, the video's thread also encodes, or waiting frames lose
// their pixels and are decoded again later (clip/cut/late_frames.h). With -j1, or with as many
// videos as slots, the video's thread encodes each frame immediately.
//
// Each slot has at most two open encoders, or one if many frames wait. A video's thread may open
// one more encoder.
//
// If a step throws, later steps of its lane are dropped. The video's thread rethrows exceptions in
// the order of clips (VideoLanes::check).
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

class Lane {
 public:
  using Step = std::function<void()>;

 private:
  friend class Crew;
  friend class VideoLanes;
  explicit Lane(const VideoLanes* video) : video_(video) {}
  bool ready() const { return !running_ && !steps_.empty(); }
  bool over() const { return !running_ && steps_.empty(); }

  // The crew's mutex guards the members below.
  const VideoLanes* video_;
  std::deque<std::pair<std::uint64_t, Step>> steps_;  // steps with their sizes in bytes
  bool running_ = false;
  bool begun_ = false;
  bool sealed_ = false;  // no further step is added
  std::exception_ptr error_;
};

/// The pool of encoding threads. Thread-safety: any thread.
class Crew {
 public:
  /// Starts a thread for each slot except the first, or no thread if `most_bytes` is 0.
  /// `most_bytes` limits the memory of waiting steps. `slots` must outlive the crew.
  Crew(share::Slots& slots, std::uint64_t most_bytes);
  /// Ends the threads. Destroy all VideoLanes before the crew.
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
  std::condition_variable call_;              // wakes threads without a slot
  std::condition_variable work_;              // wakes threads with a slot
  std::condition_variable ended_;             // wakes videos' threads after steps
  std::vector<std::shared_ptr<Lane>> lanes_;  // unfinished or unsealed lanes
  std::uint64_t bytes_ = 0;
  std::uint64_t elsewhere_ = 0;
  int videos_ = 0;
  int helping_ = 0, idle_ = 0;  // threads with a slot, and idle threads with a slot
  bool called_ = false;
  std::atomic<bool> closing_ = false;  // changed only under the mutex
  std::vector<std::thread> threads_;
};

/// The lanes of one video. Thread-safety: only the video's thread, which has a slot.
class VideoLanes {
 public:
  explicit VideoLanes(Crew& crew);
  /// Drops steps that have not begun, and waits for running steps.
  ~VideoLanes();
  VideoLanes(const VideoLanes&) = delete;
  VideoLanes& operator=(const VideoLanes&) = delete;

  std::shared_ptr<Lane> open();
  /// Returns true if there are fewer videos than slots, so that threads of the crew encode.
  bool is_helped() const;
  /// Returns true if a frame of `bytes` bytes may wait, or if is_helped() is false.
  bool has_room(std::uint64_t bytes) const;
  /// Adds `bytes`, which may be negative, to the size of the video's frames that wait outside of
  /// lanes.
  void note_waiting(std::int64_t bytes);
  /// Adds a lane's next step, which keeps `bytes` of memory. If too many steps wait, also runs
  /// steps in the calling thread.
  void add(Lane& lane, std::uint64_t bytes, Lane::Step step);
  /// Notes that the lane gets no further step.
  void seal(Lane& lane);
  /// Drops steps that have not begun.
  void cancel(Lane& lane);
  /// Returns true if all steps of a sealed lane have ended.
  bool is_over(const Lane& lane) const;
  /// Runs steps until is_over() is true.
  void finish(Lane& lane);
  /// Rethrows the lane's exception, if a step has thrown.
  void check(const Lane& lane) const;

 private:
  bool waiting() const;
  int lasting() const;

  Crew& crew_;
  std::int64_t elsewhere_ = 0;
};

}  // namespace vfm::clip
