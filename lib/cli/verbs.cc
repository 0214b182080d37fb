// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace vfm::cli {

void CommonOptions::add(Options& options) {
  options.group(kCommonGroup);
  options.help_flag("-h,--help", "show everyday options and examples")
      .everyday()
      .explained_in("vfm(7)");
  options.help_all_flag("--help-all", "show all options").everyday().explained_in("vfm(7)");
  options.flag("--version", version, "show version, features and libraries").explained_in("vfm(7)");
  options.count("-v,--verbose", verbose, "print more messages; twice for still more")
      .explained_in("vfm(7)");
  options.flag("-q,--quiet", quiet, "print errors only, and no progress").explained_in("vfm(7)");
  options.flag("--progress", progress, "show progress without a terminal too")
      .explained_in("vfm(7)");
}

const Verb* find_verb(std::span<const Verb> verbs, const std::string& word) {
  const auto verb = std::find_if(verbs.begin(), verbs.end(), [&](const Verb& each) {
    return !word.empty() && word == each.name;
  });
  return verb == verbs.end() ? nullptr : &*verb;
}

void refuse_file_of_verb(const std::string& verb) {
  std::error_code error;
  if (std::filesystem::exists(verb, error))
    fail_usage("'{0}' is a verb, and a file of that name is here; './{0}' is the file", verb);
}

std::vector<std::string> help_arguments(const std::vector<std::string>& arguments,
                                        std::span<const Verb> verbs) {
  if (arguments.size() == 1) return {"--help"};
  if (arguments.size() == 2 && find_verb(verbs, arguments[1])) return {arguments[1], "--help"};
  std::string names;
  for (const Verb& verb : verbs.subspan(1))
    names += fmt::format("{}{}", names.empty() ? "" : ", ", verb.name);
  fail_usage("help takes one verb: {}", names);
}

void check_verbs(Options& options, const std::vector<std::string>& arguments, const Tool& everyday,
                 std::span<const Verb> verbs) {
  const auto end = std::find(arguments.begin(), arguments.end(), "--");
  for (const CLI::Option* option : options.app().get_options()) {
    if (!option->get_positional()) continue;
    for (const std::string& value : option->results()) {
      if (!find_verb(verbs, value) || std::find(arguments.begin(), end, value) == end) continue;
      if (everyday.arguments_are_files()) refuse_file_of_verb(value);
      fail_usage("the verb '{0}' goes first: {1} {0} ...{2}", value, everyday.name(),
                 everyday.arguments_are_files() ? "" : "; behind -- it is text");
    }
  }
}

std::string help_text(const Tool& tool, const std::string& command, std::span<const Verb> verbs,
                      Options& options, bool all) {
  std::string usage = "usage: " + command + " [OPTION...]";
  for (const CLI::Option* option : options.app().get_options()) {
    if (!option->get_positional()) continue;
    const std::string name = option->get_name() + (option->get_expected_max() > 1 ? "..." : "");
    usage += option->get_required() ? " " + name : " [" + name + "]";
  }
  std::string text =
      fmt::format("{}\n{}\n\n{}\nExamples:\n", usage, tool.description(), options.help(all));
  const std::string examples = tool.examples();
  for (std::size_t begin = 0, end = 0; begin < examples.size(); begin = end + 1) {
    end = std::min(examples.find('\n', begin), examples.size());
    text += "  " + examples.substr(begin, end - begin) + "\n";
  }
  std::string others;
  for (const Verb& verb : verbs) {
    const std::string name = *verb.name == '\0' ? tool.name() : tool.name() + " " + verb.name;
    if (name != command) others += help_lines(name, verb.make()->description());
  }
  if (!others.empty()) text += "\nSee also:\n" + others;
  std::string page = command;
  std::replace(page.begin(), page.end(), ' ', '-');
  return text +
         fmt::format("\n{}The manual: man {}\n", all ? "" : "All options: --help-all. ", page);
}

std::string manual_page(const std::string& file, const Tool& tool, Options& options) {
  std::ifstream stream(file);
  if (!stream) fail_usage("cannot open '{}': {}", file, errno_text(errno));
  std::string page, line;
  while (std::getline(stream, line)) {
    if (line == "@OPTIONS@")
      page += options.manual();
    else if (line.size() > 2 && line.front() == '@' && line.back() == '@')
      page += tool.manual_part(line.substr(1, line.size() - 2));
    else
      page += line + "\n";
  }
  return page;
}

namespace {

struct VerbWords {
  std::string verb;                  // Name of the verb, or "" for the program without a verb.
  std::vector<std::string> options;  // "--top", "-j"
};

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

}  // namespace

std::string completion_of(std::span<const Verb> verbs) {
  std::vector<VerbWords> words;
  for (const Verb& verb : verbs) {
    const std::unique_ptr<Tool> tool = verb.make();
    CLI::App app;
    Options options(app);
    CommonOptions common;
    tool->add_options(options);
    common.add(options);
    words.push_back({verb.name, {}});
    for (const CLI::Option* option : app.get_options()) {
      for (const std::string& name : option->get_snames())
        words.back().options.push_back("-" + name);
      for (const std::string& name : option->get_lnames())
        words.back().options.push_back("--" + name);
    }
    std::sort(words.back().options.begin(), words.back().options.end());
  }
  return bash_completion(words, verbs.front().make()->name());
}

}  // namespace vfm::cli
