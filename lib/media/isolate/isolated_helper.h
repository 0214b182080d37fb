// Inside lib/media only: how the parent uses the helper of isolated.h and its children.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "media/isolate/isolated_pictures.h"
#include "media/isolate/isolated_wire.h"

namespace vfm::media {

/// try_out: tests whether this system can confine a process.
enum class HelperAct : std::uint32_t { fork, end, try_out };
struct HelperOrder {
  HelperAct act = HelperAct::fork;
  pid_t pid = 0;             ///< for `end`: the child
  std::uint64_t memory = 0;  ///< for `try_out`: bytes for confine()
};
struct HelperReply {
  pid_t pid = -1;  ///< of the new child
  int status = 0;  ///< as from waitpid(); for `try_out`: 0 if the system can confine
};

/// Returns true if begin_isolation() has started the helper, so that children decode.
bool is_isolating() noexcept;

/// A process that the helper forked. It ends with the helper at the latest.
struct Forked {
  pid_t pid = 0;   ///< 0: none
  int helper = 0;  ///< its helper's number: helpers that die are replaced, and counted from 0
};

/// One child process, which ends when this object is destroyed. Thread-safety: one thread at a
/// time.
class IsolatedChild {
 public:
  struct Told {
    Reply reply;
    std::string text;
  };
  /// Opens the path `name`, or `bytes` if not null, for `request`. Throws the Errors of Decoder and
  /// ask().
  IsolatedChild(const std::string& name, std::string_view bytes, Request request);
  ~IsolatedChild();
  IsolatedChild(const IsolatedChild&) = delete;
  IsolatedChild& operator=(const IsolatedChild&) = delete;

  /// Returns the child's reply to opening its source.
  const Told& opened() const { return opened_; }
  /// Sends a request and waits for the answer. Throws
  ///  * the child's Error;
  ///  * Error{timeout} after input_limits().timeout without progress; or, even with progress, after
  ///    ten times that plus the time to read the file at 64 KiB a second; or if the processor time
  ///    since opening or the last seek exceeds --max-work;
  ///  * Error{crash} if the child died, Error{memory} if the system killed the child, or the helper
  ///    with all children;
  ///  * Stopped.
  Told ask(const Request& request, std::string_view text = {},
           const std::vector<int>& descriptors = {});
  /// Returns true if the child has ended.
  bool gone() const { return forked_.pid == 0; }
  /// Return the shared memory, and its parts. The child can change this memory at any time; the
  /// parent only reads it.
  const std::shared_ptr<const share::MappedMemory>& memory() const { return shared_; }
  const PicturesHead& head() const {
    return *reinterpret_cast<const PicturesHead*>(shared_->data());
  }
  const std::uint8_t* room() const { return shared_->data() + kSharedHead; }
  std::size_t room_bytes() const { return shared_->size() - kSharedHead; }
  const std::string& name() const { return name_; }
  /// Returns the size of the source.
  std::uint64_t bytes() const { return bytes_; }

 private:
  void wait();
  double spent() const noexcept;
  void check_spent();
  [[noreturn]] void tell_death();
  int end() noexcept;

  std::string name_;
  std::uint64_t bytes_ = 0;  // of the source
  share::Descriptor channel_;
  Forked forked_;
  std::shared_ptr<const share::MappedMemory> shared_;
  Told opened_;
  double began_ = 0;  // spent() at the last seek
};

}  // namespace vfm::media
