// Inside lib/media only: lets the parent use the helper of isolated.h and the helper's children.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "media/container/far_bytes.h"
#include "media/isolate/isolated_pictures.h"
#include "media/isolate/isolated_wire.h"

namespace vfm::media {

/// Orders to the helper. `try_out` tests whether this system can confine a process.
enum class HelperAct : std::uint32_t { fork, end, try_out };
struct HelperOrder {
  HelperAct act = HelperAct::fork;
  pid_t pid = 0;             ///< Process number of the child to end.
  std::uint64_t memory = 0;  ///< Argument of confine() for `try_out`.
};
struct HelperReply {
  pid_t pid = -1;  ///< Process number of the new child.
  int status = 0;  ///< Status from waitpid(). For `try_out`, 0 means success.
};

/// Returns true if begin_isolation() has started the helper.
bool is_isolating() noexcept;

/// A process that the helper forked, which ends at the latest with the helper.
struct Forked {
  pid_t pid = 0;   ///< Process number, or 0 for no process.
  int helper = 0;  ///< Number of the helper, from 0.
};

/// A child process, which ends when this object is destroyed. Thread-safety: one thread at a time.
class IsolatedChild {
 public:
  struct Told {
    Reply reply;
    std::string text;
  };
  /// Starts the child. The child opens `bytes`, or the path `name` if bytes.data() is null. Throws
  /// the Errors of Decoder and ask().
  IsolatedChild(const std::string& name, std::string_view bytes, Request request);
  ~IsolatedChild();
  IsolatedChild(const IsolatedChild&) = delete;
  IsolatedChild& operator=(const IsolatedChild&) = delete;

  /// Returns what the child said of the source when it opened the source.
  const Told& opened() const { return opened_; }
  /// Sends a request and returns the answer. Throws
  ///   * the Error of the child;
  ///   * Error{timeout} after input_limits().timeout without progress;
  ///   * Error{timeout} even with progress, after ten times this timeout plus one second for each
  ///     64 KiB of the file;
  ///   * Error{timeout} if the processor time since opening or seeking exceeds --max-work;
  ///   * Error{crash} if the child died;
  ///   * Error{memory} if the system killed the child, or the helper with all children;
  ///   * Stopped.
  Told ask(const Request& request, std::string_view text = {},
           const std::vector<int>& descriptors = {});
  bool gone() const { return forked_.pid == 0; }
  /// Return the shared memory, its head and its room (isolated_pictures.h). The child can change
  /// the memory at any time.
  const std::shared_ptr<const share::MappedMemory>& memory() const { return shared_; }
  const PicturesHead& head() const {
    return *reinterpret_cast<const PicturesHead*>(shared_->data());
  }
  const std::uint8_t* room() const { return shared_->data() + kSharedHead; }
  std::size_t room_bytes() const { return shared_->size() - kSharedHead; }
  const std::string& name() const { return name_; }
  /// Returns the size of the source in bytes.
  std::uint64_t bytes() const { return bytes_; }

 private:
  void wait();
  double spent() const noexcept;
  void check_spent();
  [[noreturn]] void tell_death();
  int end() noexcept;

  std::string name_;
  std::uint64_t bytes_ = 0;
  share::Descriptor channel_;
  Forked forked_;
  std::unique_ptr<FarServer> far_;  // Null for a file and for bytes.
  std::shared_ptr<const share::MappedMemory> shared_;
  Told opened_;
  double began_ = 0;  // Result of spent() at the last seek.
};

}  // namespace vfm::media
