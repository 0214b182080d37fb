// Inside lib/dist only: one connection of the pulse (dist/pulse.h), which carries frames: a letter,
// a rank and a text. Nothing here blocks. Thread-safety: one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vfm::dist {

class PulseLink {
 public:
  struct Frame {
    char letter = 0;
    int rank = 0;
    std::string text;
  };
  /// Texts are shorter.
  static constexpr std::size_t kMostText = std::size_t{1} << 20;

  /// Takes a connected stream socket, which it closes.
  explicit PulseLink(int fd);
  ~PulseLink();
  PulseLink(PulseLink&& other) noexcept;
  PulseLink& operator=(PulseLink&&) = delete;

  int fd() const { return fd_; }
  /// Queues a frame and writes what can be written.
  void send(char letter, int rank, std::string_view text);
  void flush();
  /// Whether the other end's system has all that was sent, or never gets it: the connection is
  /// broken.
  bool delivered();
  /// Bytes that are queued.
  std::size_t queued() const { return out_.size(); }
  /// Appends the frames that have come. Returns false when no more can come: the other end has
  /// closed the connection, or sends what is no frame. `heard` is set to whether any byte came.
  bool receive(std::vector<Frame>& frames, bool& heard);
  /// Whether the other end's system acknowledges what is sent, even if its process is silent: it
  /// has acknowledged everything but the last `seconds`. nullopt if the system does not tell.
  std::optional<bool> acknowledged(double seconds) const;

 private:
  int fd_ = -1;
  bool broken_ = false;
  std::string in_, out_;
};

}  // namespace vfm::dist
