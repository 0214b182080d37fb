// Makes shell completion from the declared options.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace vfm::cli {

struct VerbWords {
  std::string verb;                  ///< Name of the verb, or "" for the program without a verb.
  std::vector<std::string> options;  ///< Names of the options, such as "--top" and "-j".
};

/// Returns a bash completion script. The script completes the verb as the first word, the verb's
/// options, and file names.
std::string bash_completion(const std::vector<VerbWords>& verbs, const std::string& program);

}  // namespace vfm::cli
