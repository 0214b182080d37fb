// Runs a program's tools. Only this code parses arguments, prints, handles signals (signals.h),
// reads the environment and chooses the exit status.
//
// A program does its everyday work without a verb, and other works with a verb as the first
// argument: `vfm-embed search QUERY`. Each work is a Tool: a class with options, checks and run().
// A program's main is `return vfm::cli::run(argc, argv, verbs);`. Parsing opens only short files
// that are given as values, such as a prompt. Names of folders and files in options must be UTF-8
// (base/utf8.h). Exit status: 0 done; 1 some items failed (recorded), or a runtime error; 2 a bad
// option, recipe or model folder. A signal is re-raised: 128+n.
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

/// The rank of this process among the processes that mpirun or srun started. Without a launcher it
/// is rank 0 of 1.
struct Launch {
  int rank = 0, ranks = 1;
  int local_rank = 0, local_ranks = 1;  ///< rank among the processes on this machine
  bool shown_gpu = false;               ///< whether the launcher chose each process's GPUs
};

struct JobOptions;
class Options;

/// The objects that the runner gives to a running tool.
struct Context {
  Progress& progress;                  ///< drawn on stderr if it is a terminal or --progress asks
  Meter& meter;                        ///< the same object
  std::string program;                 ///< "vfm-clip"
  std::string makeflags;               ///< MAKEFLAGS, for share/slots.h; "": no usable jobserver
  std::vector<std::string> arguments;  ///< arguments after the verb
  std::string cache;                   ///< folder of caches, $XDG_CACHE_HOME/vfm; "": none
  Launch launch;
  /// Standard output for records. The runner writes the begin record, and, after run(), the end
  /// record.
  io::ManifestWriter& manifest;

  /// Makes the slots by -j, make's jobserver, VFM_SLOTS and VFM_SHARE (vfm(7)). Joins the file of
  /// VFM_SHARE. Call it once, before any work. `threads` above 0 replaces -j. Throws Error{usage}.
  share::Slots slots(const JobOptions& jobs, int threads = 0) const;
};

class Tool {
 public:
  virtual ~Tool() = default;
  virtual std::string name() const = 0;         ///< "vfm-clip"
  virtual std::string description() const = 0;  ///< one sentence
  virtual std::string examples() const = 0;     ///< one to three command lines for --help
  /// Returns more lines for --version: the versions of the libraries that this tool uses.
  virtual std::string version_details() const { return {}; }
  /// Declares options and positional arguments, in groups. The runner adds the common options (-h,
  /// -v, -q, --progress, --version).
  virtual void add_options(Options& options) = 0;
  /// Returns the text that replaces the line "@NAME@" of the manual page. The runner itself
  /// replaces "@OPTIONS@".
  virtual std::string manual_part(const std::string& /*name*/) const { return {}; }
  /// Checks options beyond CLI11's validators. Opens nothing. Throws Error{usage}.
  virtual void check() {}
  /// Does the work. Returns the number of items that failed and were recorded (0: success).
  virtual long run(Context& context) = 0;
  /// Returns whether this run prints records. Returns false if it prints a plan, a video or
  /// nothing. Called after check().
  virtual bool writes_manifest(const Launch&) const { return true; }
  /// Called after parsing, before there are threads. A tool that decodes in separate processes
  /// (media/isolate/isolated.h) forks its helper here. Returns the number for serve_isolated() in
  /// the helper, and -1 in the tool's own process.
  virtual int fork_helper() { return -1; }
  /// Does the work of the helper of fork_helper(), and of the program started as `PROGRAM
  /// --serve-isolated NUMBER`. Returns the exit status.
  virtual int serve_isolated(int) { return 2; }
  /// Does the work of the program when it has started itself as `PROGRAM --serve-card NUMBER`, to
  /// run a model on a GPU (workers/worker.h). Returns the exit status.
  virtual int serve_card(int) { return 2; }
  /// Returns whether SIGUSR1 asks to save and end (wind_up_requested(), base/stop.h). If so, an
  /// output whose reader has gone is an error; otherwise such an output ends the tool by SIGPIPE.
  virtual bool long_running() const { return false; }
  /// Returns true if the ranks of a launch run one command together. Then only the first rank
  /// reports errors in the arguments.
  virtual bool ranks_are_one() const { return false; }
  /// Returns whether arguments are names of files. If they are texts, a file whose name is a verb
  /// does not matter.
  virtual bool arguments_are_files() const { return true; }
};

/// One kind of work of a program.
struct Verb {
  const char* name;  ///< the verb; "": the everyday work, which comes first
  std::unique_ptr<Tool> (*make)();
};

/// Makes a Tool of class Type, for Verb::make.
template <class Type>
std::unique_ptr<Tool> make() {
  return std::make_unique<Type>();
}

/// Parses the arguments, runs the tool and reports errors. Never throws. The first argument may be
/// a verb. A verb is refused, with advice, if a file of its name exists, too
/// (arguments_are_files()), or if the verb is a later argument. `PROGRAM help VERB` is `PROGRAM
/// VERB --help`, and `PROGRAM help` is `PROGRAM --help`. Processes that the program starts
/// (serve_card()) use the everyday Tool.
int run(int argc, char** argv, std::initializer_list<Verb> verbs);

/// Writes text to standard output at once, for tools whose result is text (plans, dry runs). Throws
/// Error if that fails.
void print(std::string_view text);
/// Writes lines for people to standard error, unless -q is given.
void say(std::string_view text);
/// Return whether standard output, or standard input, is a terminal.
bool stdout_is_terminal();
bool stdin_is_terminal();

}  // namespace vfm::cli
