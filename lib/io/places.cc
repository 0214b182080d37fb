// SPDX-License-Identifier: Apache-2.0
#include "io/places.h"

#include <filesystem>
#include <system_error>

#include "io/file.h"

namespace vfm::io {
namespace {

namespace fs = std::filesystem;

/// Returns the absolute path in normal form, without a slash at the end.
fs::path whole(const std::string& path) {
  std::error_code error;
  const fs::path normal = fs::absolute(path.empty() ? "." : path, error).lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

}  // namespace

std::string working_folder() {
  std::error_code error;
  return fs::current_path(error).string();
}

std::string name_from(const std::string& folder, const std::string& path) {
  return is_url(path) ? path : whole(path).lexically_relative(whole(folder)).string();
}

std::string named_from(const std::string& folder, const std::string& name) {
  if (is_url(name) || fs::path(name).is_absolute()) return name;
  return (fs::path(folder) / name).lexically_normal().string();
}

}  // namespace vfm::io
