// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/stop.h"
#include "io/remote/errands.h"
#include "io/remote/remote_file.h"
#include "io/remote/remote_object.h"
#include "io/remote/retry.h"

namespace vfm::io {
namespace {

constexpr std::uint64_t kFirstChunk = std::uint64_t{512} << 10;
constexpr std::uint64_t kLargestChunk = std::uint64_t{8} << 20;
constexpr std::uint64_t kSmallJump = std::uint64_t{256} << 10;

constexpr std::size_t kWorthWaking = std::size_t{256} << 10;
constexpr std::size_t kKeptMemory = 2;  // chunks

}  // namespace

/// Memory of chunks that were read, for later chunks. New memory costs the system as much time as
/// the bytes do.
class ChunkMemory {
 public:
  struct Piece {
    std::unique_ptr<char[]> bytes;
    std::size_t size = 0;
  };

  Piece take(std::size_t size) {
    {
      const std::lock_guard lock(mutex_);
      const auto found = std::find_if(free_.begin(), free_.end(),
                                      [&](const Piece& each) { return each.size >= size; });
      if (found != free_.end()) {
        Piece piece = std::move(*found);
        free_.erase(found);
        return piece;
      }
    }
    return {std::make_unique_for_overwrite<char[]>(size), size};
  }
  void give(Piece piece) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(piece));
    if (free_.size() <= kKeptMemory) return;
    free_.erase(std::min_element(free_.begin(), free_.end(),
                                 [](const Piece& x, const Piece& y) { return x.size < y.size; }));
  }

 private:
  std::mutex mutex_;
  std::vector<Piece> free_;
};

/// Bytes that one request brings. The request owns it too, so that nobody waits for a request whose
/// bytes are no longer wanted.
struct AheadChunk {
  AheadChunk(std::uint64_t from, std::size_t count, std::shared_ptr<ChunkMemory> of)
      : begin(from), size(count), memory(std::move(of)), piece(memory->take(count)) {}
  ~AheadChunk() { memory->give(std::move(piece)); }
  AheadChunk(const AheadChunk&) = delete;
  AheadChunk& operator=(const AheadChunk&) = delete;

  const std::uint64_t begin;
  const std::size_t size;
  const std::shared_ptr<ChunkMemory> memory;
  ChunkMemory::Piece piece;
  std::atomic<bool> cancelled{false};
  std::shared_ptr<Errand> errand;
  std::atomic<std::size_t> filled{0};
  std::atomic<std::size_t> wanted{SIZE_MAX};  // the reader wakes when so many are filled
  std::mutex mutex;                           // guards the members below
  std::condition_variable changed;
  bool finished = false;  // The request no longer touches the bytes.
  std::exception_ptr error;

  const char* bytes() const { return piece.bytes.get(); }
  std::uint64_t end() const { return begin + size; }
  /// Waits until `more` bytes after the first `count` are there, or many, or some after a while.
  /// Returns the number of all. Throws the error of the request, and Stopped.
  std::size_t await(std::size_t count, std::size_t more, const std::function<void()>& waiting) {
    const std::size_t target = std::min(size, count + std::min(more, kWorthWaking));
    if (const std::size_t there = filled; there >= target) return there;
    std::unique_lock lock(mutex);
    wanted = target;
    while (filled < target && !finished) {
      changed.wait_for(lock, std::chrono::milliseconds(100));
      if (filled >= target || finished) break;
      lock.unlock();
      check_stop();
      if (waiting) waiting();
      errand->run_here();  // All threads for requests may wait in this way.
      lock.lock();
      if (filled > count) break;
    }
    wanted = SIZE_MAX;
    const std::size_t there = filled;
    if (there <= count) std::rethrow_exception(error);
    return there;
  }
  void read(const RemoteObject& object) {
    try {
      object.fetch(
          begin, size,
          [this](std::span<const char> some) {
            const std::size_t before = filled.load(std::memory_order_relaxed);
            std::memcpy(piece.bytes.get() + before, some.data(), some.size());
            filled = before + some.size();
            if (before + some.size() < wanted) return;
            const std::lock_guard lock(mutex);
            changed.notify_all();
          },
          &cancelled);
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    finished = true;
    changed.notify_all();
  }
};

/// Chunks that are under way or there, one after the other.
class AheadChunks {
 public:
  AheadChunks(std::shared_ptr<RemoteObject> object, std::size_t ahead,
              const std::function<void()>& waiting)
      : object_(std::move(object)),
        ahead_(std::max<std::uint64_t>(ahead, kFirstChunk)),
        waiting_(waiting) {}
  ~AheadChunks() { clear(); }
  AheadChunks(const AheadChunks&) = delete;
  AheadChunks& operator=(const AheadChunks&) = delete;

