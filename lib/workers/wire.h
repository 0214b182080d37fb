// Inside lib/workers only: the messages between a program and its worker, and the memory that they
// share. Parcels (workers/parcel.h) are in this memory; a message only announces them.
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

/// The kind of a message. The program sends open and ask; the worker sends the other messages, log
/// at any time. end asks to end the whole run (base/run_end.h).
enum class Say : std::uint32_t { open, ask, answer, error, log, end };

/// The head of a message. The message's text is an error, a log line, or the reason to end the run.
/// With open, the message carries two descriptors: the memory of requests and the memory of
/// answers.
struct Word {
  Say say = Say::log;
  ErrorKind kind = ErrorKind::runtime;  ///< kind of an error
  Cause cause = Cause::other;
  LogLevel level = LogLevel::warning;  ///< level of a log line
  std::uint64_t bytes = 0;             ///< size of the parcel, with open, ask and answer
  std::uint64_t most = 0;              ///< with open: most bytes of either memory
};

/// Returns whether a worker may send this message.
bool is_sound(const Word& word);
/// Returns the Error that a message describes, with the worker's kind and cause if they are valid.
Error told_error(const Word& word, const std::string& text);

/// Shared memory for parcels in one direction. The writer grows it to a parcel's size, up to a
/// limit. It never shrinks, so the maps of both processes stay valid. Thread-safety: one thread at
/// a time.
class Room {
 public:
  /// Makes new memory. Throws Error.
  explicit Room(std::uint64_t most);
  /// Uses the memory that another process made.
  Room(share::Descriptor memory, std::uint64_t most) : memory_(std::move(memory)), most_(most) {}

  int descriptor() const { return memory_.get(); }
  /// Writes a parcel; returns its size in bytes. Throws Error{limit} beyond the limit, and
  /// Error{memory} if there is not enough memory.
  std::uint64_t put(const Parcel& parcel);
  /// Reads the other side's parcel. With `views`, the tensors are views of this memory, valid until
  /// the next parcel. Throws Error for invalid contents.
  Parcel take(std::uint64_t bytes, bool views);

 private:
  void map(std::uint64_t bytes);

  share::Descriptor memory_;
  std::uint64_t most_ = 0;
  std::shared_ptr<const share::MappedMemory> mapping_;
};

}  // namespace vfm::workers
