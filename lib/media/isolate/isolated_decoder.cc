// SPDX-License-Identifier: Apache-2.0
#include "media/isolate/isolated_decoder.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "base/input_limits.h"
#include "base/work_limit.h"

namespace vfm::media {
namespace {

constexpr std::align_val_t kPictureAlign{64};

Request request_of(const DecodeOptions& options) {
  Request request;
  request.want = Want::decoder;
  request.stream = options.stream;
  request.threads = options.threads;
  request.keyframes_only = options.keyframes_only;
  request.deinterlace = options.deinterlace;
  request.keep_hdr = options.keep_hdr;
  if (!options.keep_hdr) request.use = options.use;
  return request;
}

/// Returns true if FFmpeg could report this of a stream.
bool can_be(const StreamInfo& info) {
  constexpr double kLongest = 2e28;  // 64-bit ticks of 31-bit seconds.
  return info.stream >= 0 && info.time_base.num > 0 && info.width >= 0 && info.height >= 0 &&
         info.sample_aspect.num > 0 && info.frame_rate.num >= 0 && info.duration >= 0 &&
         info.duration < kLongest && std::abs(info.start) < kLongest && info.frames >= 0;
}

/// Tables and encoders rely on samples within 10 bits.
void clamp_samples(std::uint8_t* memory, std::size_t bytes) {
  constexpr std::uint16_t kMost = 1023;
  auto* samples = reinterpret_cast<std::uint16_t*>(memory);
  for (std::size_t i = 0; i < bytes / 2; ++i)
    samples[i] = std::min(samples[i], kMost);
}

[[noreturn]] void disbelieve(const std::string& name, const char* what) {
  fail_as(Cause::crash, "the process that decoded '{}' says what cannot be of {}", name, what);
}

}  // namespace

/// Keeps memory of pictures for the next ones of the same size, because new memory costs as much as
/// the copy into it. Thread-safe.
class PicturePool : public std::enable_shared_from_this<PicturePool> {
 public:
  std::shared_ptr<std::uint8_t> take(std::size_t size) {
    Piece piece = find(size);
    if (!piece.memory) {
      piece = {Memory(static_cast<std::uint8_t*>(::operator new(size, kPictureAlign))), size};
      std::memset(piece.memory.get(), 0, size);
    }
    std::uint8_t* const memory = piece.memory.release();
    return {memory, [pool = shared_from_this(), size](std::uint8_t* done) {
              pool->put({Memory(done), size});
            }};
  }

 private:
  struct Free {
    void operator()(std::uint8_t* memory) const { ::operator delete(memory, kPictureAlign); }
  };
  using Memory = std::unique_ptr<std::uint8_t, Free>;
  /// Pieces have sizes, because a stream may change the size of its pictures at any time.
  struct Piece {
    Memory memory;
    std::size_t size = 0;
  };

  /// Frees pieces of other sizes.
  Piece find(std::size_t size) {
    const std::lock_guard lock(mutex_);
    size_ = size;
    std::erase_if(free_, [size](const Piece& piece) { return piece.size != size; });
    if (free_.empty()) return {};
    Piece found = std::move(free_.back());
    free_.pop_back();
    return found;
  }

  void put(Piece piece) {
    constexpr std::size_t kMost = 8;
    const std::lock_guard lock(mutex_);
    if (piece.size == size_ && free_.size() < kMost) free_.push_back(std::move(piece));
  }

  std::mutex mutex_;
  std::vector<Piece> free_;
  std::size_t size_ = 0;  // Of the last picture.
};

/// Frames in the child's memory: the last owner of a frame sets the bit of its place in `back`.
/// Keeps the memory mapped.
struct Decoder::Apart::Loans {
  std::shared_ptr<const share::MappedMemory> memory;
  std::atomic<std::uint64_t> back{0};
};

Decoder::Apart::Apart(const std::string& name, std::string_view bytes, const DecodeOptions& options)
    : child_(name, bytes, request_of(options)),
      info_(parse_info(child_.opened().text)),
      keep_hdr_(options.keep_hdr),
      in_place_(options.use != FrameUse::any && !options.keep_hdr),
      pool_(std::make_shared<PicturePool>()),
      loans_(std::make_shared<Loans>()),
      corrupt_(child_.opened().reply.corrupt),
      seeks_(child_.opened().reply.seeks != 0) {
  if (!can_be(info_)) disbelieve(name, "its stream");
  check_pixels(name, info_.width, info_.height);
  set_display_size(info_);
  loans_->memory = child_.memory();
}

Decoder::Apart::~Apart() = default;

/// Also tells the child which places are free again.
Request Decoder::Apart::request(Ask ask) {
  Request request;
  request.ask = ask;
  const std::uint64_t back = loans_->back.exchange(0);
  request.done = std::exchange(done_, 0) | back;
  lent_ &= ~back;
  return request;
}

/// Asks for several pictures only if the reader goes on. A reader that seeks often would wait for
/// pictures that it does not want.
std::uint32_t Decoder::Apart::how_many() const {
  constexpr std::size_t kAheadBytes = std::size_t{4} << 20;  // Fits into processors' caches.
  if (read_ < kMostAhead) return 1;
  const std::size_t fit = kAheadBytes / std::max<std::size_t>(frame_bytes_, 1);
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(fit, 1, kMostAhead));
}