  std::size_t read_some(char* out, std::size_t size, std::uint64_t position) {
    go_to(position);
    ask(position);
    AheadChunk& front = *chunks_.front();
    const auto at = static_cast<std::size_t>(position - front.begin);
    const std::size_t count = std::min(size, front.await(at, size, waiting_) - at);
    std::memcpy(out, front.bytes() + at, count);
    in_order_ += count;
    return count;
  }

 private:
  void go_to(std::uint64_t position) {
    const bool held = !chunks_.empty() && position >= chunks_.front()->begin;
    if (!held || position > asked_ + kSmallJump) {
      clear();
      asked_ = position;
      in_order_ = 0;
    }
    while (!chunks_.empty() && chunks_.front()->end() <= position)
      drop_front();
  }

  /// Begins requests until the window is full. It grows with what is read in order.
  void ask(std::uint64_t position) {
    const std::uint64_t window = std::clamp(2 * in_order_, kFirstChunk, ahead_);
    const std::uint64_t chunk = std::clamp(window / 4, kFirstChunk, kLargestChunk);
    const std::uint64_t size = object_->size();
    while (asked_ < size && (chunks_.empty() || asked_ <= position ||
                             asked_ - position + std::min(chunk, size - asked_) <= window)) {
      auto next = std::make_shared<AheadChunk>(
          asked_, static_cast<std::size_t>(std::min(chunk, size - asked_)), memory_);
      next->errand = Errand::start([object = object_, &to = *next, weak = std::weak_ptr(next)] {
        if (const auto kept = weak.lock()) to.read(*object);
      });
      asked_ = next->end();
      chunks_.push_back(std::move(next));
    }
    while (chunks_.front()->end() <= position)
      drop_front();
  }

  void drop_front() {
    chunks_.front()->cancelled = true;
    chunks_.pop_front();
  }
  void clear() {
    while (!chunks_.empty())
      drop_front();
  }

