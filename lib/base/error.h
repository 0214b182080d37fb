// The exception types of the library, Error and Stopped, and the functions that throw an Error.
//
// A message names what is wrong, with what, and what to do next: no capital, no full stop, the
// subject in single quotes ("cannot open 'a.mp4': No such file or directory"). Only cli/ prints it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "base/format.h"

namespace vfm {

/// Decides the exit status of a program: `usage` is 2 (a bad option, recipe or model folder, found
/// before any work), the others are 1. `device`: what computes has failed, not what it was given:
/// who records a bad input and goes on lets this one pass (tensor/device.h, GpuError).
enum class ErrorKind { runtime, usage, device };

/// What sort of thing is wrong with an input, for scripts: the "code" of a record in errors.jsonl.
/// The names are in vfm-manifest(5) and stay as they are; new ones may come.
enum class Cause {
  other,
  open,       ///< it is not there, or the system or a server does not let it be read
  refused,    ///< it would have something read that was not given
  format,     ///< it is not what is read here, or damaged beyond use
  decode,     ///< nothing in it can be decoded
  limit,      ///< it is larger than a limit allows
  timeout,    ///< nothing came, or nothing was decoded, for too long
  crash,      ///< what decoded or computed it in a process of its own died
  memory,     ///< it needs more memory than there is, or than is allowed
  line,       ///< of a list: no record and no path
  missing,    ///< something that it must have is not there
  empty,      ///< nothing comes of it
  duplicate,  ///< its name is there already
  server,     ///< a server that was asked about it gave no answer
  rejected,   ///< a server will not answer about it
  answer,     ///< what a server answered about it is of no use
};
inline constexpr Cause kLastCause = Cause::answer;

/// Whether the same input may do better another time. What such an error leaves undone must not be
/// kept as what comes of the input.
inline bool may_pass(Cause cause) {
  return cause == Cause::timeout || cause == Cause::crash || cause == Cause::memory;
}

/// "open", "limit", ...
std::string_view to_string(Cause cause);
/// Cause::other for a name that is none.
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

/// Thrown at a safe point after SIGINT or SIGTERM (base/stop.h), or where the run is to
/// end (base/run_end.h). Not an error of the input, nor of anything else: no Error and no
/// std::exception, so that code that records or replaces errors lets it pass. Only cli/, and
/// callbacks of C libraries, which no exception may leave, catch it.
class Stopped {};

/// Each throws an Error with the formatted message: what the functions below are made of, so that
/// little is compiled where one is called.
[[noreturn]] void throw_error(std::string_view pattern, FormatValues values, ErrorKind kind);
[[noreturn]] void throw_error(std::string_view pattern, FormatValues values, Cause cause);
[[noreturn]] void throw_errno(int err, std::string_view pattern, FormatValues values);

/// Throws Error{runtime} with a formatted message.
template <class... Args>
[[noreturn]] void fail(FormatString<Args...> pattern, Args&&... args) {
  throw_error(text_of(pattern), format_values(args...), ErrorKind::runtime);
}

/// The same, of a cause that is known.
template <class... Args>
[[noreturn]] void fail_as(Cause cause, FormatString<Args...> pattern, Args&&... args) {
  throw_error(text_of(pattern), format_values(args...), cause);
}

/// Throws Error{usage}: the caller asked for something that cannot be.
template <class... Args>
[[noreturn]] void fail_usage(FormatString<Args...> pattern, Args&&... args) {
  throw_error(text_of(pattern), format_values(args...), ErrorKind::usage);
}

/// What `act` returns. An Error that it throws becomes Error{usage}: what it looks at was the
/// caller's choice, whatever is wrong in it.
template <class Act>
auto as_usage(Act act) {
  try {
    return act();
  } catch (const Error& error) {
    throw Error(error.what(), ErrorKind::usage);
  }
}

/// The system's text for an errno value ("No such file or directory"). Thread-safe.
std::string errno_text(int err);

/// Throws Error{runtime}: "<message>: <text of err>". Its cause is open.
template <class... Args>
[[noreturn]] void fail_errno(int err, FormatString<Args...> pattern, Args&&... args) {
  throw_errno(err, text_of(pattern), format_values(args...));
}

}  // namespace vfm
