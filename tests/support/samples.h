// What the tests of shards share: samples to fill them with, and what other programs say of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string>

#include "shard/sample.h"
#include "support/temporary_folder.h"

namespace vfm::shard {

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
