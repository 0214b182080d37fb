// The type of JSON values, which keep the order of their keys. base/json_fwd.h reads and writes
// them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "base/json_fwd.h"

// This stand-in replaces nlohmann's type with sorted names, which is not used here. Without it,
// literals "..."_json would compile a parser in each file.
template <>
class nlohmann::basic_json<> {
 public:
  struct json_pointer {
    explicit json_pointer(const std::string& path);
  };
  static basic_json parse(const char* begin, const char* end);
};

#include <nlohmann/json.hpp>

// Instantiated only in json.cc, since an instantiation takes long to compile.
extern template class nlohmann::basic_json<nlohmann::ordered_map>;
