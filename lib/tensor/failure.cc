// SPDX-License-Identifier: Apache-2.0
#include "tensor/failure.h"

#include <new>

#include "base/error.h"

namespace vfm {

std::string failure_of(const std::function<void()>& work, Cause* cause) {
  try {
    work();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::device) throw;
    if (cause) *cause = error.cause();
    return error.what();
  } catch (const std::bad_alloc&) {
    if (cause) *cause = Cause::memory;
    return "the clip is too large for this machine's memory";
  }
  return {};
}

}  // namespace vfm
