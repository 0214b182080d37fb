// Finds the verb in a command line. Makes the texts of --help, manual pages and shell completion
// for the verbs of a program.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/option_table.h"
#include "cli/runner.h"

namespace vfm::cli {

inline constexpr const char* kCommonGroup = "Common options";

struct CommonOptions {
  int verbose = 0;
  bool quiet = false;
  bool progress = false;
  bool version = false;
  void add(Options& options);
};

/// Returns the verb named `word`, or null.
const Verb* find_verb(std::span<const Verb> verbs, const std::string& word);
/// Throws Error{usage} if the working directory has a file of the verb's name.
void refuse_file_of_verb(const std::string& verb);
/// Returns the arguments that replace `help [VERB]`. Throws Error{usage} for other words after
/// "help".
std::vector<std::string> help_arguments(const std::vector<std::string>& arguments,
                                        std::span<const Verb> verbs);
/// Checks `arguments` that begin with no verb. Throws Error{usage} if a positional argument before
/// "--" is a verb.
void check_verbs(Options& options, const std::vector<std::string>& arguments, const Tool& everyday,
                 std::span<const Verb> verbs);

/// Returns the text of --help, or of --help-all if `all`. `command` is, for example, "vfm-embed
/// search".
std::string help_text(const Tool& tool, const std::string& command, std::span<const Verb> verbs,
                      Options& options, bool all);
/// Returns the manual page in `file`. The options replace the line "@OPTIONS@", and
/// Tool::manual_part(NAME) replaces a line "@NAME@". Throws Error{usage} if the file cannot be
/// read.
std::string manual_page(const std::string& file, const Tool& tool, Options& options);
/// Returns a bash completion script for `verbs`.
std::string completion_of(std::span<const Verb> verbs);

}  // namespace vfm::cli
