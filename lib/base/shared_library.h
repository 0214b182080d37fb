// A shared library (dlopen) that is opened when it is first needed.
// Thread-safety: one thread opens it; any thread may use its functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>

namespace vfm {

/// The library is never closed, since its threads may outlive this object.
class SharedLibrary {
 public:
  /// Opens the first of `names` that exists. A name is a path, or a name that the loader searches.
  explicit SharedLibrary(std::initializer_list<const char*> names);

  /// Returns the reason why no library was opened, or the name of a function that the library
  /// lacks. Returns "" if nothing is missing.
  const std::string& missing() const { return missing_; }
  /// Sets `function` to the library's function `name`. If the library lacks the function, sets
  /// `function` to null, and missing() names it.
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
