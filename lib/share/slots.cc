// SPDX-License-Identifier: Apache-2.0
#include "share/slots.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/safe_point.h"
#include "base/stop.h"

namespace vfm::share {

struct Slots::State {
  int threads = 1;
  int read_fd = -1, write_fd = -1;
  bool own_fds = false;
  std::mutex mutex;
  std::condition_variable freed;
  int held = 0;
  int items = 0;              // items that wait for a slot
  bool implicit_free = true;  // the slot every make child owns without a token
  std::vector<char> tokens;   // borrowed; the bytes go back as they came
  std::shared_ptr<PipeBoard> board;
  bool shared = false;  // whether the slots are those of the board
  int away = 0;         // sum of add_away()
  Slots* of = nullptr;
  std::shared_ptr<OrderedFlow> flow;
};

namespace {

thread_local Slots::Hold* innermost_hold = nullptr;

/// Returns the last value of --jobserver-auth= (make 4.2+) or --jobserver-fds= (older).
std::string jobserver_auth(const std::string& makeflags) {
  for (const char* option : {"--jobserver-auth=", "--jobserver-fds="}) {
    const std::size_t at = makeflags.rfind(option);
    if (at == std::string::npos) continue;
    const std::size_t begin = at + std::char_traits<char>::length(option);
    return makeflags.substr(begin, makeflags.find(' ', begin) - begin);
  }
  return {};
}

/// Returns {3, 4} for "3,4", or {-1, -1} for other text.
std::pair<int, int> jobserver_numbers(const std::string& auth) {
  int read_fd = -1, write_fd = -1;
  const char* const end = auth.data() + auth.size();
  const auto first = std::from_chars(auth.data(), end, read_fd);
  if (first.ec != std::errc{} || first.ptr == end || *first.ptr != ',') return {-1, -1};
  if (std::from_chars(first.ptr + 1, end, write_fd).ec != std::errc{}) return {-1, -1};
  return {read_fd, write_fd};
}

class Counted {
 public:
  Counted(int& count, bool counts) : count_(count), by_(counts ? 1 : 0) { count_ += by_; }
  ~Counted() { count_ -= by_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  int& count_;
  int by_;
};

class ShownWait {
 public:
  ShownWait(PipeBoard& board, bool shows) : board_(board), by_(shows ? 1 : 0) {
    board_.show_waiting(by_);
  }
  ~ShownWait() { board_.show_waiting(-by_); }
  ShownWait(const ShownWait&) = delete;
  ShownWait& operator=(const ShownWait&) = delete;

