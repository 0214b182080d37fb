// SPDX-License-Identifier: Apache-2.0
#include "cli/runner.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/cpu_level.h"
#include "base/error.h"
#include "base/full_disk.h"
#include "base/harmless.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/left_behind.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/run_end.h"
#include "base/stop.h"
#include "cli/meter.h"
#include "cli/named_files.h"
#include "cli/options.h"
#include "cli/signals.h"
#include "cli/verbs.h"
#include "cli/version.h"
#include "cli/waiting.h"
#include "io/file_cache.h"
#include "io/held_begin.h"
#include "io/manifest.h"

namespace vfm::cli {
namespace {

std::string g_program;     // Set once, before threads.
Meter* g_meter = nullptr;  // Messages clear the progress line first.
std::mutex g_print_mutex;

/// The lines must be complete and harmless.
void write_words(std::string_view lines) {
  const std::lock_guard lock(g_print_mutex);
  if (g_meter) g_meter->clear();
  // One write, so that lines of several programs do not mix.
  if (::write(STDERR_FILENO, lines.data(), lines.size()) < 0 && errno == EPIPE) note_closed_pipe();
}

void print_message(LogLevel, std::string_view message) {
  write_words(fmt::format("{}: {}\n", g_program, harmless(shortened(message))));
}

/// Fills closed standard descriptors: otherwise the next file would get such a number, and messages
/// or records would be written to the file. Reading and writing them still fails.
void hold_standard_descriptors() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(number, F_GETFD) == -1 && errno == EBADF)
      ::open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

/// Waits until the first rank has reported the error, because a launcher ends all ranks as soon as
/// one ends.
void leave_to_first() {
  for (int tries = 0; tries < 100 && stop_signal() == 0; ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

/// `command` is, for example, "vfm-embed search". `says` is whether this rank reports the error.
int refuse_arguments(const std::exception& error, const std::string& command, bool says) {
  if (!says) {
    leave_to_first();
    return 2;
  }
  log_error("{}", error.what());
  write_words(fmt::format("Try '{} --help'.\n", command));
  return 2;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string cache_folder() {
  if (const std::string cache = environment("XDG_CACHE_HOME"); !cache.empty())
    return cache + "/vfm";
  if (const std::string home = environment("HOME"); !home.empty()) return home + "/.cache/vfm";
  return "";
}

/// Reads rank and size of Open MPI, MPICH (PMI) or Slurm.
Launch read_launch() {
  const auto number = [](std::initializer_list<const char*> names, int fallback) {
    for (const char* name : names)
      if (const std::string text = environment(name); !text.empty()) return std::atoi(text.c_str());
    return fallback;
  };
  Launch launch;
  launch.ranks = number({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}, 1);
  launch.rank = number({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}, 0);
  launch.local_ranks = number(
      {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_TASKS_PER_NODE"}, launch.ranks);
  launch.local_rank = number({"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"}, 0);
  launch.shown_gpu = std::getenv("CUDA_VISIBLE_DEVICES") != nullptr;
  if (launch.ranks < 1 || launch.rank >= launch.ranks) return {};
  return launch;
}

/// `says` is whether this rank tells what all ranks of a launch do alike; with -vv all tell it.
LogLevel level_of(const CommonOptions& common, bool says) {
  if (common.quiet) return LogLevel::error;
  if (common.verbose > 1) return LogLevel::debug;
  return common.verbose == 1 && says ? LogLevel::info : LogLevel::warning;
}

/// Returns the exit status, which is 1 if standard output has lost data.
int finish(int status) {
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
    log_error("cannot write standard output: {}", errno_text(errno));
    return 1;
  }
  return status;
}

/// Returns an id of the command and its options, without options that do not change the records.
std::string stream_id(const std::string& command, const CLI::App& app) {
  const auto counts = [](const CLI::Option& option) {
    return option.count() > 0 && option.get_group() != kCommonGroup &&
           !option.check_lname("jobs") && !option.check_lname("force") &&
           !option.check_lname("report") && !option.check_lname("isolate") &&
           !option.check_lname("cache") &&
           !(option.check_lname("device") && DeviceOptions::asks_workers(option.results().front()));
  };
  Json given = Json::array();
  for (const CLI::Option* option : app.get_options())
    if (counts(*option)) given.push_back({option->get_name(), option->results()});
  return hash_hex(dump_json({command, given})).substr(0, 16);
}

/// Throws Error{usage} if a list has only commas. CLI11 would take the next argument for the list.
void check_lists(const CLI::App& app, const std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
    if (!arguments[i].starts_with("--")) continue;
    const std::size_t sign = arguments[i].find('=');
    const CLI::Option* option = app.get_option_no_throw(arguments[i].substr(0, sign));
    if (!option || option->get_delimiter() != ',') continue;
    std::string list;
    if (sign != std::string::npos)
      list = arguments[i].substr(sign + 1);
    else if (i + 1 < arguments.size())
      list = arguments[i + 1];
    if (!list.empty() && list.find_first_not_of(',') == std::string::npos)
      fail_usage("{} '{}' names nothing", option->get_name(), list);
  }
}

/// Writes the page of VFM_SHARE_REPORT. If this fails, returns 1. The stream of records then ends
/// with this status, because the records are complete.
int end_watch(Meter& meter, int status) {
  try {
    meter.end_watch();
    return status;
  } catch (const Error& error) {
    log_error("{}", error.what());
    return 1;
  }
}

/// Returns the exit status. It is 1 if the run began its work.
int status_of(const Error& error) {
  switch (error.kind()) {
    case ErrorKind::usage:
      return 2;
    case ErrorKind::conflict:
      return 3;
    case ErrorKind::no_part:
      return 4;
    default:
      return 1;
  }
}

/// For a run that fails, so that readers see a begin without an end.
void begin_at_least() noexcept {
  try {
    io::write_held_begin();
  } catch (...) {  // Nobody reads the output. Stopped is no std::exception.
  }
}

/// Runs the tool between the records that begin and end its output. If the tool throws, no end is
/// written, and for a usage error no begin either, so readers have no input. Returns the exit
/// status, which is also in the end.
int run_in_stream(Tool& tool, Context& context, const std::string& id) {
  const bool stream = tool.writes_manifest(context.launch);
  if (stream) context.manifest.begin(tool.name(), id);
  int status = 1;
  try {
    status = end_watch(context.meter, tool.run(context) == 0 ? 0 : 1);
  } catch (const Error& error) {
    if (status_of(error) == 1) begin_at_least();
    throw;
  } catch (...) {
    begin_at_least();
    throw;
  }
  if (stream) context.manifest.end(status);
  return status;
}

/// Returns whether the log gets a line of progress every minute.
bool says_progress(const Tool& tool, const CommonOptions& common) {
  return tool.long_running() && !common.quiet;
}

/// `makeflags` is Slots::given_jobserver(). `has_slots` is whether the tool has -j.
int run_tool(Tool& tool, const CommonOptions& common, const std::vector<std::string>& arguments,
             const std::string& id, const std::string& makeflags, bool has_slots) {
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  const bool draw = common.progress || (terminal && !common.quiet);
  const Launch launch = read_launch();
  Meter meter(g_program,
              launch.rank != 0                                    ? MeterStyle::none
              : draw                                              ? MeterStyle::line
              : common.verbose > 0 || says_progress(tool, common) ? MeterStyle::log
                                                                  : MeterStyle::none,
              terminal);
  g_meter = &meter;
  io::ManifestWriter manifest;
  Context context{meter,     meter,          tool.name(), makeflags,
                  arguments, cache_folder(), launch,      manifest};
  const auto end_meter = [&] {
    meter.finish();
    g_meter = nullptr;
  };
  bool checked = false;
  try {
    if (has_slots) JobOptions::check_environment();
    if (const std::string cache = environment("VFM_CACHE"); !cache.empty()) io::set_cache(cache);
    tool.check();
    checked = true;
    const int status = run_in_stream(tool, context, id);
    end_meter();
    return finish(status);
  } catch (const Stopped&) {
    end_meter();
    if (stop_signal() != 0) end_by_signal(stop_signal());
    std::fflush(stdout);
    // The thread that threw Stopped may not know why the run ends. The message is empty if another
    // rank reports the reason.
    if (const std::string why = run_end_message(); !why.empty()) log_error("{}", why);
    return 1;
  } catch (const Error& error) {
    end_meter();
    std::fflush(stdout);  // Keeps earlier output before the message.
    // An error without a message is reported by another rank.
    const bool other = tool.ranks_are_one() && launch.rank > 0 && !checked;
    if (other)
      leave_to_first();
    else if (error.what()[0] != '\0')
      log_error("{}", error.what());
    return status_of(error);
  } catch (const std::filesystem::filesystem_error& error) {
    end_meter();
    log_error("cannot use '{}': {}", error.path1().string(), error.code().message());
    return 1;
  } catch (const std::bad_alloc&) {
    end_meter();
    log_error("out of memory; see MEMORY in vfm(7)");
    return 1;
  } catch (const std::exception& error) {
    end_meter();
    log_error("internal error: {}; please report it with the command line", error.what());
    return 1;
  }
}

int run_command(Tool& tool, const std::string& command, std::vector<std::string> arguments,
                std::span<const Verb> verbs, const std::string& makeflags, bool says) {
  CLI::App app(tool.description(), command);
  Options options(app);
  CommonOptions common;
  try {
    tool.add_options(options);
    common.add(options);
    if (arguments.size() == 2 && arguments[0] == "--generate-manual") {
      std::fputs(manual_page(arguments[1], tool, options).c_str(), stdout);
      return finish(0);
    }
    check_lists(app, arguments);
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    app.parse(reversed);
    if (command == g_program) check_verbs(options, arguments, tool, verbs);
    check_named_files(app);
  } catch (const CLI::CallForHelp&) {
    std::fputs(help_text(tool, command, verbs, options, false).c_str(), stdout);
    return finish(0);
  } catch (const CLI::CallForAllHelp&) {
    std::fputs(help_text(tool, command, verbs, options, true).c_str(), stdout);
    return finish(0);
  } catch (const CLI::ParseError& error) {
    // --version needs no positionals.
    if (!common.version) return refuse_arguments(error, command, says);
  } catch (const Error& error) {
    return refuse_arguments(error, command, says);
  }
  if (common.version) {
    std::fputs(version_text(g_program, tool.version_details()).c_str(), stdout);
    return finish(0);
  }
  set_log_sink(print_message, level_of(common, says));
  if (const int channel = tool.fork_helper(); channel >= 0) {
    leave_signals();
    return tool.serve_isolated(channel);
  }
  take_signals(tool.long_running(), tool.winds_up());
  wait_politely();
  const int status =
      run_tool(tool, common, arguments, stream_id(command, app), makeflags, options.has("--jobs"));
  const int left = left_behind();
  if (left > 0)
    log_warning("{} decodings hang in FFmpeg and end with this program{}", left,
                options.has("--isolate") ? "; --isolate ends each alone" : "");
  if (left_on_disk() > 0) log_warning("a disk does not answer; what waits for it ends here");
  if (left + left_on_disk() > 0) {
    std::fflush(stdout);
    ::_exit(status);  // Keeps the memory that they still use.
  }
  return status;
}

}  // namespace

int run(int argc, char** argv, std::initializer_list<Verb> all) {
  const std::span<const Verb> verbs(all.begin(), all.size());
  hold_standard_descriptors();
  const std::unique_ptr<Tool> everyday = verbs.front().make();
  g_program = everyday->name();
  take_lost_files(g_program.c_str());
  hear_of_children();
  const std::string cpu = environment("VFM_CPU");
  const bool knows_cpu = cpu.empty() || limit_cpu_level(cpu);
  const std::string makeflags = share::Slots::given_jobserver(environment("MAKEFLAGS"));
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  if (arguments.size() == 2 && arguments[0] == "--serve-isolated") {
    leave_signals();
    return everyday->serve_isolated(std::atoi(argv[2]));
  }
  if (arguments.size() == 2 && arguments[0] == "--serve-gpu") {
    leave_signals();
    wait_politely();
    return everyday->serve_gpu(std::atoi(argv[2]));
  }
  set_log_sink(print_message, LogLevel::warning);
  if (arguments == std::vector<std::string>{"--generate-completion", "bash"}) {
    std::fputs(completion_of(verbs).c_str(), stdout);
    return finish(0);
  }
  std::string command = g_program;
  const bool says = !everyday->ranks_are_one() || read_launch().rank == 0;
  try {
    if (!knows_cpu) fail_usage("VFM_CPU is '{}'; set it to base, avx2 or avx512, or unset it", cpu);
    const bool help = !arguments.empty() && arguments[0] == "help";
    if (help && everyday->arguments_are_files()) refuse_file_of_verb("help");
    if (help) arguments = help_arguments(arguments, verbs);
    const Verb* verb = arguments.empty() ? nullptr : find_verb(verbs, arguments[0]);
    if (!verb) return run_command(*everyday, command, arguments, verbs, makeflags, says);
    if (everyday->arguments_are_files()) refuse_file_of_verb(arguments[0]);
    command += " " + arguments[0];
    arguments.erase(arguments.begin());
    return run_command(*verb->make(), command, arguments, verbs, makeflags, says);
  } catch (const Error& error) {
    return refuse_arguments(error, command, says);
  }
}

void print(std::string_view text) {
  std::fflush(stdout);
  while (!text.empty()) {
    const ssize_t put = ::write(STDOUT_FILENO, text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail_output(errno, "cannot write standard output");
    text.remove_prefix(static_cast<std::size_t>(put));
  }
}

void say(std::string_view text) {
  if (log_level() < LogLevel::warning) return;
  std::string lines;
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
    end = std::min(text.find('\n', begin), text.size());
    lines += harmless(text.substr(begin, end - begin)) + "\n";
  }
  write_words(lines);
}

bool stdout_is_terminal() {
  return ::isatty(STDOUT_FILENO) != 0;
}
bool stdin_is_terminal() {
  return ::isatty(STDIN_FILENO) != 0;
}

}  // namespace vfm::cli
