// The one place that parses arguments, prints, installs signal handlers and chooses the exit status.
//
// A tool is a class with options, parse-time checks and run(); its main is `return vfm::cli::run(argc,
// argv, tool);`. Parsing opens nothing; run() does the work and throws.
// Exit status: 0 done; 1 some items failed (recorded), or a runtime error; 2 a bad option, recipe or
// model folder, found before any work; a signal is re-raised, so the shell sees 128+n.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace vfm {
class Progress;
}

namespace vfm::cli {

/// What the runner gives to a running tool.
struct Context {
  Progress& progress;       ///< drawn on stderr if it is a terminal or --progress asks
  std::string program;      ///< "vfm-clip"
  std::string makeflags;    ///< MAKEFLAGS, for the jobserver
};

class Tool {
 public:
  virtual ~Tool() = default;
  virtual std::string name() const = 0;         ///< "vfm-clip"
  virtual std::string description() const = 0;  ///< one sentence
  virtual std::string example() const = 0;      ///< one command line, shown by --help
  /// Declares options and positionals. Common ones (-v, -q, --progress, --version, --help) are the
  /// runner's.
  virtual void add_options(CLI::App& app) = 0;
  /// Checks that need more than CLI11's validators; throws Error{usage}. Opens nothing.
  virtual void check() {}
  /// Does the work. Returns the number of items that failed and were recorded (0: success).
  virtual long run(Context& context) = 0;
};

/// Parses, runs, reports. Never throws.
int run(int argc, char** argv, Tool& tool);

}  // namespace vfm::cli
