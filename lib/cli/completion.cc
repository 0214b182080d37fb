// SPDX-License-Identifier: Apache-2.0
#include "cli/completion.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace vfm::cli {

std::string bash_completion(const std::vector<VerbWords>& verbs, const std::string& program) {
  std::string names, cases, everyday;
  for (const VerbWords& words : verbs) {
    const std::string options = fmt::format("options='{}' ;;\n", fmt::join(words.options, " "));
    if (words.verb.empty()) {
      everyday = "    *) " + options;
      continue;
    }
    cases += fmt::format("    {}) {}", words.verb, options);
    names += (names.empty() ? "" : " ") + words.verb;
  }
  cases += everyday;
  std::string function = "_" + program;
  std::replace(function.begin(), function.end(), '-', '_');
  return fmt::format(
      "# bash completion for {0}\n"
      "{1}() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} verbs='{2}' options=\n"
      "  case ${{COMP_WORDS[1]}} in\n"
      "{3}"
      "  esac\n"
      "  if [[ $word == -* ]]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\")\n"
      "  else\n"
      "    mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
      "    ((COMP_CWORD > 1)) || mapfile -t -O ${{#COMPREPLY[@]}} COMPREPLY < <(compgen -W "
      "\"$verbs\" -- \"$word\")\n"
      "  fi\n"
      "}}\n"
      "complete -o filenames -F {1} {0}\n",
      program, function, names, cases);
}

}  // namespace vfm::cli
