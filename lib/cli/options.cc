// SPDX-License-Identifier: Apache-2.0
#include "cli/options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/pipe_board.h"
#include "base/units.h"
#include "cli/runner.h"
#include "io/manifest.h"
#include "report/html.h"

namespace vfm::cli {
namespace {

/// Turns a base/units.h parser into a CLI11 callback whose failure is a parse error (exit 2).
template <class Value, class Parse>
CLI::Option* add_unit_option(CLI::App& app, const std::string& names, Value& value,
                             const std::string& help, Parse parse, const std::string& type,
                             const std::string& shown, const std::string& group = "Options") {
  return app
      .add_option_function<std::string>(
          names,
          [&value, parse, names](const std::string& text) {
            try {
              value = parse(text);
            } catch (const Error& error) {
              throw CLI::ValidationError(names, error.what());
            }
          },
          help)
      ->type_name(type)
      ->default_str(shown)
      ->group(group);
}

/// Whether something is there that no tool wrote as a page: a video, say, that was meant as an
/// input.
bool holds_other_than_page(const std::string& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return false;
  std::string begin(report::kPageBegin.size(), '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return stream.gcount() > 0 && begin != report::kPageBegin;
}

/// An option of a page to write.
CLI::Option* add_page(CLI::App& app, const char* name, std::string& path, const std::string& help) {
  return app.add_option(name, path, help)
      ->check(not_empty)
      ->type_name("FILE.html")
      ->check([](const std::string& file) -> std::string {
        std::error_code error;
        if (std::filesystem::is_directory(file, error)) return "'" + file + "' is a folder";
        if (holds_other_than_page(file))
          return "'" + file + "' is there, and no page; name another file, or remove it";
        // Its folder may still be made, in the nearest one that is there.
        auto folder = std::filesystem::absolute(file, error).parent_path();
        while (!std::filesystem::exists(folder, error) && folder.has_relative_path())
          folder = folder.parent_path();
        return ::access(folder.c_str(), W_OK | X_OK) == 0
                   ? ""
                   : "'" + folder.string() + "' is no folder that can be written to";
      });
}

std::optional<double> finite_number(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  const bool all = !text.empty() && *end == '\0';
  return all && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

}  // namespace

std::string not_nan(const std::string& text) {
  return std::isnan(std::strtod(text.c_str(), nullptr)) ? "'" + text + "' is not a number" : "";
}

std::string above_zero(const std::string& text) {
  const std::optional<double> value = finite_number(text);
  return value && *value > 0 ? "" : "'" + text + "' is not a number above 0";
}

std::string not_negative(const std::string& text) {
  const std::optional<double> value = finite_number(text);
  return value && *value >= 0 ? "" : "'" + text + "' is not a number from 0 on";
}

std::string not_blank(const std::string& text) {
  return text.find_first_not_of(" \t\r\n") == std::string::npos
             ? "the value is empty; give one, or leave the option out"
             : "";
}

std::string not_empty(const std::string& name) {
  return name.empty() ? "the empty string names no file; name one, or leave it out" : "";
}

std::string not_file(const std::string& name) {
  std::error_code error;
  return std::filesystem::is_regular_file(name, error) ? "'" + name + "' is a file, not a folder"
                                                       : "";
}

void InputOptions::add(CLI::App& app, const std::string& name, const std::string& help) {
  app.add_option(name, inputs, help);
  app.add_flag(
      "-0,--null", null,
      "standard input: each item ends with NUL and is taken as it is, as from find -print0");
}

std::vector<std::string> InputOptions::resolved() const {
  if (inputs.empty() && stdin_is_terminal())
    fail_usage("no input: name files, or pipe a list of them; '-' reads the terminal");
  std::vector<std::string> all = inputs.empty() ? std::vector<std::string>{"-"} : inputs;
  if (!null) return all;
  if (std::find(all.begin(), all.end(), "-") == all.end())
    fail_usage("-0 is for standard input, and the inputs are named; leave it out, or add '-'");
  std::replace(all.begin(), all.end(), std::string("-"), io::kNames);
  return all;
}

void OutputOptions::add(CLI::App& app, bool required, const std::string& help) {
  auto* option = app.add_option("-o,--output", directory, help)
                     ->type_name("DIR")
                     ->check(not_empty)
                     ->check(not_file);
  if (required) option->required();
  app.add_flag("--force", force, "redo the work, replacing what an earlier run left");
}

void JobOptions::add(CLI::App& app) {
  app.add_option("-j,--jobs", jobs,
                 "items worked on at once (default: VFM_SLOTS, or one per processor)")
      ->type_name("N")
      ->check(CLI::Range(1, PipeBoard::kMostSlots));
  app.add_option("--share", share,
                 "share VFM_SLOTS slots (default: one per processor) with all programs that name "
                 "this file")
      ->type_name("FILE")
      ->check(not_empty);
  add_page(app, "--share-report", share_report, "write a page of all programs that share")
      ->needs("--share");
}

void SeedOptions::add(CLI::App& app) {
  // CLI11 2.1 wraps negative and too large numbers around.
  const auto parse = [this](const std::string& text) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
    if (error != std::errc{} || end != text.data() + text.size() || text.empty())
      throw CLI::ValidationError("--seed",
                                 "'" + text + "' is not a whole number from 0 to 2^64 - 1");
  };
  app.add_option_function<std::string>("--seed", parse, "seed of every random choice")
      ->type_name("N")
      ->default_str(std::to_string(seed));
}

void DeviceOptions::add(CLI::App& app) {
  app.add_option("--device", device, "where to compute; auto: on a GPU if there is one")
      ->type_name("auto|cpu|cuda")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->capture_default_str();
}

void ComputeOptions::add(CLI::App& app) {
  app.add_flag("--deterministic", deterministic,
               "on a GPU: the same bits at every run, at some cost of speed");
  app.add_option("--attention", attention, "on a GPU: own kernels, cuDNN, or the faster that works")
      ->type_name("NAME")
      ->check(CLI::IsMember({"auto", "own", "cudnn"}))
      ->capture_default_str();
}

void HwaccelOptions::add(CLI::App& app) {
  app.add_option("--hwaccel", hwaccel,
                 "decode video in software, on a GPU if there is one, or on a GPU (NVDEC)")
      ->type_name("none|auto|cuda")
      ->check(CLI::IsMember({"none", "auto", "cuda"}))
      ->capture_default_str();
}

void InputLimitOptions::add(CLI::App& app) {
  const std::string group = "What inputs may do";
  add_unit_option(app, "--max-pixels", limits.max_pixels, "refuse larger pictures, width x height",
                  parse_pixels, "N|WxH", "64M", group);
  add_unit_option(app, "--timeout", limits.timeout,
                  "give up an input of which nothing comes for this long; 0: never", parse_seconds,
                  "TIME", format_seconds(limits.timeout), group);
  add_unit_option(app, "--max-work", work,
                  "of each MiB of a file: decode no more pixels in all, and no longer on a "
                  "processor; 0: any",
                  parse_work, "N,TIME", "32G,64s", group);
  app.add_option(
         "--protocols", limits.protocols,
         "playlists and protocols that may be opened beside the files and http(s) addresses "
         "given")
      ->type_name("NAME,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check([](const std::string& name) -> std::string {
        try {
          check_protocol(name);
        } catch (const Error& error) {
          return error.what();
        }
        return "";
      })
      ->group(group);
}

void InputLimitOptions::add_isolation(CLI::App& app) {
  const std::string group = "What inputs may do";
  auto* isolate = app.add_flag("--isolate", limits.isolate,
                               "decode each file in a process without network and files");
  isolate->group(group)->excludes(app.get_option("--protocols"));
  const auto parse = [](const std::string& text) {
    const std::uint64_t value = parse_bytes(text);
    if (value > 0 && value < kLeastIsolateMemory)
      fail("must be 0 or from {} on, which a small video takes",
           format_bytes(static_cast<double>(kLeastIsolateMemory)));
    return value;
  };
  add_unit_option(app, "--isolate-memory", limits.isolate_memory,
                  "of --isolate: memory that such a process may take; 0: any", parse, "SIZE",
                  format_bytes(static_cast<double>(limits.isolate_memory)), group)
      ->needs(isolate);
}

void InputLimitOptions::check_isolation(const HwaccelOptions& hardware) const {
  if (limits.isolate && hardware.hwaccel != "none")
    fail_usage("--isolate decodes in software alone; leave out --hwaccel {}", hardware.hwaccel);
}

void MemberOptions::add(CLI::App& app) {
  constexpr std::uint64_t kMost = (std::uint64_t{1} << 31) - 1;  // no shard holds a larger member
  const auto parse = [](const std::string& text) {
    const std::uint64_t value = parse_bytes(text);
    if (value < 1 || value > kMost) fail("must be from 1 byte to under 2GiB");
    return value;
  };
  add_unit_option(app, "--max-member", bytes,
                  "skip samples with more bytes than this, also when unpacked", parse, "SIZE",
                  format_bytes(static_cast<double>(bytes)));
}

void ColumnOptions::add(CLI::App& app) {
  input.add(app, "SHARD",
            "shards, manifests, folders of vfm-shard, or '-' for lines on standard input (the "
            "default)");
  output.add(app, false, "put the columns here (default: beside each shard)");
  jobs.add(app);
  member.add(app);
  hwaccel.add(app);
  input_limits.add(app);
  input_limits.add_isolation(app);
}

void ReportOptions::add(CLI::App& app, const std::string& help, const char* name) {
  add_page(app, name, path, help);
}

void add_bytes_option(CLI::App& app, const std::string& names, std::uint64_t& bytes,
                      const std::string& help) {
  add_unit_option(app, names, bytes, help, parse_bytes, "SIZE",
                  format_bytes(static_cast<double>(bytes)));
}

CLI::Option* add_tokenizer_memory(CLI::App& app, std::uint64_t& bytes) {
  const auto parse = [](const std::string& text) {
    const std::uint64_t value = parse_bytes(text);
    if (value < 1) fail("must be at least 1 byte");
    return value;
  };
  return add_unit_option(app, "--tokenizer-memory", bytes,
                         "most memory for the activations of a tokenizer from a folder, at one "
                         "clip (default: no limit)",
                         parse, "SIZE", "");
}

CLI::Option* add_seconds_option(CLI::App& app, const std::string& names, double& seconds,
                                const std::string& help) {
  return add_unit_option(app, names, seconds, help, parse_seconds, "TIME",
                         fmt::format("{}s", seconds));
}

}  // namespace vfm::cli
