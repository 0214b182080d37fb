// SPDX-License-Identifier: Apache-2.0
#include "tensor/failure.h"

#include <new>

#include "base/error.h"
#include "tensor/device.h"

namespace vfm {

std::string failure_of(const std::function<void()>& work, Cause* cause) {
  try {
    work();
  } catch (const GpuError&) {
    throw;
  } catch (const Error& error) {
    if (cause) *cause = error.cause();
    return error.what();
  } catch (const std::bad_alloc&) {
    if (cause) *cause = Cause::memory;
    return "the clip is too large for this machine's memory";
  }
  return {};
}

}  // namespace vfm
