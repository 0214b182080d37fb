// Inside lib/dist only: what the ranks of an MPI world tell each other before anything else.
//
// Thread-safety: the thread that calls MPI.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "dist/pulse_thread.h"

namespace vfm::dist {

/// MPI_Init may succeed where no message can travel: its own goes another way, by way of the
/// launcher. Then the first collective would wait for ever. While an object of this class lives
/// longer than kSeconds, rank 0 says what to look at, and all ranks end with status 5.
class FirstExchange {
 public:
  static constexpr int kSeconds = 30;
  explicit FirstExchange(int rank, std::string host);
  ~FirstExchange();
  FirstExchange(const FirstExchange&) = delete;
  FirstExchange& operator=(const FirstExchange&) = delete;

 private:
  void watch(int rank, const std::string& host);
  std::mutex mutex_;
  bool done_ = false;
  std::condition_variable came_;
  std::thread watcher_;
};

/// "MPI takes the interfaces eth0 (OMPI_MCA_btl_tcp_if_include), and NCCL takes the interfaces that
/// it chooses (NCCL_SOCKET_IFNAME is not set)".
std::string interface_words();

/// A collective of `size` ranks. `first` is the first rank of this rank's host, whose name is
/// `host`.
PulsePlan make_pulse_plan(int rank, int size, int first, const std::string& host);

}  // namespace vfm::dist
