// SPDX-License-Identifier: Apache-2.0
#include "cli/options.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/shown_name.h"
#include "base/units.h"
#include "cli/runner.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/manifest.h"
#include "io/remote/address.h"
#include "io/remote/remote_file.h"
#include "io/text_or_file.h"
#include "report/html.h"

namespace vfm::cli {
namespace {

constexpr const char* kTrust = "What inputs may do";

/// Adds a row whose value a parser of base/units.h reads.
template <class Value, class Parse>
OptionRow& add_unit(Options& options, const char* names, Value& value, std::string help,
                    Parse parse, std::string type, std::string shown) {
  return options
      .parsed(
          names, [&value, parse](const std::string& text) { value = parse(text); }, std::move(type),
          std::move(help))
      .shown(std::move(shown));
}

template <class Text>
OptionRow& add_text(Options& options, const char* names, Text& text, std::string help) {
  return options.parsed(
      names, [&text](const std::string& value) { text = io::text_or_file(value); }, "TEXT|@FILE",
      std::move(help));
}

/// Returns whether the file is not a page of ours, for example a video that was meant as input.
bool holds_other_than_page(const std::string& file) {
  if (!io::is_file(file)) return false;
  std::string begin(report::kPageBegin.size(), '\0');
  if (io::is_remote(file)) {
    const std::size_t got = io::File::open_read(file).read_some(begin.data(), begin.size());
    return got > 0 && begin != report::kPageBegin;
  }
  std::ifstream stream(file, std::ios::binary);
  stream.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return stream.gcount() > 0 && begin != report::kPageBegin;
}

OptionRow& add_page(Options& options, const char* name, std::string& path, std::string help) {
  return options.add(name, path, "FILE.html", std::move(help)).check(not_empty).check(page_fault);
}

std::optional<double> finite_number(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  const bool all = !text.empty() && *end == '\0';
  return all && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

}  // namespace

std::string page_fault(const std::string& file) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) return "'" + file + "' is a folder";
  if (io::is_remote(file) && !io::is_bucket(file)) return not_file(file);
  if (holds_other_than_page(file))
    return "'" + file + "' is there, and no page; name another file, or remove it";
  if (io::is_remote(file)) return "";
  // The folder may not exist yet, so the nearest existing one is checked.
  auto folder = std::filesystem::absolute(file, error).parent_path();
  while (!std::filesystem::exists(folder, error) && folder.has_relative_path())
    folder = folder.parent_path();
  return ::access(folder.c_str(), W_OK | X_OK) == 0
             ? ""
             : "'" + folder.string() + "' is not a folder that can be written to";
}

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
  if (io::is_bucket(name)) return "";
  if (io::is_remote(name))
    return "nothing can be written at '" + shown_name(name) + "'; name a path, or s3://";
  std::error_code error;
  return std::filesystem::is_regular_file(name, error) ? "'" + name + "' is a file, not a folder"
                                                       : "";
}

void InputOptions::add(Options& options, const std::string& name, const std::string& help) {
  options.add(name.c_str(), inputs, "", help).everyday();
  options.flag("-0,--null", null, "names on standard input end with NUL, as from find -print0")
      .explained_in("vfm(7)");
}

