// SPDX-License-Identifier: Apache-2.0
#include "share/engine_sessions.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

#include "base/error.h"
#include "share/slots.h"

namespace vfm::share {
namespace {

/// GPU memory of a process's CUDA context.
constexpr std::int64_t kContextBytes = std::int64_t{512} << 20;

/// Sessions that one thread took and that no thread has given back, for each GpuKind.
using Holdings = std::array<std::atomic<int>, 3>;

const std::shared_ptr<Holdings>& holdings() {
  thread_local const auto own = std::make_shared<Holdings>();
  return own;
}

bool may_wait_for(GpuKind kind) {
  const Holdings& held = *holdings();
  for (auto k = static_cast<std::size_t>(kind); k < held.size(); ++k)
    if (held[k] > 0) return false;
  return true;
}

}  // namespace

struct EngineSessions::State {
  GpuKind kind = GpuKind::decode;
  bool waits = false;
  std::optional<GpuBoard> board;
  // Without a board:
  std::atomic<int> own = 0;  // free sessions
  std::mutex mutex;          // guards `failed`
  std::optional<std::string> failed;

  /// Limits the sessions of an encoder to those that a GPU can have free. Needs a board.
  int at_once(int count) const {
    return kind == GpuKind::encode ? std::min(count, std::max(1, board->most_sessions())) : count;
  }
  std::optional<GpuBoard::Lease> take(int count, bool may_wait);
  std::optional<GpuBoard::Lease> take_own(int count);
};

std::optional<GpuBoard::Lease> EngineSessions::State::take(int count, bool may_wait) {
  auto lease = board->take_sessions(at_once(count), false);
  if (lease || !may_wait) return lease;
  const Slots::Away away;
  for (;;) {
    const int now = at_once(count);
    lease = board->take_sessions(now, true);
    // A model that was loaded meanwhile has left fewer sessions for encoding.
    if (lease || at_once(count) >= now) return lease;
  }
}

std::optional<GpuBoard::Lease> EngineSessions::State::take_own(int count) {
  {
    const std::lock_guard lock(mutex);
    if (failed) throw Error("this GPU cannot: " + *failed, ErrorKind::device);
  }
  int free = own;
  while (free >= count && !own.compare_exchange_weak(free, free - count))
    continue;
  return free >= count ? std::optional(GpuBoard::Lease{nullptr, count}) : std::nullopt;
}

class EngineSessions::Taken final : public Session {
 public:
  Taken(std::shared_ptr<State> state, const GpuBoard::Lease& lease)
      : state_(std::move(state)), lease_(lease) {
    gpu = lease.gpu ? lease.gpu->index : 0;
    ++held();
  }
  ~Taken() override {
    --held();
    if (!state_->board)
      state_->own += lease_.sessions;
    else if (lease_.gpu)
      state_->board->give(lease_);
  }
  /// Returns the lease. The destructor then gives nothing back.
  GpuBoard::Lease release() { return std::exchange(lease_, {nullptr, 0}); }

 private:
  std::atomic<int>& held() { return (*holder_)[static_cast<std::size_t>(state_->kind)]; }

  std::shared_ptr<State> state_;
  GpuBoard::Lease lease_;
  std::shared_ptr<Holdings> holder_ = holdings();
};

EngineSessions::EngineSessions(const std::string& share, std::vector<SharedGpu> gpus,
                               const std::string& stage, GpuKind kind, Wait wait)
    : state_(std::make_shared<State>()) {
  state_->kind = kind;
  state_->waits = wait == Wait::yes;
  GpuNeed need;
  need.stage = stage;
  need.kind = kind;
  need.memory = kContextBytes;
  state_->board.emplace(share, std::move(gpus), std::move(need), GpuBoard::Actions{});
}

EngineSessions::EngineSessions(int own) : state_(std::make_shared<State>()) {
  state_->own = own;
}

EngineSessions::~EngineSessions() = default;

std::shared_ptr<EngineSessions::Session> EngineSessions::take(std::int64_t bytes, Wait wait) {
  State& s = *state_;
  constexpr std::int64_t kMost = 1 << 20;
  const auto count = static_cast<int>(
      std::clamp<std::int64_t>((bytes + kSessionBytes - 1) / kSessionBytes, 1, kMost));
  const bool may_wait = s.waits && wait == Wait::yes && may_wait_for(s.kind);
  const auto lease = s.board ? s.take(count, may_wait) : s.take_own(count);
  return lease ? std::make_shared<Taken>(state_, *lease) : nullptr;
}

bool EngineSessions::thread_may_wait() const {
  return may_wait_for(state_->kind);
}

void EngineSessions::fail(std::shared_ptr<Session> session, const std::string& why) {
  const auto taken = std::dynamic_pointer_cast<Taken>(session);
  if (!taken) return;
  if (state_->board) return state_->board->fail(taken->release(), why);
  const std::lock_guard lock(state_->mutex);
  state_->failed = why;
}

std::int64_t EngineSessions::kept_bytes(const SharedGpu& gpu) const {
  if (!state_->board) return 0;
  for (const SharedGpu& own : state_->board->gpus())
    if (own.name == gpu.name) return kContextBytes + own.sessions * kSessionBytes;
  return 0;
}

}  // namespace vfm::share
