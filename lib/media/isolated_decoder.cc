// SPDX-License-Identifier: Apache-2.0
#include "media/isolated_decoder.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "base/input_limits.h"

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
  request.skip_loop_filter = options.skip_loop_filter;
  return request;
}

/// Whether FFmpeg could say so of a stream.
bool can_be(const StreamInfo& info) {
  constexpr double kLongest = 2e28;  // 64 bits of ticks, each of 31 bits of seconds
  return info.time_base.num > 0 && info.width >= 0 && info.height >= 0 && info.display_width >= 0 &&
         info.display_height >= 0 && info.sample_aspect.num > 0 && info.frame_rate.num >= 0 &&
         info.duration >= 0 && info.duration < kLongest && info.frames >= 0;
}

/// Of 10 bits no sample has more, which tables and encoders rely on.
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

/// Memory of pictures that nobody has any more, for the next ones: new memory costs as much as what
/// is copied into it. Thread-safe.
class PicturePool : public std::enable_shared_from_this<PicturePool> {
 public:
  ~PicturePool() {
    for (std::uint8_t* memory : free_)
      ::operator delete(memory, kPictureAlign);
  }

  std::shared_ptr<std::uint8_t> take(std::size_t size) {
    std::uint8_t* memory = nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (size == size_ && !free_.empty()) {
        memory = free_.back();
        free_.pop_back();
      }
      size_ = size;
    }
    if (!memory) {
      memory = static_cast<std::uint8_t*>(::operator new(size, kPictureAlign));
      std::memset(memory, 0, size);
    }
    return {memory,
            [pool = shared_from_this(), size](std::uint8_t* done) { pool->put(done, size); }};
  }

 private:
  void put(std::uint8_t* memory, std::size_t size) {
    constexpr std::size_t kMost = 8;
    {
      const std::lock_guard lock(mutex_);
      if (size == size_ && free_.size() < kMost) return free_.push_back(memory);
    }
    ::operator delete(memory, kPictureAlign);
  }

  std::mutex mutex_;
  std::vector<std::uint8_t*> free_;  // each of size_
  std::size_t size_ = 0;
};

Decoder::Apart::Apart(const std::string& name, std::string_view bytes, const DecodeOptions& options)
    : child_(name, bytes, request_of(options)),
      info_(parse_info(child_.opened().text)),
      keep_hdr_(options.keep_hdr),
      pool_(std::make_shared<PicturePool>()),
      corrupt_(child_.opened().reply.corrupt),
      seeks_(child_.opened().reply.seeks != 0) {
  if (!can_be(info_)) disbelieve(name, "its stream");
  check_pixels(name, info_.width, info_.height);
}

Decoder::Apart::~Apart() = default;

bool Decoder::Apart::next(Frame& frame) {
  Request request;
  request.ask = Ask::next;
  const Reply reply = child_.ask(request).reply;
  corrupt_ = reply.corrupt;
  seeks_ = reply.seeks != 0;
  if (reply.answer == Answer::end) return false;
  const PictureFacts& facts = reply.picture;
  const Placed theirs = place_picture(facts, child_.room(), child_.room_bytes());
  check_pixels(child_.name(), facts.width, facts.height);
  constexpr std::int64_t kFar = std::int64_t{1} << 62;
  const bool deep = theirs.frame.layout == PixelLayout::yuv420p10;
  if (deep && !keep_hdr_) disbelieve(child_.name(), "its pictures");
  if (facts.pts < -kFar || facts.pts > kFar || facts.duration < 0 || facts.duration > kFar ||
      facts.index < 0 || (last_pts_ && facts.pts <= *last_pts_))
    disbelieve(child_.name(), "its time");
  last_pts_ = facts.pts;
  std::shared_ptr<std::uint8_t> memory = pool_->take(theirs.bytes);
  std::memcpy(memory.get(), child_.room(), theirs.bytes);
  if (deep) clamp_samples(memory.get(), theirs.bytes);
  frame = place_picture(facts, memory.get(), theirs.bytes).frame;
  frame.owner = std::move(memory);
  return true;
}

void Decoder::Apart::seek(std::int64_t pts) {
  Request request;
  request.ask = Ask::seek;
  request.pts = pts;
  const Reply reply = child_.ask(request).reply;
  corrupt_ = reply.corrupt;
  seeks_ = reply.seeks != 0;
  last_pts_.reset();
}

}  // namespace vfm::media
