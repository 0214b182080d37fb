// Runs a program's tools. The runner parses arguments, handles signals (signals.h), reads the
// environment and chooses the exit status.
//
// A program has several kinds of work. Each kind is done by a Tool, a class with options, checks
// and run(). A verb as the first argument, as in `vfm-embed search QUERY`, selects the Tool. If the
// first argument is no verb, the default Tool runs. The main function of a program is `return
// vfm::cli::run(argc, argv, verbs);`. Names of files and folders in options must be UTF-8
// (base/utf8.h). Exit status: 0 if all is done; 1 if some items failed and were recorded, or after
// a runtime error; 2 for a bad option, recipe or model folder; 3 if a folder has another number of
// parts, and 4 if no part is free (parts/part_run.h); 128+n after signal n.
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

/// The rank of this process among the processes that mpirun or srun started. Without a launcher the
/// process is rank 0 of 1.
struct Launch {
  int rank = 0, ranks = 1;
  int local_rank = 0, local_ranks = 1;  ///< Rank and number of ranks on this machine.
  bool shown_gpu = false;               ///< True if the launcher chose the GPUs of each process.
};

struct JobOptions;
class Options;

struct Context {
  Progress& progress;     ///< Progress for stderr, drawn on a terminal or with --progress.
  Meter& meter;           ///< The same object as `progress`.
  std::string program;    ///< Name of the program, such as "vfm-clip".
  std::string makeflags;  ///< MAKEFLAGS, or "" without a usable jobserver.
  std::vector<std::string> arguments;  ///< Arguments after the verb.
  std::string cache;                   ///< Folder of caches, $XDG_CACHE_HOME/vfm, or "".
  Launch launch;
  /// Writes records to standard output. The runner writes the begin record before run() and the end
  /// record after run().
  io::ManifestWriter& manifest;

  /// Makes the slots from -j, make's jobserver, VFM_SLOTS and VFM_SHARE (vfm(7)). If `threads` is
  /// above 0, it replaces the value of -j. Call it once, before any work. Throws Error{usage}.
  share::Slots slots(const JobOptions& jobs, int threads = 0) const;
};

class Tool {
 public:
  virtual ~Tool() = default;
  virtual std::string name() const = 0;
  virtual std::string description() const = 0;  ///< One sentence.
  virtual std::string examples() const = 0;     ///< One to three command lines for --help.
  /// Returns lines for --version, with versions of libraries.
  virtual std::string version_details() const { return {}; }
  /// Adds the tool's options and arguments. The runner adds the common options.
  virtual void add_options(Options& options) = 0;
  /// Returns the text that replaces the line "@NAME@" of the manual page. The runner itself
  /// replaces "@OPTIONS@".
  virtual std::string manual_part(const std::string& /*name*/) const { return {}; }
  /// Checks the options after parsing. Must not open files. Throws Error{usage}.
  virtual void check() {}
  /// Does the work. Returns the number of items that failed and were recorded (0: success).
  virtual long run(Context& context) = 0;
  /// Returns whether this run prints records on standard output. Called after check().
  virtual bool writes_manifest(const Launch&) const { return true; }
  /// Forks the helper of a tool that decodes in separate processes (media/isolate/isolated.h).
  /// Returns -1 in the tool's process. In the helper, returns the argument for serve_isolated().
  /// Called after parsing, before any thread starts.
  virtual int fork_helper() { return -1; }
  /// Does the work of the helper process, and of a process started as `PROGRAM --serve-isolated
  /// NUMBER`. Returns the exit status.
  virtual int serve_isolated(int) { return 2; }
  /// Runs a model on a GPU (workers/worker.h), in a process that the program started as `PROGRAM
  /// --serve-gpu NUMBER`. Returns the exit status.
  virtual int serve_gpu(int) { return 2; }
  /// If the reader of the output has closed the pipe, a long-running tool gets an error, and any
  /// other tool ends by SIGPIPE.
  virtual bool long_running() const { return false; }
  /// Returns whether SIGUSR1 asks the tool to end at the next good moment (wind_up_requested(),
  /// base/stop.h). Otherwise SIGUSR1 ends the process. Called after the options were read.
  virtual bool winds_up() const { return long_running(); }
  /// Returns true if the ranks of a launch run one command together, so that only rank 0 reports
  /// errors in the arguments, and with -v what the command does.
  virtual bool ranks_are_one() const { return false; }
  /// Returns whether positional arguments are names of files. If they are, a verb is an error while
  /// a file with the same name exists.
  virtual bool arguments_are_files() const { return true; }
};

/// A kind of work of a program. The first Verb of a program is the default: it runs if no verb is
/// given.
struct Verb {
  const char* name;  ///< The verb, or "" for the default.
  std::unique_ptr<Tool> (*make)();
};

template <class Type>
std::unique_ptr<Tool> make() {
  return std::make_unique<Type>();
}

/// Returns the exit status. Never throws. A verb is an error if a file has the same name
/// (arguments_are_files()), or if the verb is not the first argument. `PROGRAM help VERB` means
/// `PROGRAM VERB --help`, and `PROGRAM help` means `PROGRAM --help`. A process started for
/// serve_gpu() uses the default Tool.
int run(int argc, char** argv, std::initializer_list<Verb> verbs);

/// Writes and flushes `text` to standard output, for tools that print no records. Throws Error if
/// the text cannot be written.
void print(std::string_view text);
/// Writes lines for people to standard error, unless -q is given.
void say(std::string_view text);
bool stdout_is_terminal();
bool stdin_is_terminal();

}  // namespace vfm::cli
