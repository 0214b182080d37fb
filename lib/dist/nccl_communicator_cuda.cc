// SPDX-License-Identifier: Apache-2.0
#include "dist/nccl_communicator_cuda.h"

#include <cuda_runtime.h>

#include <chrono>
#include <exception>

#include "base/error.h"
#include "base/log.h"
#include "tensor/device.h"

namespace vfm::dist {

using nccl::library;

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
  check(library().CommInitRank(&comm_, size_, id, rank_), place);
  watcher_ = std::thread([this] { watch(); });
}

Communicator::~Communicator() {
  {
    const auto held = lock();
    end_ = true;
  }
  ended_.notify_one();
  watcher_.join();
  if (given_up_.empty()) {
    if (failed_ || std::uncaught_exceptions() > 0)
      library().CommAbort(comm_);
    else
      library().CommDestroy(comm_);
  }
  cudaStreamDestroy(stream_);
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
  auto held = lock();
  while (!ended_.wait_for(held, kTurn, [this] { return end_; })) {
    bool went_on = under_way_.empty();
    while (!under_way_.empty() && cudaEventQuery(under_way_.front().end.get()) == cudaSuccess) {
      under_way_.front().ended();
      under_way_.pop_front();
      went_on = true;
    }
    waited = went_on ? Seconds() : waited + kTurn;
    // Where another rank has ended, what is queued would never come to its end by itself, and the
    // thread that drives the GPU may be waiting for it.
    ncclResult_t status = ncclSuccess;
    if (!under_way_.empty() && library().CommGetAsyncError(comm_, &status) == ncclSuccess &&
        status != ncclSuccess && status != ncclInProgress)
      return give_up(text_of(status, under_way_.front().place));
    const double limit = section_->limit;
    if (limit > 0 && waited.count() >= limit)
      return give_up(vfm::format(
          "{}: not done for {:.3g} s{}: a rank of the group is silent, or has failed ({})",
          under_way_.front().place, limit,
          section_->learnt ? " (three times the usual, at least 'train.silent_limit')" : "",
          where_));
  }
}

/// Lets the GPU go on; the next call throws. Under the lock.
void Communicator::give_up(std::string why) {
  given_up_ = std::move(why);
  if (section_->lost) section_->lost(given_up_);
  log_error("{}", given_up_);
  library().CommAbort(comm_);
}

}  // namespace vfm::dist
