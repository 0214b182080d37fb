// The one place that parses arguments, prints, takes signals (signals.h), reads the environment and
// chooses the exit status.
//
// A program has an everyday work and other works, called by a verb in first place: `vfm-embed
// search QUERY`. Each is a Tool: a class with options, checks and run(). A program's main is
// `return vfm::cli::run(argc, argv, verbs);`. Parsing opens only short files that are values, such
// as a prompt's; run() does the work and throws. Names of folders and files that options give are
// UTF-8 (base/utf8.h), as records name them. Exit status: 0 done; 1 some items failed (recorded),
// or a runtime error; 2 a bad option, recipe or model folder; a signal is re-raised: 128+n.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "share/slots.h"

namespace vfm {
class Progress;
namespace cli {
class Meter;
}
namespace io {
class ManifestWriter;
}
}  // namespace vfm

namespace vfm::cli {

/// Where this process stands among those that mpirun or srun started: 0 of 1 without a launcher.
struct Launch {
  int rank = 0, ranks = 1;
  int local_rank = 0, local_ranks = 1;  ///< on this machine
  bool shown_gpu = false;               ///< whether it shows each process GPUs of its own choice
};

struct JobOptions;
class Options;

/// What the runner gives to a running tool.
struct Context {
  Progress& progress;                  ///< drawn on stderr if it is a terminal or --progress asks
  Meter& meter;                        ///< the same
  std::string program;                 ///< "vfm-clip"
  std::string makeflags;  ///< MAKEFLAGS, for share/slots.h; "": it names nothing of use
  std::vector<std::string> arguments;  ///< those behind the verb
  std::string cache;  ///< folder for what may be lost, $XDG_CACHE_HOME/vfm; "": there is none
  Launch launch;
  /// Standard output for records. The runner writes the record before the first, and, when run()
  /// has returned, the one after the last.
  io::ManifestWriter& manifest;

  /// Slots as -j, make's jobserver, VFM_SLOTS and VFM_SHARE say (vfm(7)); joins the file of the
  /// last. Call it once, before any work: throws Error{usage}. `threads` above 0 is in the place of
  /// -j.
  share::Slots slots(const JobOptions& jobs, int threads = 0) const;
};

class Tool {
 public:
  virtual ~Tool() = default;
  virtual std::string name() const = 0;         ///< "vfm-clip"
  virtual std::string description() const = 0;  ///< one sentence
  virtual std::string examples() const = 0;     ///< one to three command lines for --help
  /// More lines for --version: versions of the libraries this tool stands on.
  virtual std::string version_details() const { return {}; }
  /// Declares options and positionals, in groups. Common ones (-h, -v, -q, --progress, --version)
  /// are the runner's.
  virtual void add_options(Options& options) = 0;
  /// What stands in a manual page in place of the line "@NAME@", besides "@OPTIONS@".
  virtual std::string manual_part(const std::string& /*name*/) const { return {}; }
  /// Checks that need more than CLI11's validators; throws Error{usage}. Opens nothing.
  virtual void check() {}
  /// Does the work. Returns the number of items that failed and were recorded (0: success).
  virtual long run(Context& context) = 0;
  /// False: this run prints something else (a plan, a video), or nothing. Asked after check().
  virtual bool writes_manifest(const Launch&) const { return true; }
  /// Called before there are threads, with the options known: of a tool that decodes apart
  /// (media/isolate/isolated.h) forks what helps it. In that returns the number for
  /// serve_isolated(), else -1.
  virtual int fork_helper() { return -1; }
  /// What that does; and the program when it has started itself as `PROGRAM --serve-isolated
  /// NUMBER`. Returns its exit status.
  virtual int serve_isolated(int) { return 2; }
  /// What the program does when it was started as `PROGRAM --serve-card NUMBER`: by itself, to have
  /// a model on a card (workers/worker.h). Returns its exit status.
  virtual int serve_card(int) { return 2; }
  /// True: SIGUSR1 asks to save and end (base/stop.h wind_up_requested), and an output whose
  /// reader has gone is an error. Else that ends the tool by SIGPIPE, as pipelines expect.
  virtual bool long_running() const { return false; }
  /// True: the ranks of a launch run one command together. The first rank says for all what is
  /// wrong with the arguments.
  virtual bool ranks_are_one() const { return false; }
  /// False: its arguments are texts, so a file whose name is a verb does not matter.
  virtual bool arguments_are_files() const { return true; }
};

/// A work of a program.
struct Verb {
  const char* name;  ///< "": the everyday work, which is first
  std::unique_ptr<Tool> (*make)();
};

/// Verb::make for a class.
template <class Type>
std::unique_ptr<Tool> make() {
  return std::make_unique<Type>();
}

/// Parses, runs, reports. Never throws. The first argument may be a verb; where a file of that name
/// is there too (arguments_are_files()), or a verb comes later, it is refused with the way out.
/// `PROGRAM help VERB` is `PROGRAM VERB --help`, and `PROGRAM help` is `PROGRAM --help`. What the
/// program starts itself as (serve_card()) is the everyday Tool's.
int run(int argc, char** argv, std::initializer_list<Verb> verbs);

/// Writes text to standard output now. For tools whose result is text (plans, dry runs). Throws
/// Error when it cannot be written.
void print(std::string_view text);
/// Writes lines for people to standard error, unless -q: beside what print() gives to programs.
void say(std::string_view text);
/// Whether standard output (input) is a terminal.
bool stdout_is_terminal();
bool stdin_is_terminal();

}  // namespace vfm::cli
