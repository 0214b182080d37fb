// The table of a verb's options: one row an option, with its names, its value, its default, its
// group, a line for
// --help and a paragraph for the manual. Parsing, --help, --help-all, the OPTIONS part of the
// manual page and completion are made from it.
//
//   options.group("Search");
//   options.add("--top", top_, "N", "print this many samples")
//       .in(1, 1'000'000)
//       .everyday()
//       .manual("Print the _N_ nearest samples, the nearest first.");
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace vfm::cli {

/// Returns what is wrong with a value, "" if nothing is.
using ValueCheck = std::function<std::string(const std::string& value)>;

/// One row. Each setter returns the row.
class OptionRow {
 public:
  /// A number from `least` to `most`.
  OptionRow& in(double least, double most);
  OptionRow& one_of(std::initializer_list<const char*> values);
  OptionRow& check(const ValueCheck& fault_of);
  /// What help and the manual say of the default, in place of the variable's value; "": nothing.
  OptionRow& shown(std::string text);
  /// --help lists the row; else only --help-all and the manual do.
  OptionRow& everyday();
  /// A paragraph in scdoc's markup, for the manual.
  OptionRow& manual(std::string paragraph);
  /// In place of a paragraph: the page that explains the option for all programs, as "vfm(7)".
  OptionRow& explained_in(std::string page);
  OptionRow& required();
  /// A list whose items are separated by this, in one argument. Given more than once, the lists are
  /// joined.
  OptionRow& separated_by(char delimiter);
  /// Each time it is given it takes one value.
  OptionRow& repeated();
  /// It is refused without the other one, or with it.
  OptionRow& needs(const OptionRow& other);
  OptionRow& excludes(const OptionRow& other);

  bool given() const;

 private:
  friend class Options;
  CLI::Option* option_ = nullptr;
  std::string value_, group_, help_, manual_, page_;
  std::optional<std::string> shown_;
  bool everyday_ = false;
};

/// Lines of help, at most 80 columns wide: the title, and the words beside it from a fixed column
/// on.
std::string help_lines(const std::string& title, const std::string& words);

/// The group of rows before the first group().
inline constexpr const char* kFirstGroup = "Options";

class Options {
 public:
  /// `app` parses; it must outlive this.
  explicit Options(CLI::App& app) : app_(app) {}

  /// The group of the rows that follow.
  void group(std::string name) { group_ = std::move(name); }

  /// Rows. `names` is as "-o,--output"; without a dash it is a positional argument. `value` is the
  /// word for the value ("N", "DIR", "auto|cpu"); check_named_files() (named_files.h) reads it.
  OptionRow& flag(const char* names, bool& variable, std::string help);
  /// A flag that may have a value, as in --isolate or --isolate=SIZE. `value` is "[=SIZE]". `parse`
  /// takes "" where there is none, and throws Error if the value is wrong.
  OptionRow& flag(const char* names, std::function<void(const std::string&)> parse,
                  std::string value, std::string help);
  /// Counts how often it is given.
  OptionRow& count(const char* names, int& variable, std::string help);
  OptionRow& add(const char* names, int& variable, std::string value, std::string help);
  OptionRow& add(const char* names, std::uint64_t& variable, std::string value, std::string help);
  OptionRow& add(const char* names, float& variable, std::string value, std::string help);
  OptionRow& add(const char* names, double& variable, std::string value, std::string help);
  OptionRow& add(const char* names, std::string& variable, std::string value, std::string help);
  OptionRow& add(const char* names, std::optional<int>& variable, std::string value,
                 std::string help);
  OptionRow& add(const char* names, std::optional<double>& variable, std::string value,
                 std::string help);
  OptionRow& add(const char* names, std::optional<std::string>& variable, std::string value,
                 std::string help);
  OptionRow& add(const char* names, std::vector<std::string>& variable, std::string value,
                 std::string help);
  /// `parse` takes the value, and throws Error if it is wrong.
  OptionRow& parsed(const char* names, std::function<void(const std::string&)> parse,
                    std::string value, std::string help);

  /// Throws CLI::OptionNotFound.
  OptionRow& row(std::string_view name);
  /// Whether there is such a row.
  bool has(std::string_view name) const;

  /// Rows whose flag ends parsing: --help throws CLI::CallForHelp, --help-all CLI::CallForAllHelp.
  OptionRow& help_flag(const char* names, std::string help);
  OptionRow& help_all_flag(const char* names, std::string help);

  const CLI::App& app() const { return app_; }

  /// Rows of --help (`all`: of --help-all), by group, at most 80 columns wide.
  std::string help(bool all);
  /// The OPTIONS part of a manual page, in scdoc's markup, without its heading.
  std::string manual();

 private:
  OptionRow& keep(CLI::Option* option, std::string value, std::string help);
  std::string manual_of(const OptionRow& row) const;
  std::vector<std::string> groups(bool all) const;

  CLI::App& app_;
  std::string group_ = kFirstGroup;
  std::vector<std::unique_ptr<OptionRow>> rows_;
};

}  // namespace vfm::cli
