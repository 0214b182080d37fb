// Inside lib/dist only: NCCL's communicator of a group, the stream on which it works, and who sees
// to it that nobody waits for ever.
//
// The host waits for nothing that NCCL does, so a rank that is silent would show nowhere. A thread
// looks after what was queued: when NCCL says that another rank has ended, or nothing came to its
// end for the section's limit (World::section), it says so and aborts the communicator, which lets
// the GPU go on; the next call throws. Errors: NCCL's text, with the operation, axis, rank and
// host. Thread-safety: the thread that drives the GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "dist/device_carrier.h"
#include "dist/nccl_library_cuda.h"

namespace vfm::dist {

/// An event at the end of what is on the stream.
std::shared_ptr<CUevent_st> event_on(CUstream_st* stream);

class Communicator {
 public:
  /// A collective of the group.
  Communicator(Group& group, std::string where, std::shared_ptr<const Section> section);
  /// Aborts on the way out of an error, as the others may never come to what is under way.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  ncclComm_t comm() const { return comm_; }
  CUstream_st* stream() const { return stream_; }

  /// Held while something is queued.
  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }
  /// Throws Error if `status` is one.
  void check(ncclResult_t status, const std::string& place);
  /// Throws Error if what was queued before has failed, here or elsewhere. Under the lock.
  void poll(const std::string& place);
  /// What was queued now; returns the event of its end. Under the lock.
  std::shared_ptr<CUevent_st> queued(const std::string& place);

 private:
  std::string text_of(ncclResult_t status, const std::string& place) const;
  void watch();
  void give_up(std::string why);

  const int rank_, size_;
  const std::string where_;
  const std::shared_ptr<const Section> section_;
  ncclComm_t comm_ = nullptr;
  CUstream_st* stream_ = nullptr;
  bool failed_ = false;

  std::mutex mutex_;
  std::deque<std::pair<std::shared_ptr<CUevent_st>, std::string>> under_way_;
  std::string given_up_;  // why; the communicator is no more
  bool end_ = false;
  std::condition_variable ended_;
  std::thread watcher_;
};

}  // namespace vfm::dist
