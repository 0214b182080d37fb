// SPDX-License-Identifier: Apache-2.0
#include "cli/completion.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

namespace vfm::cli {

std::string bash_completion(const CLI::App& app, const std::string& program) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    for (const std::string& name : option->get_snames())
      names.push_back("-" + name);
    for (const std::string& name : option->get_lnames())
      names.push_back("--" + name);
  }
  std::sort(names.begin(), names.end());
  std::string words;
  for (const std::string& name : names)
    words += (words.empty() ? "" : " ") + name;
  std::string function = "_" + program;
  std::replace(function.begin(), function.end(), '-', '_');
  return fmt::format(
      "# bash completion for {0}\n"
      "{1}() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}}\n"
      "  if [[ $word == -* ]]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W '{2}' -- \"$word\")\n"
      "  else\n"
      "    mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
      "  fi\n"
      "}}\n"
      "complete -o filenames -F {1} {0}\n",
      program, function, words);
}

}  // namespace vfm::cli
