// SPDX-License-Identifier: Apache-2.0
#include "io/places.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "io/file.h"
#include "io/remote/address.h"

namespace vfm::io {
namespace {

namespace fs = std::filesystem;

/// Returns the absolute path in normal form, without a slash at the end.
fs::path whole(const std::string& path) {
  std::error_code error;
  const fs::path normal = fs::absolute(path.empty() ? "." : path, error).lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

/// "s3://bucket" and "/a/b", for "s3://bucket/a/b".
struct Placed {
  std::string_view root, below;
};

Placed placed(std::string_view address) {
  const std::size_t slash = std::min(address.find('/', address.find("://") + 3), address.size());
  return {address.substr(0, slash), address.substr(slash)};
}

}  // namespace

std::string working_folder() {
  std::error_code error;
  return fs::current_path(error).string();
}

std::string name_from(const std::string& folder, const std::string& path) {
  if (!is_remote(folder)) {
    if (is_url(path)) return path;
    return whole(path).lexically_relative(whole(folder)).string();
  }
  if (!is_url(path)) return whole(path).string();
  const Placed from = placed(folder), to = placed(path);
  if (from.root != to.root) return path;
  return whole("/" + std::string(to.below))
      .lexically_relative(whole("/" + std::string(from.below)))
      .string();
}

std::string named_from(const std::string& folder, const std::string& name) {
  if (is_url(name) || fs::path(name).is_absolute()) return name;
  if (!is_remote(folder)) return (fs::path(folder) / name).lexically_normal().string();
  const Placed from = placed(folder);
  const fs::path below = fs::path("/" + std::string(from.below)) / name;
  return std::string(from.root) + below.lexically_normal().string();
}

}  // namespace vfm::io
