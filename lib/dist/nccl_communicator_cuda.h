// Inside lib/dist only: the NCCL communicator of a group, the stream that it works on, and a thread
// that prevents endless waits.
//
// The host does not wait for NCCL's work, so a silent rank would go unnoticed. A watching thread
// looks at the queued work. When NCCL reports that another rank has ended, or nothing finishes
// within the section's limit (World::section), the thread logs that and aborts the communicator.
// The GPU then goes on, and the next call throws. The start of NCCL has a limit of its own. Errors:
// NCCL's text, with the operation, axis, rank and host. Thread-safety: the thread that drives the
// GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "dist/device_carrier.h"
#include "dist/nccl_library_cuda.h"

namespace vfm::dist {

/// Records an event after the work that is now on the stream.
std::shared_ptr<CUevent_st> event_on(CUstream_st* stream);

class Communicator {
 public:
  /// A collective of the group.
  Communicator(Group& group, std::string where, std::shared_ptr<const Section> section);
  /// While an exception is in flight, aborts: the others may never start what is in progress.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  ncclComm_t comm() const { return comm_; }
  CUstream_st* stream() const { return stream_; }

  /// Hold this lock while work is queued.
  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }
  /// Throws Error unless `status` means success.
  void check(ncclResult_t status, const std::string& place);
  /// Throws Error if earlier work has failed on this rank or another. Call it with the lock held.
  void poll(const std::string& place);
  /// Registers the work queued last and returns the event of its end, after which `ended` is
  /// called. Call it with the lock held.
  std::shared_ptr<CUevent_st> queued(const std::string& place, std::function<void()> ended);

 private:
  std::string text_of(ncclResult_t status, const std::string& place) const;
  void watch();
  void end_watch();
  void give_up(std::string why);

  const int rank_, size_;
  const std::string where_;
  const std::shared_ptr<const Section> section_;
  ncclComm_t comm_ = nullptr;
  CUstream_st* stream_ = nullptr;
  bool failed_ = false;
  bool made_ = false;  // comm_, by all ranks

  std::mutex mutex_;
  struct Queued {
    std::shared_ptr<CUevent_st> end;
    std::string place;
    std::function<void()> ended;
  };
  std::deque<Queued> under_way_;
  std::string given_up_;  // why the communicator was aborted; empty: it was not
  bool end_ = false;
  std::condition_variable ended_;
  std::thread watcher_;
};

}  // namespace vfm::dist
