// Shell completion, made from the declared options so that it cannot drift from them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace vfm::cli {

/// A bash completion script: the options of `app`, else file names.
std::string bash_completion(const CLI::App& app, const std::string& program);

}  // namespace vfm::cli
