// Options of vfm-generate under one heading of --help.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/options.h"

/// Options of one owner: what they decide, which is their heading in --help.
struct OptionGroup {
  vfm::cli::Options& options;
  const char* owner;
  CLI::App& app = options.app();

  template <class Value>
  CLI::Option* add(const char* name, Value& value, const char* type, const char* help) const {
    return app.add_option(name, value, help)->type_name(type)->group(owner);
  }
  template <class Value>
  void add_path(const char* name, Value& value, const char* type, const char* help) const {
    add(name, value, type, help)->check(vfm::cli::not_empty);
  }
  CLI::Option* add_choice(const char* name, std::string& value, const char* type,
                          const std::vector<std::string>& choices, const char* help) const {
    return add(name, value, type, help)->check(CLI::IsMember(choices));
  }
  void add_flag(const char* name, bool& value, const char* help) const {
    app.add_flag(name, value, help)->group(owner);
  }
};
