// Inside lib/cards only: the messages between a program and its worker, and the memory that they
// share. A message says what lies in that memory; parcels (cards/parcel.h) are never in messages.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/channel.h"
#include "base/error.h"
#include "base/log.h"
#include "cards/parcel.h"

namespace vfm::cards {

/// open and ask come from the program, the others from the worker; log at any time; end: the whole
/// run is to end (base/run_end.h).
enum class Say : std::uint32_t { open, ask, answer, error, log, end };

/// Behind it: the text of an error or of a line of the log, or why the run is to end. With open:
/// two descriptors, of the memory of requests and of answers.
struct Word {
  Say say = Say::log;
  ErrorKind kind = ErrorKind::runtime;  ///< of error
  Cause cause = Cause::other;
  LogLevel level = LogLevel::warning;  ///< of log
  std::uint64_t bytes = 0;             ///< of the parcel, with open, ask and answer
  std::uint64_t most = 0;              ///< with open: what either memory may have
};

/// Whether a worker may say that at all.
bool is_sound(const Word& word);
/// The Error that it tells. A worker's kind and cause are taken where there are such.
Error told_error(const Word& word, const std::string& text);

/// Memory in one direction: who writes makes it as large as a parcel needs, up to a limit; it never
/// becomes smaller, so nobody who reads it is left without. One thread at a time.
class Room {
 public:
  /// New. Throws Error.
  explicit Room(std::uint64_t most);
  /// Another process's.
  Room(Descriptor memory, std::uint64_t most) : memory_(std::move(memory)), most_(most) {}

  int descriptor() const { return memory_.get(); }
  /// Writes; returns the bytes. Throws Error{limit} for more than the limit, {memory} where there
  /// is not so much.
  std::uint64_t put(const Parcel& parcel);
  /// What the other side has written. `views`: the tensors lie in the room, and are good until the
  /// next parcel comes. Throws Error for what cannot be there.
  Parcel take(std::uint64_t bytes, bool views);

 private:
  void map(std::uint64_t bytes);

  Descriptor memory_;
  std::uint64_t most_ = 0;
  std::shared_ptr<const Mapping> mapping_;
};

}  // namespace vfm::cards
