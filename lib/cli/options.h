// Options that several tools share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/input_limits.h"
#include "base/work_limit.h"
#include "cli/option_table.h"

namespace vfm::cli {

/// Positional inputs: paths, URLs, manifest files, or "-" for lines on standard input. The default
/// is "-". With -0, lines are separated by NUL bytes, as `find -print0` writes them.
struct InputOptions {
  std::vector<std::string> inputs;
  bool null = false;
  void add(Options& options, const std::string& name, const std::string& help);
  void add_shards(Options& options);
  /// Returns the inputs, or "-" if no input is given. With -0 each "-" is replaced by io::kNames.
  /// Throws Error{usage} if no input is given and standard input is a terminal, or if -0 is given
  /// without "-".
  std::vector<std::string> resolved() const;
};

std::string not_nan(const std::string& text);

/// Check that a number is finite. above_zero() also checks that it is above 0, and not_negative()
/// that it is at least 0.
std::string above_zero(const std::string& text);
std::string not_negative(const std::string& text);

std::string not_blank(const std::string& text);
std::string not_empty(const std::string& name);
/// Checks that a folder to write to is not a file. The folder may be missing.
std::string not_file(const std::string& name);

/// -o/--output DIR and --force (rewrite existing outputs).
struct OutputOptions {
  std::string directory;
  bool force = false;
  void add(Options& options, bool required, const std::string& help);
};

/// -j/--jobs N and the environment variables for Context::slots().
struct JobOptions {
  int jobs = 0;              ///< Value of -j, or 0.
  std::string share;         ///< VFM_SHARE, the file through which programs share slots, or "".
  std::string share_report;  ///< VFM_SHARE_REPORT, the path of an HTML page about sharing, or "".
  /// Adds the option, and reads the environment.
  void add(Options& options);
  /// Throws Error{usage} if VFM_SLOTS, VFM_SHARE or VFM_SHARE_REPORT cannot be used.
  static void check_environment();
};

/// --seed N (default 0).
struct SeedOptions {
  std::uint64_t seed = 0;
  void add(Options& options);
};

/// --device auto|cpu|cuda: the device that computes. Pass the value to choose_device()
/// (tensor/device.h) at the start of run(). A value other than these three requests workers
/// (tools/device_workers.h).
struct DeviceOptions {
  std::string device = "auto";
  OptionRow& add(Options& options);
  static bool asks_workers(const std::string& device);
};

/// --deterministic and --attention auto|own|cudnn: settings for computation on a GPU
/// (ops/determinism.h, ops/attention/attention_choice.h).
struct ComputeOptions {
  bool deterministic = false;
  std::string attention = "auto";
  void add(Options& options);
};

/// --hwaccel none|auto|cuda: which device decodes video. Pass the value to media::choose_hardware()
/// (media/decode/hardware.h) at the start of run().
struct HwaccelOptions {
  std::string hwaccel = "none";
  void add(Options& options);
};

/// --max-pixels, --timeout, --max-work, --protocols: limits on videos and pictures.
struct InputLimitOptions {
  InputLimits limits;
  DecodingWork work = kUsualWork;
  void add(Options& options);
  /// Adds --isolate, for a tool whose Tool::serve_isolated() decodes. The tool must call
  /// check_isolation() in check(), and media::begin_isolation() after apply().
  void add_isolation(Options& options);
  void check_isolation(const HwaccelOptions& hardware) const;
  /// Sets the limits of the program (base/input_limits.h, base/work_limit.h), and of reads from
  /// servers (io/remote/remote_file.h). Call it at the start of run().
  void apply() const;
};

/// --max-member SIZE: the largest part of a sample that is read into memory, in bytes.
struct MemberOptions {
  std::uint64_t bytes = std::uint64_t{1} << 30;
  void add(Options& options);
};

/// The common options of tools that add columns to shards.
struct ColumnOptions {
  InputOptions input;
  OutputOptions output;
  JobOptions jobs;
  MemberOptions member;
  HwaccelOptions hwaccel;
  InputLimitOptions input_limits;
  void add(Options& options);
};

/// --report FILE.html
struct ReportOptions {
  std::string path;
  void add(Options& options, const std::string& help, const char* name = "--report");
};

/// Add an option for a text, such as a prompt. The value is TEXT or @FILE (io/text_or_file.h). The
/// file is read while options are parsed. An unreadable file ends the program with status 2.
OptionRow& add_text_option(Options& options, const char* names, std::string& text,
                           std::string help);
OptionRow& add_text_option(Options& options, const char* names, std::optional<std::string>& text,
                           std::string help);

/// Returns an error message if no HTML page can be written to `file`, or if an existing `file` is
/// not an HTML page, otherwise "".
std::string page_fault(const std::string& file);

/// Adds an option whose value has a unit, such as "64MiB" or "2s" (base/units.h).
OptionRow& add_bytes_option(Options& options, const char* names, std::uint64_t& bytes,
                            std::string help);
/// Adds --tokenizer-memory SIZE. Without the option, `bytes` is 0.
OptionRow& add_tokenizer_memory(Options& options, std::uint64_t& bytes);
OptionRow& add_seconds_option(Options& options, const char* names, double& seconds,
                              std::string help);

}  // namespace vfm::cli
