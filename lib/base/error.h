// The exception types of the library, Error and Stopped, and the functions that throw an Error.
//
// A message says what is wrong, names the subject, and says what to do next. A message has no
// capital and no full stop, and its subject is in single quotes ("cannot open 'a.mp4': No such file
// or directory"). Only cli/ prints messages.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "base/format.h"

namespace vfm {

/// The kind of an Error, which decides the exit status of a program. `usage` gives status 2: a bad
/// option, recipe or model folder, found before any work. `conflict` gives status 3: the output
/// folder belongs to a work with another number of parts (parts/part_run.h). `no_part` gives status
/// 4: no part is free. The other kinds give status 1. `device` means that the device has failed,
/// not the input. Code that records bad inputs rethrows an Error of the kind `device`
/// (tensor/device.h, GpuError).
enum class ErrorKind { runtime, usage, device, conflict, no_part };

/// What is wrong with an input: the "code" of a record in errors.jsonl. vfm-manifest(5) documents
/// the names. Names never change; new names may be added.
enum class Cause {
  other,
  open,       ///< The input does not exist, or cannot be read.
  refused,    ///< The input names a file or address that it may not read.
  format,     ///< The format is not supported, or the input is damaged beyond use.
  decode,     ///< Nothing in the input can be decoded.
  limit,      ///< The input is larger than a limit allows.
  timeout,    ///< For too long, the input gave no data, or no decoded picture.
  crash,      ///< The process that decoded or computed the input died.
  memory,     ///< The input needs more memory than exists or is allowed.
  line,       ///< A line of a list is neither a record nor a path.
  missing,    ///< Something that the input needs is missing.
  empty,      ///< The input gives no result.
  duplicate,  ///< Another input or sample already has this name.
  server,     ///< The server gave no answer.
  rejected,   ///< The server refused to answer.
  answer,     ///< The server's answer is unusable.
  disk,       ///< A disk, a file system or the network failed.
};
inline constexpr Cause kLastCause = Cause::disk;

/// Returns whether the same input may succeed another time. If so, an incomplete output must not be
/// kept.
inline bool may_pass(Cause cause) {
  return cause == Cause::timeout || cause == Cause::crash || cause == Cause::memory ||
         cause == Cause::disk;
}

std::string_view to_string(Cause cause);
/// Returns the cause of this name, or Cause::other for an unknown name.
Cause parse_cause(std::string_view name);

class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, ErrorKind kind = ErrorKind::runtime)
      : std::runtime_error(message), kind_(kind) {}
  Error(const std::string& message, Cause cause) : std::runtime_error(message), cause_(cause) {}
  ErrorKind kind() const noexcept { return kind_; }
  Cause cause() const noexcept { return cause_; }

 private:
  ErrorKind kind_ = ErrorKind::runtime;
  Cause cause_ = Cause::other;
};

/// Thrown by check_stop() and others after a stop request (base/stop.h), and after end_run()
/// (base/run_end.h). Stopped is neither an Error nor a std::exception, so code that records errors
/// does not catch it. Only cli/ and callbacks of C libraries catch Stopped.
class Stopped {};

/// Throw an Error with the formatted message. The templates below call these functions.
[[noreturn]] void throw_error(std::string_view pattern, FormatValues values, ErrorKind kind);
[[noreturn]] void throw_error(std::string_view pattern, FormatValues values, Cause cause);
[[noreturn]] void throw_errno(int err, std::string_view pattern, FormatValues values);

/// Throws Error{runtime} with a formatted message.
template <class... Args>
[[noreturn]] void fail(FormatString<Args...> pattern, Args&&... args) {
  throw_error(text_of(pattern), format_values(args...), ErrorKind::runtime);
}

template <class... Args>
[[noreturn]] void fail_as(Cause cause, FormatString<Args...> pattern, Args&&... args) {
  throw_error(text_of(pattern), format_values(args...), cause);
}

/// Throws Error{usage}, for an impossible request of the caller.
template <class... Args>
[[noreturn]] void fail_usage(FormatString<Args...> pattern, Args&&... args) {
  throw_error(text_of(pattern), format_values(args...), ErrorKind::usage);
}

/// Returns what `act` returns. If `act` throws an Error, throws it as Error{usage}. Use it if the
/// user chose the input of `act`.
template <class Act>
auto as_usage(Act act) {
  try {
    return act();
  } catch (const Error& error) {
    throw Error(error.what(), ErrorKind::usage);
  }
}

/// Returns the system's text for an errno value ("No such file or directory"). Thread-safe.
std::string errno_text(int err);
/// Returns Cause::disk or Cause::memory if the errno value says that a device or the memory failed,
/// otherwise Cause::open.
Cause errno_cause(int err);

/// Throws Error{runtime} with the message "<message>: <text of err>", and errno_cause().
template <class... Args>
[[noreturn]] void fail_errno(int err, FormatString<Args...> pattern, Args&&... args) {
  throw_errno(err, text_of(pattern), format_values(args...));
}

}  // namespace vfm
