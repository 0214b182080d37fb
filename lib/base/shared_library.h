// A shared library (dlopen) that is opened when first needed, so that programs start without it.
// Thread-safety: one thread opens it; any thread may use its functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>

namespace vfm {

/// The library is never closed, since its threads and destructors may outlive this object.
class SharedLibrary {
 public:
  /// Opens the first existing one of `names` (paths, or names that the loader searches).
  explicit SharedLibrary(std::initializer_list<const char*> names);

  /// Returns why no library was opened, or which function the library lacks, or "" if nothing is
  /// missing.
  const std::string& missing() const { return missing_; }
  /// Points `function` to the function of this name, or to null; in that case missing() names the
  /// function.
  template <class F>
  void find(const char* name, F*& function) {
    function = reinterpret_cast<F*>(address(name));
  }

 private:
  void* address(const char* name);

  std::string name_, missing_;
  void* handle_ = nullptr;
};

}  // namespace vfm