  std::shared_ptr<RemoteObject> object_;
  const std::uint64_t ahead_;
  const std::function<void()>& waiting_;
  std::deque<std::shared_ptr<AheadChunk>> chunks_;
  const std::shared_ptr<ChunkMemory> memory_ = std::make_shared<ChunkMemory>();
  std::uint64_t asked_ = 0, in_order_ = 0;
};

/// The bytes of an object without ranges, by one request whose thread waits while `ahead` bytes are
/// held.
class StreamedBytes {
 public:
  StreamedBytes(std::shared_ptr<RemoteObject> object, std::size_t ahead)
      : object_(std::move(object)), ahead_(ahead), thread_([this] { run(); }) {}
  ~StreamedBytes() {
    {
      const std::lock_guard lock(mutex_);
      cancelled_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  /// Returns 0 at the end.
  std::size_t read_some(char* out, std::size_t size, const std::function<void()>& waiting) {
    std::unique_lock lock(mutex_);
    while (held_.empty() && !ended_) {
      changed_.wait_for(lock, std::chrono::milliseconds(100));
      check_stop();
      if (waiting) waiting();
    }
    if (held_.empty()) {
      if (error_) std::rethrow_exception(error_);
      return 0;
    }
    std::vector<char>& front = held_.front();
    const std::size_t count = std::min(size, front.size() - begin_);
    std::memcpy(out, front.data() + begin_, count);
    begin_ += count;
    bytes_ -= count;
    if (begin_ == front.size()) {
      held_.pop_front();
      begin_ = 0;
    }
    changed_.notify_all();
    return count;
  }

 private:
  void run() {
    std::exception_ptr error;
    try {
      object_->stream([this](std::span<const char> bytes) { hold(bytes); }, &cancelled_);
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    error_ = error;
    ended_ = true;
    changed_.notify_all();
  }
  void hold(std::span<const char> bytes) {
    std::unique_lock lock(mutex_);
    while (bytes_ >= ahead_ && !cancelled_) {
      changed_.wait_for(lock, std::chrono::milliseconds(100));
      if (stop_requested()) throw Stopped();
    }
    if (cancelled_) throw Stopped();
    held_.emplace_back(bytes.begin(), bytes.end());
    bytes_ += bytes.size();
    changed_.notify_all();
  }

  std::shared_ptr<RemoteObject> object_;
  const std::size_t ahead_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::vector<char>> held_;
  std::size_t begin_ = 0, bytes_ = 0;
  bool ended_ = false;
  std::exception_ptr error_;
  std::atomic<bool> cancelled_{false};
  std::thread thread_;
};

void RemoteObject::stream(const std::function<void(std::span<const char>)>& take,
                          const std::atomic<bool>* cancelled) const {
  std::uint64_t done = 0, seen = 0;
  bool changed = false;
  Retry retry(read_seconds(), cancelled);
  WebSink sink;
  sink.begin = [&](const WebAnswer& answer) {
    seen = 0;
    changed = version_of_etag(answer.header("etag")) != facts_.version;
    return !changed;
  };
  sink.take = [&](std::span<const char> bytes) {
    const std::uint64_t known = std::min<std::uint64_t>(bytes.size(), done - seen);
    seen += known;
    bytes = bytes.subspan(static_cast<std::size_t>(known));
    if (bytes.size() > facts_.bytes - seen) return !(changed = true);
    if (bytes.empty()) return true;
    take(bytes);
    seen += bytes.size();
    done = seen;
    retry.progress();
    return true;
  };
  ObjectRequest request;
  request.key = facts_.key;
  request.sink = &sink;
  request.cancelled = cancelled;
  while (done < facts_.bytes) {
    ObjectAnswer answer = requester_->send(request);
    if (changed)
      fail_as(Cause::disk, "'{}' has changed while it was read; read it again", facts_.address);
    if (done == facts_.bytes) return;
    if (answer.succeeded()) answer.fault = "the answer is too short";
    if (answer.hopeless || answer.status >= 300 || !retry.wait(answer.retry_after))
      fail_read("read", facts_.address, answer);
  }
}

struct RemoteReader::State {
  std::shared_ptr<RemoteObject> object;
  std::size_t ahead;
  std::function<void()> waiting;
  std::uint64_t position = 0, streamed = 0;
  std::unique_ptr<AheadChunks> chunks;
  std::unique_ptr<StreamedBytes> stream;

  std::size_t stream_some(char* out, std::size_t size) {
    if (!stream || position < streamed) {
      stream.reset();
      stream = std::make_unique<StreamedBytes>(object, ahead);
      streamed = 0;
    }
    std::vector<char> unwanted;
    while (streamed < position) {
      unwanted.resize(std::min<std::uint64_t>(position - streamed, kFirstChunk));
      const std::size_t count = stream->read_some(unwanted.data(), unwanted.size(), waiting);
      if (count == 0) return 0;
      streamed += count;
    }
    const std::size_t count = stream->read_some(out, size, waiting);
    streamed += count;
    return count;
  }
};

RemoteReader::RemoteReader(std::shared_ptr<RemoteFile> file, std::size_t ahead,
                           std::function<void()> waiting)
    : state_(std::make_unique<State>()) {
  state_->object = std::dynamic_pointer_cast<RemoteObject>(file);
  if (!state_->object) fail("'{}' is not read by requests", file->address());
  state_->ahead = ahead;
  state_->waiting = std::move(waiting);
  if (file->has_ranges())
    state_->chunks = std::make_unique<AheadChunks>(state_->object, ahead, state_->waiting);
}
RemoteReader::~RemoteReader() = default;
RemoteReader::RemoteReader(RemoteReader&&) noexcept = default;

const RemoteFile& RemoteReader::file() const {
  return *state_->object;
}

std::size_t RemoteReader::read_some(void* out, std::size_t size) {
  check_stop();
  State& state = *state_;
  if (size == 0 || state.position >= state.object->size()) return 0;
  auto* const bytes = static_cast<char*>(out);
  KeptBytes* const kept = state.object->kept();
  std::size_t count = kept ? kept->read_some(bytes, size, state.position) : 0;
  if (count == 0) {
    count = state.chunks ? state.chunks->read_some(bytes, size, state.position)
                         : state.stream_some(bytes, size);
    if (kept) kept->add({bytes, count}, state.position);
  }
  state.position += count;
  return count;
}

void RemoteReader::seek(std::uint64_t position) {
  state_->position = position;
}

std::uint64_t RemoteReader::position() const {
  return state_->position;
}

}  // namespace vfm::io
