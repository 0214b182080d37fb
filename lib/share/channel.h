// Communication between two processes of one program, by messages and shared memory.
//
// share/own_program.h starts the other process. media/isolate/isolated_wire.h and workers/wire.h
// define the messages. Structs are sent as they are in memory, since both ends run the same
// program. The receiver checks the values. Thread-safety: free functions from any thread; each
// object from one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace vfm::share {

/// A file descriptor, closed by the destructor. Movable.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  int get() const { return fd_; }
  int release() noexcept;

 private:
  int fd_;
};

/// Memory that processes share through a mapped file descriptor.
class MappedMemory {
 public:
  MappedMemory() = default;
  /// Maps `fd`. Throws Error.
  MappedMemory(int fd, std::size_t size, bool writable);
  ~MappedMemory();
  MappedMemory(MappedMemory&& other) noexcept;
  MappedMemory& operator=(MappedMemory&& other) noexcept;
  std::uint8_t* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Makes a channel and returns both ends. Throws an Error that names `to`, the owner of the other
/// end.
std::pair<Descriptor, Descriptor> make_channel(std::string_view to);

/// Limit of a message's text in bytes. Longer text is cut.
inline constexpr std::size_t kMostMessageText = std::size_t{64} << 10;

/// Sends one message, with up to two descriptors. Returns false if the other end is closed.
bool send_message(int channel, const void* head, std::size_t size, std::string_view text,
                  const std::vector<int>& descriptors = {});
/// Waits for a message. Returns false if the other end is closed, or if the message is malformed.
bool receive_message(int channel, void* head, std::size_t size, std::string& text,
                     std::vector<Descriptor>& descriptors);

/// Returns `said`, the cause that the other end sent. If `said` is not a known cause, returns
/// `otherwise`.
Cause checked_cause(Cause said, Cause otherwise);

}  // namespace vfm::share