void InputOptions::add_shards(Options& options) {
  add(options, "SHARD",
      "shards, manifests, folders of vfm-shard, or '-' for lines on standard input (the default)");
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

void OutputOptions::add(Options& options, bool required, const std::string& help) {
  OptionRow& output = options.add("-o,--output", directory, "DIR", help);
  output.shown("").check(not_empty).check(not_file).everyday();
  if (required) output.required();
  options.flag("--force", force, "redo the work, and replace earlier results")
      .everyday()
      .explained_in("vfm(7)");
}

void SeedOptions::add(Options& options) {
  options.add("--seed", seed, "N", "seed of every random choice").explained_in("vfm(7)");
}

bool DeviceOptions::asks_workers(const std::string& device) {
  return device != "auto" && device != "cpu" && device != "cuda";
}

OptionRow& DeviceOptions::add(Options& options) {
  return options
      .add("--device", device, "auto|cpu|cuda", "where to compute; auto: a GPU if there is one")
      .check([](const std::string& name) {
        if (!asks_workers(name)) return std::string();
        return fmt::format(
            "'{}' is not auto, cpu or cuda; to use several GPUs start a rank on each with "
            "'mpirun -np N'",
            name);
      })
      .explained_in("vfm-devices(7)");
}

void ComputeOptions::add(Options& options) {
  options
      .flag("--deterministic", deterministic,
            "compute the same bits in every run on a GPU, more slowly")
      .explained_in("vfm-devices(7)");
  options
      .add("--attention", attention, "auto|own|cudnn",
           "attention kernels of a GPU; auto: the fastest that works")
      .one_of({"auto", "own", "cudnn"})
      .explained_in("vfm-devices(7)");
}

void HwaccelOptions::add(Options& options) {
  options
      .add("--hwaccel", hwaccel, "none|auto|cuda", "decode video in software, or on a GPU (NVDEC)")
      .one_of({"none", "auto", "cuda"})
      .explained_in("vfm-devices(7)");
}

void InputLimitOptions::add(Options& options) {
  options.group(kTrust);
  add_unit(options, "--max-pixels", limits.max_pixels, "refuse larger pictures", parse_pixels,
           "N|WxH", "64M")
      .explained_in("vfm-untrusted(7)");
  add_unit(options, "--timeout", limits.timeout,
           "give up an input without new data for TIME; 0: never", parse_seconds, "TIME",
           format_seconds(limits.timeout))
      .explained_in("vfm-untrusted(7)");
  add_unit(options, "--max-work", work,
           "decode at most N pixels, and for at most TIME, for each MiB of a file; 0: no limit",
           parse_work, "N,TIME", "32G,64s")
      .explained_in("vfm-untrusted(7)");
  options.add("--protocols", limits.protocols, "NAME,...", "allow these playlists and protocols")
      .separated_by(',')
      .check([](const std::string& name) -> std::string {
        try {
          check_protocol(name);
        } catch (const Error& error) {
          return error.what();
        }
        return "";
      })
      .shown("")
      .explained_in("vfm-untrusted(7)");
}

void InputLimitOptions::apply() const {
  set_input_limits(limits);
  set_work_limit(work);
  io::limit_read_seconds(limits.timeout);
}

void InputLimitOptions::add_isolation(Options& options) {
  options.group(kTrust);
  const auto parse = [this](const std::string& text) {
    limits.isolate = true;
    if (text.empty()) return;
    limits.isolate_memory = parse_bytes(text);
    if (limits.isolate_memory > 0 && limits.isolate_memory < kLeastIsolateMemory)
      fail("the memory must be 0 or from {} on, which a small video takes",
           format_bytes(static_cast<double>(kLeastIsolateMemory)));
  };
  options
      .flag("--isolate", parse, "[=SIZE]",
            "decode each file in a process without network and files, with at most this memory; 0: "
            "no limit")
      .shown(format_bytes(static_cast<double>(limits.isolate_memory)))
      .excludes(options.row("--protocols"))
      .explained_in("vfm-untrusted(7)");
}

void InputLimitOptions::check_isolation(const HwaccelOptions& hardware) const {
  if (limits.isolate && hardware.hwaccel != "none")
    fail_usage("--isolate decodes in software alone; leave out --hwaccel {}", hardware.hwaccel);
}

void MemberOptions::add(Options& options) {
  constexpr std::uint64_t kMost = (std::uint64_t{1} << 31) - 1;  // Limit for a member of a shard.
  const auto parse = [](const std::string& text) {
    const std::uint64_t value = parse_bytes(text);
    if (value < 1 || value > kMost) fail("must be from 1 byte to under 2GiB");
    return value;
  };
  add_unit(options, "--max-member", bytes, "skip samples of more bytes than this, after unpacking",
           parse, "SIZE", format_bytes(static_cast<double>(bytes)))
      .explained_in("vfm-untrusted(7)");
}

void ColumnOptions::add(Options& options) {
  input.add_shards(options);
  output.add(options, false, "write columns to DIR (default: beside each shard)");
  jobs.add(options);
  member.add(options);
  hwaccel.add(options);
  input_limits.add(options);
  input_limits.add_isolation(options);
  options.group("Options");
}

void ReportOptions::add(Options& options, const std::string& help, const char* name) {
  add_page(options, name, path, help).everyday();
}

OptionRow& add_text_option(Options& options, const char* names, std::string& text,
                           std::string help) {
  return add_text(options, names, text, std::move(help));
}

OptionRow& add_text_option(Options& options, const char* names, std::optional<std::string>& text,
                           std::string help) {
  return add_text(options, names, text, std::move(help));
}

OptionRow& add_bytes_option(Options& options, const char* names, std::uint64_t& bytes,
                            std::string help) {
  return add_unit(options, names, bytes, std::move(help), parse_bytes, "SIZE",
                  format_bytes(static_cast<double>(bytes)));
}

OptionRow& add_tokenizer_memory(Options& options, std::uint64_t& bytes) {
  const auto parse = [](const std::string& text) {
    const std::uint64_t value = parse_bytes(text);
    if (value < 1) fail("must be at least 1 byte");
    return value;
  };
  return add_unit(options, "--tokenizer-memory", bytes,
                  "maximum memory for the activations of a tokenizer from a folder, for each clip "
                  "(default: no limit)",
                  parse, "SIZE", "");
}

OptionRow& add_seconds_option(Options& options, const char* names, double& seconds,
                              std::string help) {
  return add_unit(options, names, seconds, std::move(help), parse_seconds, "TIME",
                  fmt::format("{}s", seconds));
}

}  // namespace vfm::cli
