// Defines the type Json, whose objects keep the order of their names. base/json_fwd.h parses and
// writes JSON.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "base/json_fwd.h"

// Replaces nlohmann::json, which sorts names and which vfm does not use. With nlohmann's
// definition, literals "..."_json would compile a parser in each file.
template <>
class nlohmann::basic_json<> {
 public:
  struct json_pointer {
    explicit json_pointer(const std::string& path);
  };
  static basic_json parse(const char* begin, const char* end);
};

#include <nlohmann/json.hpp>

// The template is instantiated only in json.cc, since an instantiation compiles slowly.
extern template class nlohmann::basic_json<nlohmann::ordered_map>;
