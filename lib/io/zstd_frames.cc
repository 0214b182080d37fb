// SPDX-License-Identifier: Apache-2.0
#include "io/zstd_frames.h"

#include <zstd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <list>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "io/zstd_reader.h"

namespace vfm::io {
namespace {

static_assert(std::endian::native == std::endian::little, "the seek table is little-endian");

// The table is a skippable frame: magic number and size, then for each frame its compressed and its
// unpacked size (and a checksum, if kWithSums is set), then the number of frames, a byte with
// flags, and a second magic number.
constexpr std::uint32_t kSkippable = 0x184D2A5E, kSeekable = 0x8F92EAB1;
constexpr std::size_t kHead = 8, kFoot = 9;
constexpr std::uint8_t kWithSums = 0x80, kReserved = 0x7c;
constexpr int kLevel = 3;  // The default of zstd.

void put(std::string& out, std::uint32_t number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}

std::uint32_t number_at(const char* at) {
  std::uint32_t number = 0;
  std::memcpy(&number, at, sizeof number);
  return number;
}

struct Free {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

ZSTD_DCtx* unpacking_context() {
  thread_local const std::unique_ptr<ZSTD_DCtx, Free> context(ZSTD_createDCtx());
  if (!context) fail("cannot unpack with zstd: out of memory");
  ZSTD_DCtx_reset(context.get(), ZSTD_reset_session_only);
  return context.get();
}

/// Where the frames begin in the file and in the unpacked bytes, and as the last one where they
/// end.
struct SeekTable {
  std::vector<std::uint64_t> packed{0}, unpacked{0};

  std::size_t frames() const { return packed.size() - 1; }
};

/// Returns false if the file ends with no table that fits it.
bool read_table(const File& file, SeekTable& table) {
  const std::uint64_t size = file.size();
  if (size < kHead + kFoot) return false;
  std::array<char, kFoot> foot{};
  file.pread_exact(foot.data(), kFoot, size - kFoot);
  const auto flags = static_cast<std::uint8_t>(foot[4]);
  if (number_at(&foot[5]) != kSeekable || (flags & kReserved) != 0) return false;
  const std::uint64_t frames = number_at(foot.data());
  const std::size_t each = (flags & kWithSums) != 0 ? 12 : 8;
  const std::uint64_t bytes = kHead + frames * each + kFoot;
  if (bytes > size) return false;
  std::string text(bytes - kFoot, '\0');
  file.pread_exact(text.data(), text.size(), size - bytes);
  if (number_at(text.data()) != kSkippable || number_at(&text[4]) != bytes - kHead) return false;
  table.packed.reserve(frames + 1);
  table.unpacked.reserve(frames + 1);
  for (std::size_t at = kHead; at < text.size(); at += each) {
    const std::uint32_t packed = number_at(&text[at]), unpacked = number_at(&text[at + 4]);
    if (unpacked > ZstdFrames::kMostFrame || packed > ZSTD_compressBound(ZstdFrames::kMostFrame))
      return false;
    table.packed.push_back(table.packed.back() + packed);
    table.unpacked.push_back(table.unpacked.back() + unpacked);
  }
  return table.packed.back() == size - bytes;
}

}  // namespace

struct ZstdFrameWriter::State {
  explicit State(std::function<void(std::string_view)> use) : write(std::move(use)) {}

  std::function<void(std::string_view)> write;
  std::unique_ptr<ZSTD_CCtx, Free> context{ZSTD_createCCtx()};
  std::string frame, packed, table;
  std::uint32_t frames = 0;

