// The messages between a program and its worker, and the memory that both processes share. Parcels
// (workers/parcel.h) are in this memory, and a message announces a parcel. Only lib/workers uses
// this header.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"
#include "base/log.h"
#include "share/channel.h"
#include "workers/parcel.h"

namespace vfm::workers {

/// The program sends `open` and `ask`. The worker sends the other kinds, and may send `log` at any
/// time. `end` asks the program to end its run (base/run_end.h).
enum class Say : std::uint32_t { open, ask, answer, error, log, end };

/// The head of a message. After the head comes a text: an error, a log line, or the reason to end
/// the run. An `open` message also carries two descriptors: the memory of requests, and the memory
/// of answers.
struct Word {
  Say say = Say::log;
  ErrorKind kind = ErrorKind::runtime;
  Cause cause = Cause::other;
  LogLevel level = LogLevel::warning;
  std::uint64_t bytes = 0;  ///< Size of the parcel in bytes (in `open`, `ask`, `answer`).
  std::uint64_t most = 0;   ///< Largest size of each memory in bytes (in `open`).
};

/// Returns whether a worker may send the message.
bool is_sound(const Word& word);
/// Returns the Error in an `error` message. Its kind and cause are those of `word` if they are
/// valid.
Error told_error(const Word& word, const std::string& text);

/// Shared memory for parcels in one direction. The writer enlarges the memory to the size of a
/// parcel, up to a limit. Thread-safety: one thread at a time.
class Room {
 public:
  /// Makes new memory of at most `most` bytes. Throws Error.
  explicit Room(std::uint64_t most);
  /// Uses memory that another process made.
  Room(share::Descriptor memory, std::uint64_t most) : memory_(std::move(memory)), most_(most) {}

  int descriptor() const { return memory_.get(); }
  /// Writes a parcel and returns its size in bytes. Throws Error{limit} if the parcel is above the
  /// limit, and Error{memory} if memory is short.
  std::uint64_t put(const Parcel& parcel);
  /// Reads the parcel that the other process wrote. With `views`, the tensors are views of this
  /// memory, valid until the next parcel. Throws Error for an invalid parcel.
  Parcel take(std::uint64_t bytes, bool views);

 private:
  void map(std::uint64_t bytes);

  share::Descriptor memory_;
  std::uint64_t most_ = 0;
  std::shared_ptr<const share::MappedMemory> mapping_;
};

}  // namespace vfm::workers
