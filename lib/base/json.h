// JSON values that keep the order of their keys. What reads and writes them is in base/json_fwd.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "base/json_fwd.h"

// nlohmann's other type, with sorted names, is not used here. Its header has functions that use it,
// the literals "..."_json, for which each file would compile a parser: a third of its time. This
// stand-in, which nothing can construct, avoids that.
template <>
class nlohmann::basic_json<> {
 public:
  struct json_pointer {
    explicit json_pointer(const std::string& path);
  };
  static basic_json parse(const char* begin, const char* end);
};

#include <nlohmann/json.hpp>

// Instantiated once, in json.cc: else it is half the compile time of a file that reads JSON.
extern template class nlohmann::basic_json<nlohmann::ordered_map>;
