// SPDX-License-Identifier: Apache-2.0
#include "dist/nccl_communicator_cuda.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <exception>

#include "base/error.h"
#include "base/log.h"
#include "tensor/device.h"

namespace vfm::dist {

using nccl::library;

namespace {

// A setup may take longer, but here all ranks come at once.
constexpr double kStartSeconds = 300;
// Said of a group whose ranks have not met yet.
constexpr const char* kFirst =
    ", or the hosts do not reach each other over the interfaces that NCCL takes: see that no "
    "firewall stands between them, and name others, such as with NCCL_SOCKET_IFNAME=eth0";

}  // namespace

std::shared_ptr<CUevent_st> event_on(CUstream_st* stream) {
  cudaEvent_t made = nullptr;
  check_gpu(cudaEventCreateWithFlags(&made, cudaEventDisableTiming), "make an event");
  std::shared_ptr<CUevent_st> event(made, [](cudaEvent_t e) { cudaEventDestroy(e); });
  check_gpu(cudaEventRecord(made, stream), "record an event");
  return event;
}

Communicator::Communicator(Group& group, std::string where, std::shared_ptr<const Section> section)
    : rank_(group.rank()),
      size_(group.size()),
      where_(std::move(where)),
      section_(std::move(section)) {
  ncclUniqueId id{};
  const std::string place = vfm::format("the group '{}'", group.axis());
  if (rank_ == 0) check(library().GetUniqueId(&id), place);
  group.broadcast(lend(std::as_writable_bytes(std::span(&id, 1))), 0).wait();
  check_gpu(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "make a stream");
  watcher_ = std::thread([this] { watch(); });
  const ncclResult_t status = library().CommInitRank(&comm_, size_, id, rank_);
  if (status != ncclSuccess) end_watch();
  check(status, place);
  const auto held = lock();
  made_ = true;
}

Communicator::~Communicator() {
  end_watch();
  if (given_up_.empty()) {
    if (failed_ || std::uncaught_exceptions() > 0)
      library().CommAbort(comm_);
    else
      library().CommDestroy(comm_);
  }
  cudaStreamDestroy(stream_);
}

void Communicator::end_watch() {
  {
    const auto held = lock();
    end_ = true;
  }
  ended_.notify_one();
  watcher_.join();
}

std::string Communicator::text_of(ncclResult_t status, const std::string& place) const {
  const std::string last = library().GetLastError(comm_);
  return vfm::format("{}: NCCL: {}{}{} ({})", place, library().GetErrorString(status),
                     last.empty() ? "" : ": ", last, where_);
}

void Communicator::check(ncclResult_t status, const std::string& place) {
  if (status == ncclSuccess) return;
  failed_ = true;
  const std::string text = text_of(status, place);
  // A fault of this program, which no other rank or link has caused.
  if (status == ncclInvalidArgument || status == ncclInvalidUsage) fail("{}", text);
  throw ExchangeFailed(text);
}

void Communicator::poll(const std::string& place) {
  if (!given_up_.empty()) throw ExchangeFailed(given_up_);
  ncclResult_t status = ncclSuccess;
  check(library().CommGetAsyncError(comm_, &status), place);
  check(status, place);
}

std::shared_ptr<CUevent_st> Communicator::queued(const std::string& place,
                                                 std::function<void()> ended) {
  under_way_.push_back({event_on(stream_), place, std::move(ended)});
  return under_way_.back().end;
}

void Communicator::watch() {
  using Seconds = std::chrono::duration<double>;
  constexpr Seconds kTurn(0.1);
  // In turns, not by the clock: the time in which this process is stopped does not count.
  Seconds waited{};
  bool met = false;  // something has come from other ranks
  auto held = lock();
  while (!ended_.wait_for(held, kTurn, [this] { return end_; })) {
    bool went_on = made_ && under_way_.empty();
    while (!under_way_.empty() && cudaEventQuery(under_way_.front().end.get()) == cudaSuccess) {
      under_way_.front().ended();
      under_way_.pop_front();
      went_on = met = true;
    }
    waited = went_on ? Seconds() : waited + kTurn;
    // Where another rank has ended, what is queued would never come to its end by itself, and the
    // thread that drives the GPU may be waiting for it.
    ncclResult_t status = ncclSuccess;
    if (!under_way_.empty() && library().CommGetAsyncError(comm_, &status) == ncclSuccess &&
        status != ncclSuccess && status != ncclInProgress)
      return give_up(text_of(status, under_way_.front().place));
    double limit = section_->limit;
    if (!made_ && limit > 0) limit = std::min(limit, kStartSeconds);
    if (limit > 0 && waited.count() >= limit)
      return give_up(vfm::format(
          "{}: not done for {:.3g} s{}: a rank of the group is silent, or has failed{} ({})",
          made_ ? under_way_.front().place : "the start of NCCL", limit,
          section_->learnt ? " (three times the usual, at least 'train.silent_limit')" : "",
          met ? "" : kFirst, where_));
  }
}

/// Lets the GPU go on; the next call throws. Under the lock.
void Communicator::give_up(std::string why) {
  given_up_ = std::move(why);
  if (section_->lost) section_->lost(given_up_);
  log_error("{}", given_up_);
  if (made_) library().CommAbort(comm_);
}

}  // namespace vfm::dist
