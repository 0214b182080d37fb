// SPDX-License-Identifier: Apache-2.0
#include "cli/option_table.h"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <map>

#include "base/error.h"

namespace vfm::cli {
namespace {

constexpr std::size_t kHelpWidth = 80, kHelpColumn = 30;

/// Returns a title such as "-o, --output DIR".
std::string title(const CLI::Option& option, const std::string& value) {
  std::string names;
  for (const std::string& name : option.get_snames())
    names += (names.empty() ? "-" : ", -") + name;
  for (const std::string& name : option.get_lnames())
    names += (names.empty() ? "--" : ", --") + name;
  if (names.empty()) names = option.get_name();
  if (value.empty() || option.get_positional()) return names;
  return names + (value.starts_with("[=") ? "" : " ") + value;
}

/// Returns the word for a value in scdoc's markup: literal words are bold, the others underlined.
std::string manual_value(const std::string& value) {
  std::string text;
  for (std::size_t begin = 0; begin <= value.size();) {
    const std::size_t end = std::min(value.find('|', begin), value.size());
    const std::string word = value.substr(begin, end - begin);
    const bool literal =
        std::none_of(word.begin(), word.end(), [](unsigned char c) { return std::isupper(c); });
    const char mark = literal ? '*' : '_';
    text += (begin > 0 ? "|" : "") + (mark + word + mark);
    begin = end + 1;
  }
  return text;
}

std::string manual_title(const CLI::Option& option, const std::string& value) {
  std::string names;
  for (const std::string& name : option.get_snames())
    names += (names.empty() ? "*-" : ", *-") + name + "*";
  for (const std::string& name : option.get_lnames())
    names += (names.empty() ? "*--" : ", *--") + name + "*";
  if (value.starts_with("[="))
    return names + "[=" + manual_value(value.substr(2, value.size() - 3)) + "]";
  return value.empty() ? names : names + " " + manual_value(value);
}

}  // namespace

std::string help_lines(const std::string& title, const std::string& words) {
  std::string lines = "  " + title;
  std::size_t column = lines.size();
  if (column + 2 > kHelpColumn) {
    lines += "\n";
    column = 0;
  }
  lines += std::string(kHelpColumn - column, ' ');
  column = kHelpColumn;
  for (std::size_t begin = 0; begin < words.size();) {
    const std::size_t end = std::min(words.find(' ', begin), words.size());
    const std::string word = words.substr(begin, end - begin);
    if (column > kHelpColumn && column + 1 + word.size() > kHelpWidth) {
      lines += "\n" + std::string(kHelpColumn, ' ');
      column = kHelpColumn;
    }
    if (column > kHelpColumn) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += word.size();
    begin = end + 1;
  }
  return lines + "\n";
}

OptionRow& OptionRow::in(double least, double most) {
  option_->check([least, most](const std::string& text) -> std::string {
    // CLI::Range accepts NaN, and writes 1000000 as 1e+06.
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (!text.empty() && *end == '\0' && value >= least && value <= most) return "";
    return fmt::format("'{}' is not a number from {} to {}", text, least, most);
  });
  return *this;
}

OptionRow& OptionRow::one_of(std::initializer_list<const char*> values) {
  option_->check([names = std::vector<std::string>(values.begin(), values.end())](
                     const std::string& text) -> std::string {
    if (std::ranges::find(names, text) != names.end()) return "";
    return fmt::format("'{}' must be one of {}", text, fmt::join(names, ", "));
  });
  return *this;
}

OptionRow& OptionRow::check(const ValueCheck& fault_of) {
  option_->check(fault_of);
  return *this;
}

OptionRow& OptionRow::shown(std::string text) {
  shown_ = std::move(text);
  return *this;
}

OptionRow& OptionRow::everyday() {
  everyday_ = true;
  return *this;
}

OptionRow& OptionRow::manual(std::string paragraph) {
  manual_ = std::move(paragraph);
  page_.clear();
  return *this;
}

OptionRow& OptionRow::explained_in(std::string page) {
  page_ = std::move(page);
  return *this;
}

OptionRow& OptionRow::required() {
  option_->required();
  return *this;
}

OptionRow& OptionRow::separated_by(char delimiter) {
  option_->delimiter(delimiter)->allow_extra_args(false);
  return *this;
}

OptionRow& OptionRow::repeated() {
  option_->allow_extra_args(false);
  return *this;
}

bool OptionRow::given() const {
  return option_->count() > 0;
}

OptionRow& Options::keep(CLI::Option* option, std::string value, std::string help) {
  auto row = std::make_unique<OptionRow>();
  option->group(group_);
  if (!value.empty()) option->type_name(value);
  row->option_ = option;
  row->value_ = std::move(value);
  row->help_ = std::move(help);
  row->group_ = group_;
  rows_.push_back(std::move(row));
  return *rows_.back();
}

OptionRow& OptionRow::needs(const OptionRow& other) {
  option_->needs(other.option_);
  return *this;
}

OptionRow& OptionRow::excludes(const OptionRow& other) {
  option_->excludes(other.option_);
  return *this;
}

OptionRow& Options::flag(const char* names, bool& variable, std::string help) {
  CLI::Option* option = app_.add_flag(names, variable);
  option->check([](const std::string& given) -> std::string {  // CLI11 accepts --crop=no.
    return given == "true" ? "" : fmt::format("it takes no value, and '{}' is given", given);
  });
  return keep(option, "", std::move(help));
}

OptionRow& Options::help_flag(const char* names, std::string help) {
  return keep(app_.set_help_flag(names), "", std::move(help));
}

OptionRow& Options::help_all_flag(const char* names, std::string help) {
  return keep(app_.set_help_all_flag(names), "", std::move(help));
}

OptionRow& Options::flag(const char* names, std::function<void(const std::string&)> parse,
                         std::string value, std::string help) {
  const auto text = std::make_shared<std::string>();
  CLI::Option* option = app_.add_flag(names, *text);
  option->check([parse = std::move(parse), text](const std::string& given) -> std::string {
    try {
      parse(given == "true" ? "" : given);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  });
  return keep(option, std::move(value), std::move(help));
}

OptionRow& Options::count(const char* names, int& variable, std::string help) {
  return keep(app_.add_flag(names, variable), "", std::move(help));
}

OptionRow& Options::add(const char* names, int& variable, std::string value, std::string help) {
  return keep(app_.add_option(names, variable)->capture_default_str(), std::move(value),
              std::move(help));
}

OptionRow& Options::add(const char* names, float& variable, std::string value, std::string help) {
  return keep(app_.add_option(names, variable)->capture_default_str(), std::move(value),
              std::move(help));
}

OptionRow& Options::add(const char* names, double& variable, std::string value, std::string help) {
  return keep(app_.add_option(names, variable)->capture_default_str(), std::move(value),
              std::move(help));
}

// CLI11 2.1 wraps negative and too large numbers around.
OptionRow& Options::add(const char* names, std::uint64_t& variable, std::string value,
                        std::string help) {
  const auto parse = [&variable](const std::string& text) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), variable);
    if (error != std::errc{} || end != text.data() + text.size() || text.empty())
      fail("'{}' is not a whole number from 0 to 2^64 - 1", text);
  };
  return parsed(names, parse, std::move(value), std::move(help)).shown(std::to_string(variable));
}

