// A folder of its own for a test, removed at the end.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace vfm {

struct TemporaryFolder {
  std::string path = (std::filesystem::temp_directory_path() / "vfm-test-XXXXXX").string();

  TemporaryFolder() {
    if (::mkdtemp(path.data()) == nullptr) std::abort();
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string operator/(const std::string& name) const { return path + "/" + name; }
  /// A file of it, "a" or "a/b".
  void write(const std::string& name, std::string_view bytes) const {
    const std::filesystem::path file = path + "/" + name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
};

}  // namespace vfm
