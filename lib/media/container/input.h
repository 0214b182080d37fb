// Inside lib/media only: an opened container, from a path, an address or memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "media/libav.h"

namespace vfm::media {

/// A guard for borrowed bytes, which are not read after end(). Thread-safe.
class Loan {
 public:
  /// After end() returns, no thread reads the bytes.
  void end() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  /// Calls `read` and returns true. After end(), returns false without calling `read`.
  template <class Read>
  bool use(Read read) {
    const std::lock_guard lock(mutex_);
    if (!ended_) read();
    return !ended_;
  }

 private:
  std::mutex mutex_;
  bool ended_ = false;
};

class FarBytes;

/// A file, an address or bytes in memory, which can be opened several times.
struct Source {
  std::string name;            ///< Path or address; for bytes in memory, a name for messages.
  std::string_view bytes;      ///< Borrowed bytes; data() is null for a path or address.
  std::shared_ptr<Loan> loan;  ///< Guard of `bytes`; null if `bytes` outlive all readers.
};

/// An opened Source. Opens only what media/container/container.h allows. Objects (far_bytes.h) are
/// read by our own client, and addresses of other protocols by FFmpeg. Throws Error if a server
/// sends nothing for input_limits().timeout, or sends bytes but no whole packet for kPatience times
/// this timeout. Throws Error if reading exceeds the processor time of --max-work. Calls beat()
/// (bounded.h) for new bytes and packets.
class Input {
 public:
  /// Opens the source. Throws the Errors of Decoder's constructor, except errors about streams.
  explicit Input(const Source& source);
  ~Input();
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  AVFormatContext* format() const { return format_; }
  const std::string& name() const { return source_.name; }
  /// Reads the next packet of any stream that is not discarded. Returns false at the end. Skips an
  /// unreadable packet and counts it in `corrupt`. Throws Stopped, and Error if reading fails.
  /// Damaged data do not cause an Error. An error of the disk or the network does, also where
  /// FFmpeg takes it for the end of the file.
  bool read(AVPacket* packet, std::int64_t& corrupt);
  /// Seeks to the last packet of stream number `stream` at or before `time`. `time` is in the time
  /// base of the stream. Returns false if no such packet exists. Throws Error if the server does
  /// not answer.
  bool seek(int stream, std::int64_t time);
  /// Returns the size of the file in bytes, or the size that the server states. Returns 0 if the
  /// size is unknown, or if the input may open further files (--protocols).
  std::uint64_t bytes() const;
  /// Returns whether the source is an address of which only FFmpeg knows, such as one of rtsp.
  bool endless() const;
  /// Returns the index of the stream that a player would choose, or -1. The stream is never cover
  /// art or a thumbnail.
  int best_stream(AVMediaType type) const;
  /// Throws Error if the data of this stream lie in another file (a QuickTime data reference).
  void check_inside(int stream) const;
  /// Returns the size of a picture that FFmpeg refused during opening, or 0 x 0.
  PixelSize impossible() const { return impossible_; }
  /// Returns the streams as text: "0 video h264 320x180, 1 audio aac".
  std::string describe_streams() const;

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr double kPatience = 10;
  void open();
  void open_file(const std::string& path);
  void open_url(const std::string& scheme);
  void open_memory();
  void open_far();
  using ReadBytes = int(void* opaque, std::uint8_t* buffer, int size);
  void make_io(int size, ReadBytes* read_bytes, bool seeks);
  void meet_streams();
  void find_streams();
  void start_clock();
  void note_place(std::int64_t place);
  void check_seconds();
  void check_disk() const;
  [[noreturn]] void fail_input(const char* verb, int error);
  void refuse_protocol() const;
  static int on_interrupt(void* opaque);
  static int read_memory(void* opaque, std::uint8_t* buffer, int size);
  static int read_far(void* opaque, std::uint8_t* buffer, int size);
  static std::int64_t seek_bytes(void* opaque, std::int64_t offset, int whence);
  std::int64_t own_size() const;
  void close() noexcept;

  Source source_;
  AVFormatContext* format_ = nullptr;
  AVIOContext* io_ = nullptr;  // Owned by this object.
  bool own_io_ = false;        // Whether io_ calls this object.
  std::unique_ptr<FarBytes> far_;
  std::exception_ptr far_failure_;
  std::int64_t position_ = 0;
  std::int64_t farthest_ = 0;
  std::vector<int> outside_;   // Streams whose data lie in other files.
  PixelSize impossible_;
  double most_seconds_ = 0;
  // For addresses: when bytes last arrived, when the current call began, and how many there are.
  Clock::time_point silent_since_, clock_began_;
  std::int64_t heard_ = 0;
  bool remote_ = false, timed_out_ = false;
};

}  // namespace vfm::media