OptionRow& Options::add(const char* names, std::string& variable, std::string value,
                        std::string help) {
  return keep(app_.add_option(names, variable)->capture_default_str(), std::move(value),
              std::move(help));
}

OptionRow& Options::add(const char* names, std::optional<int>& variable, std::string value,
                        std::string help) {
  return keep(app_.add_option(names, variable), std::move(value), std::move(help));
}

OptionRow& Options::add(const char* names, std::optional<double>& variable, std::string value,
                        std::string help) {
  return keep(app_.add_option(names, variable), std::move(value), std::move(help));
}

OptionRow& Options::add(const char* names, std::optional<std::string>& variable, std::string value,
                        std::string help) {
  return keep(app_.add_option(names, variable), std::move(value), std::move(help));
}

OptionRow& Options::add(const char* names, std::vector<std::string>& variable, std::string value,
                        std::string help) {
  return keep(app_.add_option(names, variable), std::move(value), std::move(help));
}

OptionRow& Options::parsed(const char* names, std::function<void(const std::string&)> parse,
                           std::string value, std::string help) {
  const auto call = [parse = std::move(parse), name = std::string(names)](const std::string& text) {
    try {
      parse(text);
    } catch (const Error& error) {
      throw CLI::ValidationError(name, error.what());
    }
  };
  return keep(app_.add_option_function<std::string>(names, call), std::move(value),
              std::move(help));
}

bool Options::has(std::string_view name) const {
  return app_.get_option_no_throw(std::string(name)) != nullptr;
}

OptionRow& Options::row(std::string_view name) {
  const CLI::Option* option = app_.get_option(std::string(name));
  const auto is_it = [&](const std::unique_ptr<OptionRow>& row) { return row->option_ == option; };
  return **std::find_if(rows_.begin(), rows_.end(), is_it);
}

std::vector<std::string> Options::groups(bool all) const {
  std::vector<std::string> names;
  for (const std::unique_ptr<OptionRow>& row : rows_)
    if ((all || row->everyday_) &&
        std::find(names.begin(), names.end(), row->group_) == names.end())
      names.push_back(row->group_);
  return names;
}

std::string Options::help(bool all) {
  std::string text;
  for (const std::string& group : groups(all)) {
    text += (text.empty() ? "" : "\n") + group + ":\n";
    for (const std::unique_ptr<OptionRow>& row : rows_) {
      if (row->group_ != group || (!all && !row->everyday_)) continue;
      const std::string shown = row->shown_.value_or(row->option_->get_default_str());
      text += help_lines(title(*row->option_, row->value_),
                         row->help_ + (shown.empty() ? "" : " (default: " + shown + ")"));
    }
  }
  return text;
}

std::string Options::manual_of(const OptionRow& row) const {
  const std::string shown = row.shown_.value_or(row.option_->get_default_str());
  std::string words = row.manual_.empty() ? row.help_ + "." : row.manual_;
  words[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(words[0])));
  return "\n" + manual_title(*row.option_, row.value_) + "\n\t" + words +
         (shown.empty() ? "" : " Default: " + shown + ".") + "\n";
}

std::string Options::manual() {
  std::string text;
  std::map<std::string, std::string> elsewhere;  // Rows by the page that explains them.
  for (const std::string& group : groups(true)) {
    std::string rows;
    for (const std::unique_ptr<OptionRow>& row : rows_) {
      if (row->group_ != group || row->option_->get_positional()) continue;
      if (row->page_.empty())
        rows += manual_of(*row);
      else
        elsewhere[row->page_] += manual_title(*row->option_, row->value_) + "++\n";
    }
    if (rows.empty()) continue;
    if (group != kFirstGroup) rows = "\n## " + group + "\n" + rows;
    text += rows;
  }
  if (!elsewhere.empty()) text += "\n## Options that programs share\n";
  for (const auto& [page, rows] : elsewhere) {
    const std::size_t section = page.find('(');
    text += fmt::format("\nIn *{}*{}:\n\n{}", page.substr(0, section), page.substr(section),
                        rows.substr(0, rows.size() - 3) + "\n");
  }
  return text.starts_with('\n') ? text.substr(1) : text;
}

}  // namespace vfm::cli
