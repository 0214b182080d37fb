// The table of a verb's options. Parsing, --help, --help-all, completion and the OPTIONS part of
// the manual page use this table.
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

/// Returns an error message for a wrong value, and "" for a valid value.
using ValueCheck = std::function<std::string(const std::string& value)>;

/// A row of the table. Each setter returns the row.
class OptionRow {
 public:
  OptionRow& in(double least, double most);
  OptionRow& one_of(std::initializer_list<const char*> values);
  OptionRow& check(const ValueCheck& fault_of);
  /// Sets the text that --help and the manual show as the default, in place of the variable's
  /// value. "" hides the default.
  OptionRow& shown(std::string text);
  /// Makes --help list the row. Other rows are listed only by --help-all and in the manual.
  OptionRow& everyday();
  /// Sets the paragraph of the manual, in scdoc's markup.
  OptionRow& manual(std::string paragraph);
  /// Names a page, such as "vfm(7)", that explains the option in place of a paragraph.
  OptionRow& explained_in(std::string page);
  OptionRow& required();
  /// Makes the value a list whose items are separated by `delimiter`. Lists of a repeated option
  /// are joined.
  OptionRow& separated_by(char delimiter);
  /// Allows the option several times, with one value each time.
  OptionRow& repeated();
  /// needs() refuses the option without `other`, and excludes() refuses it together with `other`.
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

/// Returns lines for --help, at most 80 columns wide, with `title` on the left and `words` on the
/// right.
std::string help_lines(const std::string& title, const std::string& words);

/// The group of rows that are added before the first call of group().
inline constexpr const char* kFirstGroup = "Options";

class Options {
 public:
  /// `app` parses the command line, and must outlive this object.
  explicit Options(CLI::App& app) : app_(app) {}

  /// Sets the group of the rows that are added afterwards.
  void group(std::string name) { group_ = std::move(name); }

  /// Adds a row. `names` is like "-o,--output"; a name without a dash is a positional argument.
  /// `value` is the placeholder of the value in --help, such as "N" or "DIR" (see
  /// check_named_files()).
  OptionRow& flag(const char* names, bool& variable, std::string help);
  /// Adds a flag with an optional value, such as --isolate or --isolate=SIZE. `value` is "[=SIZE]".
  /// `parse` gets the value, or "" if there is no value, and throws Error for a wrong value.
  OptionRow& flag(const char* names, std::function<void(const std::string&)> parse,
                  std::string value, std::string help);
  /// Adds a flag. `variable` is set to the number of times that the flag is given.
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
  /// Adds an option whose value is passed to `parse`, which throws Error for a wrong value.
  OptionRow& parsed(const char* names, std::function<void(const std::string&)> parse,
                    std::string value, std::string help);

  /// Returns the row of this name. Throws CLI::OptionNotFound if there is no such row.
  OptionRow& row(std::string_view name);
  bool has(std::string_view name) const;

  /// Add flags that end parsing: --help throws CLI::CallForHelp, --help-all CLI::CallForAllHelp.
  OptionRow& help_flag(const char* names, std::string help);
  OptionRow& help_all_flag(const char* names, std::string help);

  const CLI::App& app() const { return app_; }

  /// Returns the text of --help, or of --help-all if `all`, in lines of at most 80 columns.
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