 private:
  PipeBoard& board_;
  int by_;
};

void write_token(int fd, char token) {
  while (::write(fd, &token, 1) < 0 && errno == EINTR) {
  }
}

/// Returns whether both descriptors are open and belong to one pipe. A recipe line without '+' gets
/// make's numbers but not make's descriptors: a shell may have opened its own files under the same
/// numbers, and nobody else may read from these files.
bool are_of_a_pipe(int one, int other) {
  struct stat a {
  }, b{};
  if (one < 0 || other < 0 || ::fstat(one, &a) != 0 || ::fstat(other, &b) != 0) return false;
  return S_ISFIFO(a.st_mode) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

Slots::Slots(int threads) : state_(std::make_unique<State>()) {
  state_->threads = std::max(1, threads);
}

Slots::Slots(int threads, const std::string& makeflags) : Slots(threads) {
  const std::string auth = jobserver_auth(makeflags);
  if (auth.starts_with("fifo:")) {
    // Opens only a fifo, since opening a device may have effects.
    struct stat status {};
    if (::stat(auth.c_str() + 5, &status) != 0 || !S_ISFIFO(status.st_mode)) return;
    const int fd = ::open(auth.c_str() + 5, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (are_of_a_pipe(fd, fd))
      state_->read_fd = state_->write_fd = fd, state_->own_fds = true;
    else if (fd >= 0)
      ::close(fd);
    return;
  }
  const auto [read_fd, write_fd] = jobserver_numbers(auth);
  if (!are_of_a_pipe(read_fd, write_fd)) return;
  // make's descriptor blocks, and another program may take the token between poll() and read(). A
  // new file description of the same pipe can be non-blocking without a change of make's.
  const std::string self = fmt::format("/proc/self/fd/{}", read_fd);
  state_->read_fd = ::open(self.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (state_->read_fd < 0) return;
  state_->own_fds = true;
  state_->write_fd = write_fd;
}

Slots::Slots(int threads, const std::string& makeflags, std::shared_ptr<PipeBoard> board)
    : Slots(threads, board && board->slots() != PipeBoard::kNone ? std::string() : makeflags) {
  if (!board) return;
  board->set_most(state_->threads);
  state_->shared = board->slots() != PipeBoard::kNone;
  if (state_->shared) act_at_safe_points(Change::settle);
  state_->board = std::move(board);
}

Slots::Slots(Slots& of, int threads) : Slots(threads) {
  state_->of = &of;
}

std::string Slots::given_jobserver(const std::string& makeflags) {
  const std::string auth = jobserver_auth(makeflags);
  if (auth.starts_with("fifo:")) return makeflags;
  const auto [read_fd, write_fd] = jobserver_numbers(auth);
  return are_of_a_pipe(read_fd, write_fd) ? makeflags : std::string();
}

bool Slots::finds_jobserver(const std::string& makeflags) {
  return Slots(1, makeflags).has_jobserver();
}

/// Gives make the tokens of killed programs of this pipe. All tokens of make are '+'.
void Slots::give_back_lost() noexcept {
  State& s = *state_;
  if (!s.board || s.shared || s.read_fd < 0) return;
  for (int lost = s.board->take_lost_tokens(); lost > 0; --lost)
    write_token(s.write_fd, '+');
}

Slots::~Slots() {
  give_back_lost();
  if (state_->own_fds && state_->read_fd >= 0) ::close(state_->read_fd);
}

int Slots::threads() const {
  return state_->threads;
}
bool Slots::has_jobserver() const {
  return state_->read_fd >= 0;
}

int Slots::items_at_once() const {
  return state_->threads + state_->away;
}
void Slots::add_away(int items) {
  state_->away += items;
}

void Slots::set_flow(std::shared_ptr<OrderedFlow> flow) {
  state_->flow = std::move(flow);
}
OrderedFlow* Slots::flow() const {
  return state_->flow.get();
}

bool Slots::wanted() const {
  if (state_->of) return state_->of->wanted();
  if (state_->shared) return state_->board->wanted();
  const std::lock_guard lock(state_->mutex);
  return state_->items > 0;
}

bool Slots::acquire(Use use, const std::atomic<bool>* over) {
  if (state_->of) return state_->of->acquire(use, over);
  const auto& board = state_->board;
  if (!board) return acquire_plain(use, over);
  if (state_->shared) return board->acquire(use, over);
  {
    const ShownWait shown(*board, use == Use::item);
    if (!acquire_plain(use, over)) return false;
  }
  board->show_held(1);
  return true;
}

bool Slots::acquire_plain(Use use, const std::atomic<bool>* over) {
  State& s = *state_;
  std::unique_lock lock(s.mutex);
  const Counted waits(s.items, use == Use::item);
  const auto may = [&] { return s.held < s.threads && (use == Use::item || s.items == 0); };
  for (;;) {
    check_stop();
    if (over && *over) return false;
    if (may()) {
      if (s.read_fd < 0) break;
      if (s.implicit_free) {
        s.implicit_free = false;
        break;
      }
      // Waits in short turns without the lock, so that release() and stop requests get through.
      lock.unlock();
      pollfd ready{s.read_fd, POLLIN, 0};
      const int polled = ::poll(&ready, 1, 50);
      lock.lock();
      if (polled <= 0) {
        lock.unlock();
        give_back_lost();
        lock.lock();
        continue;
      }
      if (!may()) continue;
      char token;
      const ssize_t got = ::read(s.read_fd, &token, 1);
      if (got == 1) {
        if (s.board) s.board->show_tokens(1);
        s.tokens.push_back(token);
        break;
      }
      if (got == 0 || (errno != EAGAIN && errno != EINTR))
        fail("the jobserver of make went away; run the command again, or with -j N outside make");
      continue;
    }
    s.freed.wait_for(lock, std::chrono::milliseconds(50));
  }
  ++s.held;
  return true;
}

void Slots::release() noexcept {
  if (state_->of) return state_->of->release();
  if (state_->shared) return state_->board->release();
  if (state_->board) state_->board->show_held(-1);
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  --s.held;
  if (!s.tokens.empty()) {
    const char token = s.tokens.back();
    s.tokens.pop_back();
    if (s.board) s.board->show_tokens(-1);
    write_token(s.write_fd, token);
  } else {
    s.implicit_free = true;
  }
  s.freed.notify_all();  // all, since a woken helper may have to leave the slot to an item
}

Slots::Hold::Hold(Slots& slots, Use use, const std::atomic<bool>* over)
    : slots_(slots), use_(use), outer_(innermost_hold), has_(slots.acquire(use, over)) {
  innermost_hold = this;
}

Slots::Hold::~Hold() {
  innermost_hold = outer_;
  set(false);
}

void Slots::Hold::set(bool has) noexcept {
  if (has == has_) return;
  if (!has) slots_.release();
  try {
    has_ = has && slots_.acquire(use_);
  } catch (const Stopped&) {
  } catch (const std::exception&) {
  }
}

Slots::Change::Change(bool has) : hold_(innermost_hold), had_(hold_ && hold_->has_) {
  if (hold_) hold_->set(has);
}

Slots::Change::~Change() {
  if (hold_) hold_->set(had_);
}

void Slots::Change::settle() noexcept {
  thread_local bool settles = false;  // The wait for a slot calls safe points.
  if (settles || !innermost_hold || !innermost_hold->has_) return;
  const State* state = innermost_hold->slots_.state_.get();
  while (state->of)
    state = state->of->state_.get();
  if (!state->shared || !state->board->owes()) return;
  settles = true;
  { const Away away; }
  settles = false;
}

Slots::Waiting::Waiting(Slots& slots, PipeBoard::Wait wait)
    : board_(slots.state_->board.get()), wait_(wait) {
  if (board_) board_->begin_wait(wait_);
}

Slots::Waiting::~Waiting() {
  if (board_) board_->end_wait(wait_);
}

}  // namespace vfm::share
