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
#include "base/pipe_board.h"
#include "base/units.h"
#include "cli/runner.h"
#include "io/manifest.h"
#include "io/text_or_file.h"
#include "report/html.h"

namespace vfm::cli {
namespace {

constexpr const char* kTrust = "What inputs may do";

/// A row whose value a parser of base/units.h takes.
template <class Value, class Parse>
OptionRow& add_unit(Options& options, const char* names, Value& value, std::string help,
                    Parse parse, std::string type, std::string shown) {
  return options
      .parsed(
          names, [&value, parse](const std::string& text) { value = parse(text); }, std::move(type),
          std::move(help))
      .shown(std::move(shown));
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

/// What is wrong with the name of a page to write, "" if nothing is.
std::string page_fault(const std::string& file) {
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

void InputOptions::add(Options& options, const std::string& name, const std::string& help) {
  options.add(name.c_str(), inputs, "", help).everyday();
  options.flag("-0,--null", null, "read names that end with NUL, as find -print0 writes them")
      .manual(
          "On standard input each item ends with NUL, as *find -print0* writes them, and is always "
          "a path.");
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
  options.flag("--force", force, "redo the work, and replace what an earlier run left")
      .everyday()
      .manual("Redo what is there already and still fits.");
}

void JobOptions::add(Options& options) {
  options.add("-j,--jobs", jobs, "N", "work on N items at once")
      .in(1, PipeBoard::kMostSlots)
      .shown("VFM_SLOTS, or one per processor")
      .everyday()
      .manual(
          "Work on _N_ items at once. Under *make -j* the jobserver decides. The output does not "
          "depend on it.");
  OptionRow& row = options.add("--share", share, "FILE",
                               "share slots and GPUs with all programs that name FILE");
  row.shown("").check(not_empty).manual(
      "Share the slots of *VFM_SLOTS*, and the GPUs of *--devices*, with all programs that name "
      "this file. "
      "See SLOTS OF A PIPE and CARDS OF A PIPE in *vfm*(7).");
  add_page(options, "--share-report", share_report, "write a page of all programs that share")
      .needs(row)
      .manual(
          "Write a page of all programs that share _FILE_: what each did, its slots, what waited, "
          "and the bottleneck.");
}

void SeedOptions::add(Options& options) {
  options.add("--seed", seed, "N", "seed of every random choice");
}

void DeviceOptions::add(Options& options) {
  options
      .add("--device", device, "auto|cpu|cuda", "where to compute; auto: on a GPU if there is one")
      .one_of({"auto", "cpu", "cuda"})
      .manual("Compute models on a GPU or on the processor. *auto*: on a GPU if there is one.");
}

void ComputeOptions::add(Options& options) {
  options.flag("--deterministic", deterministic,
               "on a GPU: the same bits at every run, at some cost of speed");
  options
      .add("--attention", attention, "auto|own|cudnn",
           "on a GPU: own kernels, cuDNN, or the faster that works")
      .one_of({"auto", "own", "cudnn"});
}

void HwaccelOptions::add(Options& options) {
  options
      .add("--hwaccel", hwaccel, "none|auto|cuda", "decode video in software, or on a GPU (NVDEC)")
      .one_of({"none", "auto", "cuda"})
      .manual(
          "Decode video in software, or on a GPU where it decodes to the bit (NVDEC). *auto*: on a "
          "GPU if there "
          "is one. *cuda*: without one it is an error. The output is the same. See GRAPHICS "
          "PROCESSORS in *vfm*(7).");
}

void InputLimitOptions::add(Options& options) {
  options.group(kTrust);
  add_unit(options, "--max-pixels", limits.max_pixels, "refuse larger pictures", parse_pixels,
           "N|WxH", "64M")
      .manual(
          "Refuse videos and pictures with more pixels than this, by their headers, before memory "
          "is used. _64M_ "
          "is 8192x8192. See INPUTS THAT ARE NOT TRUSTED in *vfm*(7).");
  add_unit(options, "--timeout", limits.timeout,
           "give up an input from which nothing comes for TIME; 0: never", parse_seconds, "TIME",
           format_seconds(limits.timeout))
      .manual(
          "Give up an input from which nothing comes for this long: a server sends nothing, or "
          "decoding gets no "
          "further. 0: never. See INPUTS THAT ARE NOT TRUSTED in *vfm*(7).");
  add_unit(options, "--max-work", work,
           "decode at most N pixels, for TIME, a MiB of a file; 0: any", parse_work, "N,TIME",
           "32G,64s")
      .manual(
          "For each MiB of a file, to which 128 KiB are added: decode at most _N_ pixels in all "
          "its pictures, and "
          "take a processor for at most _TIME_. 0: any. See INPUTS THAT ARE NOT TRUSTED in "
          "*vfm*(7).");
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
      .manual(
          "Open playlists and protocols of these names beside the files and http(s) addresses that "
          "you give. "
          "Default: none. See INPUTS THAT ARE NOT TRUSTED in *vfm*(7).");
}

void InputLimitOptions::add_isolation(Options& options) {
  options.group(kTrust);
  OptionRow& isolate = options.flag("--isolate", limits.isolate,
                                    "decode each file in a process without network and files");
  isolate.excludes(options.row("--protocols"))
      .manual(
          "Decode each file in a process of its own, which has no network, opens no file and "
          "starts nothing: what a "
          "hostile file does to a decoder ends that file alone. The output is the same. Addresses "
          "are refused. Not "
          "with *--protocols* and *--hwaccel*. See INPUTS THAT ARE NOT TRUSTED in *vfm*(7).");
  const auto parse = [](const std::string& text) {
    const std::uint64_t value = parse_bytes(text);
    if (value > 0 && value < kLeastIsolateMemory)
      fail("must be 0 or from {} on, which a small video takes",
           format_bytes(static_cast<double>(kLeastIsolateMemory)));
    return value;
  };
  add_unit(options, "--isolate-memory", limits.isolate_memory,
           "memory that such a process may take; 0: any", parse, "SIZE",
           format_bytes(static_cast<double>(limits.isolate_memory)))
      .needs(isolate)
      .manual(
          "The memory that a process of *--isolate* may take, beside the file and the pictures "
          "that it shares with "
          "this program: one of *--max-pixels*, and 192 MiB of them. From 16 MiB on; 0: any.");
}

void InputLimitOptions::check_isolation(const HwaccelOptions& hardware) const {
  if (limits.isolate && hardware.hwaccel != "none")
    fail_usage("--isolate decodes in software alone; leave out --hwaccel {}", hardware.hwaccel);
}

void MemberOptions::add(Options& options) {
  constexpr std::uint64_t kMost = (std::uint64_t{1} << 31) - 1;  // no shard holds a larger member
  const auto parse = [](const std::string& text) {
    const std::uint64_t value = parse_bytes(text);
    if (value < 1 || value > kMost) fail("must be from 1 byte to under 2GiB");
    return value;
  };
  add_unit(options, "--max-member", bytes,
           "skip samples with more bytes than this, also when unpacked", parse, "SIZE",
           format_bytes(static_cast<double>(bytes)))
      .manual(
          "Skip samples with more bytes than this, in one member or all together; in compressed "
          "tars the unpacked "
          "bytes count. This is checked before memory is used, so this times *-j* bounds the "
          "memory for samples. "
          "Each skipped sample is recorded as an error. From 1 byte to under 2 GiB.");
}

void ColumnOptions::add(Options& options) {
  input.add(
      options, "SHARD",
      "shards, manifests, folders of vfm-shard, or '-' for lines on standard input (the default)");
  output.add(options, false, "put the columns here (default: beside each shard)");
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
  return options.parsed(
      names, [&text](const std::string& value) { text = io::text_or_file(value); }, "TEXT|@FILE",
      std::move(help));
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
                  "most memory for the activations of a tokenizer from a folder, at one clip "
                  "(default: no limit)",
                  parse, "SIZE", "");
}

OptionRow& add_seconds_option(Options& options, const char* names, double& seconds,
                              std::string help) {
  return add_unit(options, names, seconds, std::move(help), parse_seconds, "TIME",
                  fmt::format("{}s", seconds));
}

}  // namespace vfm::cli