  void end_frame() {
    if (frame.empty()) return;
    packed.resize(ZSTD_compressBound(frame.size()));
    const std::size_t size =
        ZSTD_compress2(context.get(), packed.data(), packed.size(), frame.data(), frame.size());
    if (ZSTD_isError(size)) fail("cannot compress with zstd: {}", ZSTD_getErrorName(size));
    write(std::string_view(packed).substr(0, size));
    put(table, static_cast<std::uint32_t>(size));
    put(table, static_cast<std::uint32_t>(frame.size()));
    ++frames;
    frame.clear();
  }
};

ZstdFrameWriter::ZstdFrameWriter(std::function<void(std::string_view)> write)
    : state_(std::make_unique<State>(std::move(write))) {
  ZSTD_CCtx* const context = state_->context.get();
  if (context == nullptr) fail("cannot compress with zstd: out of memory");
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, kLevel);
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
}
ZstdFrameWriter::~ZstdFrameWriter() = default;

void ZstdFrameWriter::add(std::string_view data) {
  State& s = *state_;
  while (!data.empty()) {
    const std::size_t some = std::min(data.size(), kMost - s.frame.size());
    s.frame.append(data.substr(0, some));
    data.remove_prefix(some);
    if (s.frame.size() == kMost) s.end_frame();
  }
}

void ZstdFrameWriter::end_part() {
  if (state_->frame.size() >= kLeast) state_->end_frame();
}

void ZstdFrameWriter::finish() {
  State& s = *state_;
  s.end_frame();
  std::string table;
  put(table, kSkippable);
  put(table, static_cast<std::uint32_t>(s.table.size() + kFoot));
  table += s.table;
  put(table, s.frames);
  table += '\0';
  put(table, kSeekable);
  s.write(table);
}

namespace {

/// The unpacked frames that were used last, of all open files together.
class HeldFrames {
 public:
  using Bytes = std::shared_ptr<const std::string>;

  static HeldFrames& all() {
    static auto& one = *new HeldFrames;  // used until the process ends
    return one;
  }
  /// `file` is any pointer that differs between files.
  Bytes find(const void* file, std::size_t frame) {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find_if(
        frames_, [&](const Held& one) { return one.file == file && one.frame == frame; });
    if (found == frames_.end()) return nullptr;
    frames_.splice(frames_.begin(), frames_, found);
    return found->bytes;
  }
  void add(const void* file, std::size_t frame, Bytes bytes) {
    const std::lock_guard lock(mutex_);
    bytes_ += bytes->size();
    frames_.push_front({file, frame, std::move(bytes)});
    for (; bytes_ > ZstdFrames::kMostHeld; frames_.pop_back())
      bytes_ -= frames_.back().bytes->size();
  }
  void forget(const void* file) {
    const std::lock_guard lock(mutex_);
    std::erase_if(frames_, [&](const Held& one) {
      if (one.file == file) bytes_ -= one.bytes->size();
      return one.file == file;
    });
  }

 private:
  struct Held {
    const void* file;
    std::size_t frame;
    Bytes bytes;
  };
  std::mutex mutex_;
  std::list<Held> frames_;  // The last used first.
  std::size_t bytes_ = 0;
};

}  // namespace

struct ZstdFrames::State {
  explicit State(File opened) : file(std::move(opened)) {}
  ~State() { HeldFrames::all().forget(this); }

  static constexpr std::uint64_t kTogether = std::uint64_t{32} << 20;
  /// What is read of a frame in which only the begin is wanted. Has the first block of the frame,
  /// which unpacks to 128 KiB, if the frame has as many.
  static constexpr std::uint64_t kFirstBlock = (std::uint64_t{128} << 10) + 64;
  static constexpr std::uint64_t kBegin = std::uint64_t{4} << 10;

  [[noreturn]] void damaged(std::size_t status) const {
    fail_as(Cause::format, "'{}' is damaged: zstd says '{}'", file.path(),
            ZSTD_isError(status) ? ZSTD_getErrorName(status)
                                 : "a frame is shorter than the table of frames says");
  }
  void unpack(std::string_view packed, char* out, std::size_t size) const {
    const std::size_t got =
        ZSTD_decompressDCtx(unpacking_context(), out, size, packed.data(), packed.size());
    if (got != size) damaged(got);
  }
  std::string packed_bytes(std::uint64_t begin, std::uint64_t end) const {
    std::string packed(end - begin, '\0');
    file.pread_exact(packed.data(), packed.size(), begin);
    return packed;
  }
  bool read_begin(std::size_t frame, char* out, std::uint64_t offset, std::uint64_t end) const;
  void read_frame(std::size_t frame, std::string_view packed, char* out, std::uint64_t offset,
                  std::uint64_t end) const;
  void copy(std::size_t frame, const std::string& bytes, char* out, std::uint64_t offset,
            std::uint64_t end) const {
    std::memcpy(out, bytes.data() + (offset - table.unpacked[frame]), end - offset);
  }