void Decoder::Apart::fetch() {
  Request asked = request(Ask::next);
  asked.most = how_many();
  try {
    const Reply reply = child_.ask(asked).reply;
    if (reply.answer == ChildAnswer::end) end_ = reply;
  } catch (const Error&) {
    failure_ = std::current_exception();
  }
  // Pictures are taken even if the child failed after it gave them.
  const std::uint64_t given = child_.head().given - taken_;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(given, asked.most); ++i) {
    const Given one = child_.head().ring[taken_++ % kMostAhead];
    std::atomic_signal_fence(std::memory_order_seq_cst);  // Copied here, not at a later use.
    ahead_.push_back(one);
  }
  if (ahead_.empty() && !failure_ && !end_) disbelieve(child_.name(), "what it was asked for");
}

void Decoder::Apart::believe(std::int64_t corrupt, bool seeks) {
  corrupt_ = corrupt;
  seeks_ = seeks;
}

bool Decoder::Apart::next(Frame& frame) {
  if (ahead_.empty() && !end_ && !failure_) fetch();
  if (ahead_.empty()) {
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    believe(end_->corrupt, end_->seeks != 0);
    return false;
  }
  const Given given = ahead_.front();
  ahead_.pop_front();
  const Frame theirs = picture_at(given, child_.room(), child_.room_bytes());
  check(given.facts);
  believe(given.corrupt, given.seeks != 0);
  check_pictures(child_.name(), ++read_, child_.bytes());
  pixels_ += static_cast<double>(given.facts.width) * given.facts.height;
  check_work(child_.name(), {pixels_, 0}, child_.bytes());
  constexpr int kMostLent = 4;  // The child decodes into all others.
  const bool lends =
      in_place_ && given.place < kPicturePlaces && std::popcount(lent_ & ~loans_->back) < kMostLent;
  if (lends) {
    frame = lend(theirs, given.place);
  } else {
    frame = copy(theirs, given.facts);
    if (given.place < kPicturePlaces) done_ |= std::uint64_t{1} << given.place;
  }
  return true;
}

void Decoder::Apart::check(const PictureFacts& facts) {
  check_pixels(child_.name(), facts.width, facts.height);
  constexpr std::int64_t kFar = std::int64_t{1} << 61;  // Sums and differences of two fit.
  if (facts.layout == static_cast<int>(PixelLayout::yuv420p10) && !keep_hdr_)
    disbelieve(child_.name(), "its pictures");
  if (facts.pts < -kFar || facts.pts > kFar || facts.duration < 0 || facts.duration > kFar ||
      facts.index < 0 || (last_pts_ && facts.pts <= *last_pts_))
    disbelieve(child_.name(), "its time");
  last_pts_ = facts.pts;
  frame_bytes_ = place_picture(facts, nullptr, SIZE_MAX).bytes;
}

Frame Decoder::Apart::lend(Frame frame, std::uint32_t place) {
  const std::uint64_t bit = std::uint64_t{1} << place;
  lent_ |= bit;
  frame.owner = std::shared_ptr<const void>(
      frame.plane[0], [loans = loans_, bit](const void*) { loans->back |= bit; });
  return frame;
}

Frame Decoder::Apart::copy(const Frame& theirs, const PictureFacts& facts) {
  std::shared_ptr<std::uint8_t> memory = pool_->take(frame_bytes_);
  Frame frame = place_picture(facts, memory.get(), frame_bytes_).frame;
  copy_pixels(theirs, frame);
  if (frame.layout == PixelLayout::yuv420p10) clamp_samples(memory.get(), frame_bytes_);
  frame.owner = std::move(memory);
  return frame;
}

void Decoder::Apart::seek(std::int64_t pts) {
  if (failure_ && child_.gone()) std::rethrow_exception(std::exchange(failure_, nullptr));
  for (const Given& given : ahead_)
    if (given.place < kPicturePlaces) done_ |= std::uint64_t{1} << given.place;
  ahead_.clear();
  end_.reset();
  failure_ = nullptr;
  read_ = 0;
  pixels_ = 0;
  Request asked = request(Ask::seek);
  asked.pts = pts;
  const Reply reply = child_.ask(asked).reply;
  believe(reply.corrupt, reply.seeks != 0);
  last_pts_.reset();
}

}  // namespace vfm::media
