// A folder of its own for a test, removed at the end, and samples to fill shards with.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "base/error.h"
#include "shard/sample.h"

namespace vfm::shard {

class Scratch {
 public:
  Scratch() {
    std::string pattern = std::filesystem::temp_directory_path() / "vfm-shard-XXXXXX";
    if (!::mkdtemp(pattern.data())) fail("cannot create '{}'", pattern);
    path_ = pattern;
  }
  ~Scratch() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// What a shell command prints.
inline std::string output_of(const std::string& command) {
  std::FILE* pipe = ::popen(command.c_str(), "r");
  std::string text;
  char piece[4096];
  while (const std::size_t got = std::fread(piece, 1, sizeof piece, pipe))
    text.append(piece, got);
  const int status = ::pclose(pipe);
  return status == 0 ? text : text + "(failed)";
}

inline Sample make_sample(const std::string& key, const std::string& text) {
  return {key, {{"json", "{\"a\":1}"}, {"txt", text}}};
}

}  // namespace vfm::shard