  File file;
  SeekTable table;
};

/// Reads unpacked bytes [offset, end) if they are the very first ones of a large frame, without the
/// rest of the frame. Returns false otherwise, and for an object: reads in order need the rest
/// next, and a request takes longer than it does.
bool ZstdFrames::State::read_begin(std::size_t frame, char* out, std::uint64_t offset,
                                   std::uint64_t end) const {
  const std::uint64_t first = table.unpacked[frame];
  if (file.remote() || end - first > kBegin || table.unpacked[frame + 1] - first < 2 * kFirstBlock)
    return false;
  const std::uint64_t at = table.packed[frame];
  const std::string packed = packed_bytes(at, std::min(table.packed[frame + 1], at + kFirstBlock));
  std::array<char, kBegin> begin{};
  ZSTD_outBuffer output{begin.data(), end - first, 0};
  ZSTD_inBuffer input{packed.data(), packed.size(), 0};
  ZSTD_DCtx* const context = unpacking_context();
  while (output.pos < output.size) {
    const std::size_t before = output.pos + input.pos;
    const std::size_t status = ZSTD_decompressStream(context, &output, &input);
    if (ZSTD_isError(status) || before == output.pos + input.pos) damaged(status);
  }
  std::memcpy(out, begin.data() + (offset - first), end - offset);
  return true;
}

/// Reads unpacked bytes [offset, end) of a frame.
void ZstdFrames::State::read_frame(std::size_t frame, std::string_view packed, char* out,
                                   std::uint64_t offset, std::uint64_t end) const {
  const std::size_t size = table.unpacked[frame + 1] - table.unpacked[frame];
  if (end - offset == size) return unpack(packed, out, size);
  auto bytes = std::make_shared<std::string>(size, '\0');
  unpack(packed, bytes->data(), size);
  copy(frame, *bytes, out, offset, end);
  HeldFrames::all().add(this, frame, std::move(bytes));
}

bool ZstdFrames::are_in(const File& file) {
  SeekTable table;
  return read_table(file, table);
}

ZstdFrames::ZstdFrames(File file) : state_(std::make_unique<State>(std::move(file))) {
  const State& s = *state_;
  if (!read_table(s.file, state_->table))
    fail_as(Cause::format,
            "'{}' has no table of frames up to {}, so it can only be read from its begin",
            s.file.path(), format_bytes(static_cast<double>(kMostFrame)));
  if (size() > kMostUnpacked + kUnpackedEach * s.file.size())
    fail_as(Cause::limit,
            "'{}' would unpack to {}, far more than its own bytes; unpack it yourself, if that is "
            "right",
            s.file.path(), format_bytes(static_cast<double>(size())));
}
ZstdFrames::~ZstdFrames() = default;

const File& ZstdFrames::file() const {
  return state_->file;
}

std::uint64_t ZstdFrames::size() const {
  return state_->table.unpacked.back();
}

void ZstdFrames::pread_exact(void* out, std::size_t size, std::uint64_t offset) const {
  const State& s = *state_;
  const std::vector<std::uint64_t>&packed = s.table.packed, &unpacked = s.table.unpacked;
  if (size > this->size() || offset > this->size() - size)
    fail("'{}' is truncated: it unpacks to {} bytes, {} at {} were expected", s.file.path(),
         this->size(), size, offset);
  auto* to = static_cast<char*>(out);
  const std::uint64_t end = offset + size;
  auto frame = static_cast<std::size_t>(std::upper_bound(unpacked.begin(), unpacked.end(), offset) -
                                        unpacked.begin() - 1);
  const auto take = [&](const auto& read) {
    const std::uint64_t stop = std::min(end, unpacked[frame + 1]);
    read(stop);
    to += stop - offset;
    offset = stop;
    ++frame;
  };
  while (offset < end) {
    if (const HeldFrames::Bytes bytes = HeldFrames::all().find(&s, frame)) {
      take([&](std::uint64_t stop) { s.copy(frame, *bytes, to, offset, stop); });
      continue;
    }
    if (s.read_begin(frame, to, offset, end)) return;
    std::size_t next = frame + 1;
    while (unpacked[next] < end && packed[next + 1] - packed[frame] <= State::kTogether)
      ++next;
    const std::uint64_t first = packed[frame];
    const std::string bytes = s.packed_bytes(first, packed[next]);
    while (frame < next)
      take([&](std::uint64_t stop) {
        const std::string_view one = std::string_view(bytes).substr(
            packed[frame] - first, packed[frame + 1] - packed[frame]);
        s.read_frame(frame, one, to, offset, stop);
      });
  }
}

}  // namespace vfm::io
