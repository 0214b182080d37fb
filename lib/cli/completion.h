// Shell completion, made from the declared options so that it cannot drift from them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace vfm::cli {

/// What completion knows of a verb.
struct VerbWords {
  std::string verb;                  ///< "": the everyday work
  std::vector<std::string> options;  ///< "--top", "-j"
};

/// A bash completion script: verbs as the first word, the options of the verb, else file names.
std::string bash_completion(const std::vector<VerbWords>& verbs, const std::string& program);

}  // namespace vfm::cli
