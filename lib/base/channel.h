// Two processes of one program that talk: a socket that keeps messages apart and carries
// descriptors, and memory that both map.
//
// Not here: how the program starts itself once more (base/own_program.h), and what is said
// (media/isolated_wire.h, cards/wire.h). Structs travel as they are, since
// both ends are one program; whoever receives checks what they say. Thread-safety: free functions
// from any thread; objects, one thread at a time.
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

/// A descriptor that is closed. Movable.
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

/// Memory that is mapped from a descriptor.
class Mapping {
 public:
  Mapping() = default;
  /// All who map it see what is written. Throws Error.
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

/// Both ends of a new channel. `to`: who has the other one, for the message. Throws Error.
std::pair<Descriptor, Descriptor> make_channel(std::string_view to);

/// Of a message, at most; what is more is cut. Below what a socket's buffer takes.
inline constexpr std::size_t kMostMessageText = std::size_t{64} << 10;

/// One message, with up to two descriptors. False when the other end is gone.
bool send_message(int channel, const void* head, std::size_t size, std::string_view text,
                  const std::vector<int>& descriptors = {});
/// Waits for one. False at the end, and for a message that is no such one.
bool receive_message(int channel, void* head, std::size_t size, std::string& text,
                     std::vector<Descriptor>& descriptors);

/// A cause that the other end names; `otherwise` where there is no such one.
Cause checked_cause(Cause said, Cause otherwise);

}  // namespace vfm
