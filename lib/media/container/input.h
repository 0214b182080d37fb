// Inside lib/media only: an opened container, from a path, a URL or memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "media/libav.h"

namespace vfm::media {

/// Whether borrowed bytes may still be read. Thread-safe.
class Loan {
 public:
  /// When this returns, nobody reads the bytes any more.
  void end() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  /// Calls `read`; false, without a call, if the loan has ended.
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

/// Where the bytes are. Copyable: a decoder that must start over reopens its Source.
struct Source {
  std::string name;            ///< path or URL; for memory only what messages call it
  std::string_view bytes;      ///< borrowed; data() is null for a path or URL
  std::shared_ptr<Loan> loan;  ///< of bytes; null: they outlive whatever reads them
};

/// Opens only containers (media/container/container.h), and only the Source, unless --protocols
/// allows more. A server that sends nothing for input_limits().timeout is an Error; so is one that
/// sends bytes without a packet for kPatience times as long. New bytes and packets are beats
/// (bounded.h). Beyond the processor time of --max-work, reading is an Error.
class Input {
 public:
  /// Throws Error as Decoder's constructor says, except about streams.
  explicit Input(const Source& source);
  ~Input();
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  AVFormatContext* format() const { return format_; }
  const std::string& name() const { return source_.name; }
  /// The next packet of any stream that is not discarded; false at the end. A packet that the
  /// container has but cannot deliver is skipped and added to `corrupt`. Throws Error when reading
  /// fails (not when data is damaged) and Stopped.
  bool read(AVPacket* packet, std::int64_t& corrupt);
  /// Seeks to the last packet of this stream, by its index, that is not after `time`, in its time
  /// base. False if there is none; throws Error when the server gave no answer.
  bool seek(int stream, std::int64_t time);
  /// The file's size, or the server's value, as far as it exists; 0: unknown, or it may open other
  /// files (--protocols).
  std::uint64_t bytes() const;
  /// Index of the stream a player would choose, or -1. Never cover art or thumbnails.
  int best_stream(AVMediaType type) const;
  /// Throws Error when the data of this stream lies in another file (a QuickTime data reference).
  void check_inside(int stream) const;
  /// The size of a picture that FFmpeg refused while it looked for streams; 0 x 0: none.
  PictureSize impossible() const { return impossible_; }
  /// "0 video h264 320x180, 1 audio aac": for messages.
  std::string describe_streams() const;

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr double kPatience = 10;
  void open();
  void open_file(const std::string& path);
  void open_url(const std::string& scheme);
  void open_memory();
  void meet_streams();
  void find_streams();
  void start_clock();
  void note_place(std::int64_t place);
  void check_seconds();
  [[noreturn]] void fail_input(const char* verb, int error);
  static int on_interrupt(void* opaque);
  static int read_memory(void* opaque, std::uint8_t* buffer, int size);
  static std::int64_t seek_memory(void* opaque, std::int64_t offset, int whence);
  void close() noexcept;

  Source source_;
  AVFormatContext* format_ = nullptr;
  AVIOContext* io_ = nullptr;  // ours for files and memory; FFmpeg's own for URLs
  std::int64_t position_ = 0;  // in source_.bytes
  std::int64_t farthest_ = 0;  // of all that was read
  std::vector<int> outside_;   // streams whose data lies in other files
  PictureSize impossible_;
  double most_seconds_ = 0;  // as far as is known
  // Since when nothing has come, and how much had come by then. Only with a URL.
  Clock::time_point silent_since_, clock_began_;
  std::int64_t heard_ = 0;
  bool remote_ = false, timed_out_ = false;
};

}  // namespace vfm::media
