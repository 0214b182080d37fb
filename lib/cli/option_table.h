// The table of a verb's options. Each row has an option's names, value, default and group, a line
// for --help and a paragraph for the manual. Parsing, --help, --help-all, the OPTIONS part of the
// manual page and completion all use this table.
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

/// Returns what is wrong with a value, or "" if the value is right.
using ValueCheck = std::function<std::string(const std::string& value)>;

/// One row of the table. Each setter returns the row.
class OptionRow {
 public:
  /// Requires a number from `least` to `most`.
  OptionRow& in(double least, double most);
  OptionRow& one_of(std::initializer_list<const char*> values);
  OptionRow& check(const ValueCheck& fault_of);
  /// Sets the default that help and the manual show in place of the variable's value; with "" they
  /// show no default.
  OptionRow& shown(std::string text);
  /// Makes --help list the row. Without this call only --help-all and the manual list it.
  OptionRow& everyday();
  /// Sets the paragraph of the manual, in scdoc's markup.
  OptionRow& manual(std::string paragraph);
  /// Names, in place of a paragraph, the page that explains the option for all programs, such as
  /// "vfm(7)".
  OptionRow& explained_in(std::string page);
  OptionRow& required();
  /// Makes the value a list in one argument, with this delimiter. If the option is given again, the
  /// lists are joined.
  OptionRow& separated_by(char delimiter);
  /// Allows the option several times, with one value each time.
  OptionRow& repeated();
  /// Refuse the option without `other`, or together with `other`.
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

/// Lines of help, at most 80 columns wide: the title, and beside it the words, from a fixed column
/// on.
std::string help_lines(const std::string& title, const std::string& words);

/// The group of the rows that are added before the first group().
inline constexpr const char* kFirstGroup = "Options";

class Options {
 public:
  /// `app` parses the command line, and must outlive this.
  explicit Options(CLI::App& app) : app_(app) {}

  /// Sets the group of the rows that are added next.
  void group(std::string name) { group_ = std::move(name); }

  /// Adds a row. `names` is like "-o,--output"; a name without a dash is a positional argument.
  /// `value` is the word for the value ("N", "DIR", "auto|cpu"), which check_named_files()
  /// (named_files.h) uses.
  OptionRow& flag(const char* names, bool& variable, std::string help);
  /// Adds a flag with an optional value: --isolate or --isolate=SIZE. `value` is "[=SIZE]". `parse`
  /// gets "" if there is no value, and throws Error if the value is wrong.
  OptionRow& flag(const char* names, std::function<void(const std::string&)> parse,
                  std::string value, std::string help);
  /// Counts how often the flag is given.
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
  /// Adds an option whose value `parse` gets. `parse` throws Error if the value is wrong.
  OptionRow& parsed(const char* names, std::function<void(const std::string&)> parse,
                    std::string value, std::string help);

  /// Returns the row of this name. Throws CLI::OptionNotFound.
  OptionRow& row(std::string_view name);
  /// Returns whether the table has a row of this name.
  bool has(std::string_view name) const;

  /// Add flags that end parsing: --help throws CLI::CallForHelp, --help-all CLI::CallForAllHelp.
  OptionRow& help_flag(const char* names, std::string help);
  OptionRow& help_all_flag(const char* names, std::string help);

  const CLI::App& app() const { return app_; }

  /// Returns the rows of --help (with `all`, of --help-all), by group, at most 80 columns wide.
  std::string help(bool all);
  /// Returns the OPTIONS part of a manual page, in scdoc's markup, without its heading.
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
