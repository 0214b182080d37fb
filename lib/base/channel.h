// How two processes of one program talk: by a socket that keeps messages apart and carries
// descriptors, and by memory that both map.
//
// Elsewhere: how the program starts itself again (base/own_program.h), and the messages themselves
// (media/isolate/isolated_wire.h, workers/wire.h). Structs travel as they are, since
// both ends are one program; the receiver checks their values. Thread-safety: free functions from
// any thread; objects, one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace vfm {

/// A file descriptor that its destructor closes. Movable.
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

/// Memory mapped from a descriptor.
class Mapping {
 public:
  Mapping() = default;
  /// Every process that maps it sees the writes of the others. Throws Error.
  Mapping(int fd, std::size_t size, bool writable);
  ~Mapping();
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  std::uint8_t* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Both ends of a new channel. `to` names the other end's owner in the error. Throws Error.
std::pair<Descriptor, Descriptor> make_channel(std::string_view to);

/// Bytes of a message's text at most; the rest is cut. Fits into a socket's buffer.
inline constexpr std::size_t kMostMessageText = std::size_t{64} << 10;

/// Sends one message, with up to two descriptors. False when the other end is gone.
bool send_message(int channel, const void* head, std::size_t size, std::string_view text,
                  const std::vector<int>& descriptors = {});
/// Waits for one. False at the end, and for a malformed message.
bool receive_message(int channel, void* head, std::size_t size, std::string& text,
                     std::vector<Descriptor>& descriptors);

/// The cause that the other end named; `otherwise` if it is not a known one.
Cause checked_cause(Cause said, Cause otherwise);

}  // namespace vfm
