// SPDX-License-Identifier: Apache-2.0
#include "base/shared_library.h"

#include <dlfcn.h>

#include "base/format.h"

namespace vfm {

SharedLibrary::SharedLibrary(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if ((handle_ = ::dlopen(name, RTLD_NOW | RTLD_LOCAL)) != nullptr) {
      name_ = name;
      missing_.clear();
      return;
    }
    missing_ += vfm::format("{}{}", missing_.empty() ? "cannot open " : " or ", name);
  }
}

void* SharedLibrary::address(const char* name) {
  void* const found = handle_ == nullptr ? nullptr : ::dlsym(handle_, name);
  if (found == nullptr && handle_ != nullptr)
    missing_ = vfm::format("{} has no function {}", name_, name);
  return found;
}

}  // namespace vfm
