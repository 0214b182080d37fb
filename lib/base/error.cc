// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <cerrno>
#include <iterator>
#include <system_error>

namespace vfm {
namespace {

// In the order of Cause.
constexpr std::string_view kCauses[] = {
    "other", "open",    "refused", "format",    "decode", "limit",    "timeout", "crash", "memory",
    "line",  "missing", "empty",   "duplicate", "server", "rejected", "answer",  "disk"};
static_assert(std::size(kCauses) == static_cast<std::size_t>(kLastCause) + 1);

}  // namespace

std::string_view to_string(Cause cause) {
  return kCauses[static_cast<std::size_t>(cause)];
}

Cause parse_cause(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kCauses); ++i)
    if (kCauses[i] == name) return static_cast<Cause>(i);
  return Cause::other;
}

std::string errno_text(int err) {
  return std::generic_category().message(err);
}

Cause errno_cause(int err) {
  switch (err) {
    case ENOMEM:
      return Cause::memory;
    case EIO:
    case ESTALE:
    case EBUSY:
    case EMFILE:
    case ENFILE:
    case ENODEV:
    case ENXIO:
    case ENOLINK:
    case EREMOTEIO:
    case ETIMEDOUT:
    case ENOTCONN:
    case ECONNRESET:
    case ECONNREFUSED:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENETDOWN:
    case ENETUNREACH:
      return Cause::disk;
    default:
      return Cause::open;
  }
}

void throw_error(std::string_view pattern, FormatValues values, ErrorKind kind) {
  throw Error(format_checked(pattern, values), kind);
}

void throw_error(std::string_view pattern, FormatValues values, Cause cause) {
  throw Error(format_checked(pattern, values), cause);
}

void throw_errno(int err, std::string_view pattern, FormatValues values) {
  throw Error(format_checked(pattern, values) + ": " + errno_text(err), errno_cause(err));
}

}  // namespace vfm
