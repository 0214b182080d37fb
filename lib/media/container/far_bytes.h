// Inside lib/media only: the bytes of an object at an address, for FFmpeg, which opens none itself.
//
// A child of isolated.h has no network. There, a thread of the parent (FarServer) reads the object,
// and sends the bytes through a channel (share/channel.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "share/channel.h"

namespace vfm::media {

/// Thread-safety: one thread at a time.
class FarBytes {
 public:
  /// Opens an object. In a child, uses read_far_through(). Throws Error and Stopped.
  static std::unique_ptr<FarBytes> open(const std::string& address);
  virtual ~FarBytes() = default;

  /// Returns the size in bytes.
  virtual std::uint64_t size() const = 0;
  /// Returns false if the bytes can be read only once, in order.
  virtual bool jumps() const = 0;
  /// Reads up to `size` bytes at `offset`. Returns 0 at the end. Throws Error and Stopped.
  virtual std::size_t read_at(std::uint64_t offset, void* out, std::size_t size) = 0;
};

/// What a child knows of an object without asking.
struct FarFacts {
  std::uint64_t size = 0;
  std::uint8_t jumps = 0;
};

/// In a child: all calls of FarBytes::open() read the object at the other end of `channel`.
void read_far_through(share::Descriptor channel, const FarFacts& facts);

/// In the parent: reads an object for a child, until the child or this object ends.
class FarServer {
 public:
  /// Opens the object. Throws Error and Stopped.
  explicit FarServer(const std::string& address);
  ~FarServer();
  FarServer(const FarServer&) = delete;
  FarServer& operator=(const FarServer&) = delete;

  const FarFacts& facts() const { return facts_; }
  /// Returns a number that grows while a read waits for the server.
  std::uint64_t beats() const { return beats_; }
  /// Returns the child's end of the channel. Call it once.
  share::Descriptor take_channel() { return std::move(theirs_); }

 private:
  void serve();

  std::unique_ptr<FarBytes> bytes_;
  FarFacts facts_;
  share::Descriptor ours_, theirs_;
  std::atomic<bool> ends_{false};
  std::atomic<std::uint64_t> beats_{0};
  std::thread thread_;
};

}  // namespace vfm::media
