// SPDX-License-Identifier: Apache-2.0
#include "shard/where.h"

#include <sqlite3.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <limits>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/stop.h"
#include "shard/sql_costs.h"

namespace vfm::shard {
namespace {

struct CloseDatabase {
  void operator()(sqlite3* db) const { sqlite3_close(db); }
};
struct FinalizeStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

/// Functions that are deterministic, read only their arguments, and need no more memory than these.
/// This excludes functions of the time or the connection, all date functions, and extensions.
constexpr std::string_view kFunctions[] = {
    // text
    "char", "concat", "concat_ws", "format", "glob", "hex", "instr", "length", "like", "lower",
    "ltrim", "octet_length", "printf", "quote", "replace", "rtrim", "soundex", "substr",
    "substring", "trim", "unhex", "unicode", "upper",
    // numbers
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "ceiling", "cos",
    "cosh", "degrees", "exp", "floor", "ln", "log", "log10", "log2", "mod", "pi", "pow", "power",
    "radians", "round", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
    // choice
    "coalesce", "iif", "ifnull", "likelihood", "likely", "max", "min", "nullif", "typeof",
    "unlikely",
    // over rows
    "avg", "count", "group_concat", "string_agg", "sum", "total",
    // JSON
    "->", "->>", "json", "json_array", "json_array_length", "json_error_position", "json_extract",
    "json_group_array", "json_group_object", "json_insert", "json_object", "json_patch",
    "json_quote", "json_remove", "json_replace", "json_set", "json_type", "json_valid"};

constexpr std::string_view kReadableTables[] = {"", "sample"};

/// SQLite calls this for every action of an expression. Recursive queries are refused.
int authorize(void* denied, int action, const char* first, const char* second, const char*,
              const char*) {
  const auto is = [](const char* name) {
    return [name](std::string_view allowed) {
      return allowed.size() == std::strlen(name) &&
             sqlite3_strnicmp(allowed.data(), name, static_cast<int>(allowed.size())) == 0;
    };
  };
  if (action == SQLITE_SELECT) return SQLITE_OK;
  if (action == SQLITE_READ)
    return std::ranges::any_of(kReadableTables, is(first ? first : "")) ? SQLITE_OK : SQLITE_DENY;
  if (action != SQLITE_FUNCTION || !second) return SQLITE_DENY;
  if (std::ranges::any_of(kFunctions, is(second))) return SQLITE_OK;
  *static_cast<std::string*>(denied) = second;
  return SQLITE_DENY;
}

bool is_of_dates(const std::string& function) {
  constexpr const char* kNames[] = {"date",      "time",     "datetime", "julianday",
                                    "unixepoch", "strftime", "timediff"};
  return std::ranges::any_of(
      kNames, [&](const char* name) { return sqlite3_stricmp(name, function.c_str()) == 0; });
}

// Steps of SQLite's virtual machine: between calls of look_up(), and per sample (about a second).
constexpr int kStepsAtOnce = 10'000;
constexpr std::int64_t kSteps = 50'000'000;

std::string sql_name(const std::string& name) {
  std::string text = "\"";
  for (const char c : name)
    text += c == '"' ? std::string("\"\"") : std::string(1, c);
  return text + "\"";
}

/// Returns a SELECT over one row of bound values with the names of the fields. Line ends around the
/// expression keep a comment in it from hiding the rest.
std::string statement_text(const std::vector<std::string>& fields, const std::string& expression) {
  // A row needs a column even if the expression names no field.
  std::string names = "\" \"", values = "NULL";
  for (std::size_t i = 0; i < fields.size(); ++i) {
    names += "," + sql_name(fields[i]);
    values += fmt::format(",?{}", i + 1);
  }
  return fmt::format("WITH sample({}) AS (SELECT {}) SELECT 1 FROM sample WHERE (\n{}\n)", names,
                     values, expression);
}

/// Returns the same SELECT without parentheses, with NULL for all values.
std::string bare_text(const std::vector<std::string>& fields, const std::string& expression) {
  std::string names = "\" \"", values = "NULL";
  for (const std::string& field : fields)
    names += "," + sql_name(field), values += ",NULL";
  return fmt::format("WITH sample({}) AS (SELECT {}) SELECT 1 FROM sample WHERE \n{}\n", names,
                     values, expression);
}

/// Returns SQLite's status, because a text may be too long.
int bind(sqlite3_stmt* statement, int i, const Json& value) {
  if (value.is_null()) return sqlite3_bind_null(statement, i);
  if (value.is_boolean()) return sqlite3_bind_int(statement, i, value.get<bool>());
  if (value.is_number_unsigned() &&
      value.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()})
    return sqlite3_bind_double(statement, i, value.get<double>());
  if (value.is_number_integer()) return sqlite3_bind_int64(statement, i, value.get<std::int64_t>());
  if (value.is_number()) return sqlite3_bind_double(statement, i, value.get<double>());
  const std::string text = value.is_string() ? value.get<std::string>() : dump_json(value);
  return sqlite3_bind_text64(statement, i, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t swapped = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({swapped, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::string lower(std::string text) {
  for (char& c : text)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

}  // namespace

struct Where::State {
  std::string expression;
  std::vector<std::string> fields;
  std::vector<Comparison> comparisons;
  std::unique_ptr<sqlite3, CloseDatabase> db;
  Statement statement;
  std::string denied;      // Last function that was refused.
  std::int64_t steps = 0;

  /// SQLite's progress handler. Another value than 0 ends the evaluation.
  static int look_up(void* self) {
    auto* state = static_cast<State*>(self);
    state->steps += kStepsAtOnce;
    return stop_requested() || state->steps > kSteps;
  }
  std::string error_text() const {
    if (!denied.empty())
      return fmt::format(
          "no function is called '{}' (vfm-shard(1) lists those that work{})", denied,
          is_of_dates(denied) ? "; dates like 2024-05-31 compare as text, without a function" : "");
    return sqlite3_errmsg(db.get());
  }

  void open();
  /// Returns null and sets `error` if the expression is wrong.
  Statement prepare(std::string& error);
};

void Where::State::open() {
  sqlite3* handle = nullptr;
  const int status = sqlite3_open(":memory:", &handle);
  db.reset(handle);
  if (status != SQLITE_OK) fail("cannot start SQLite: {}", sqlite3_errstr(status));
  // Otherwise SQLite would take an unknown name in double quotes as a text.
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DQS_DML, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DQS_DDL, 0, nullptr);
  sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, 64 << 20);
  sqlite3_limit(handle, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000);
  bound_costs(handle);
  sqlite3_set_authorizer(handle, authorize, &denied);
  sqlite3_progress_handler(handle, kStepsAtOnce, look_up, this);
}

Statement Where::State::prepare(std::string& error) {
  // Without our parentheses and parameters first: "a) or (b" must be an error, and so must
  // parameters that nobody binds.
  sqlite3_stmt* bare = nullptr;
  const std::string alone = bare_text(fields, expression);
  if (sqlite3_prepare_v2(db.get(), alone.c_str(), static_cast<int>(alone.size() + 1), &bare,
                         nullptr) != SQLITE_OK) {
    error = error_text();
    return nullptr;
  }
  const Statement owner(bare);
  if (sqlite3_bind_parameter_count(bare) > 0) {
    error = "parameters like ? and :name have no value here";
    return nullptr;
  }
  const std::string text = statement_text(fields, expression);
  sqlite3_stmt* made = nullptr;
  const char* tail = nullptr;
  const int status =
      sqlite3_prepare_v2(db.get(), text.c_str(), static_cast<int>(text.size() + 1), &made, &tail);
  Statement result(made);
  if (status != SQLITE_OK) {
    error = sqlite3_errmsg(db.get());
    return nullptr;
  }
  if (!made || std::string_view(tail).find_first_not_of(" \n\t;") != std::string_view::npos) {
    error = "more than one expression";
    return nullptr;
  }
  return result;
}

namespace {

/// SQLite takes "meta.rating" as a column of a table.
std::string member_words(const std::string& field) {
  const std::size_t dot = field.find('.');
  if (dot == std::string::npos) return "";
  const std::string member = field.substr(dot + 1);
  return vfm::format("; write {} ->> '{}{}'", field.substr(0, dot),
                     member.find('.') == std::string::npos ? "" : "$.", member);
}

}  // namespace

Where::Where(const std::string& expression) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.expression = expression;
  if (expression.find_first_not_of(" \t\n") == std::string::npos)
    fail_usage("--where: the expression is empty");
  if (expression.find('\0') != std::string::npos) fail_usage("--where: the expression holds a NUL");
  s.open();
  // SQLite reports missing columns one by one. These are the fields.
  constexpr std::string_view kMissing = "no such column: ";
  for (std::string error; !(s.statement = s.prepare(error));) {
    check_stop();
    const std::string field = error.starts_with(kMissing) ? error.substr(kMissing.size()) : "";
    if (field.empty() || s.fields.size() >= 500 ||
        std::find(s.fields.begin(), s.fields.end(), field) != s.fields.end())
      fail_usage("--where: {}{}, in '{}'", error, member_words(field), expression);
    s.fields.push_back(field);
  }
  // SQLite ignores the case of names.
  for (Comparison& one : constant_comparisons(expression))
    for (const std::string& field : s.fields)
      if (sqlite3_stricmp(field.c_str(), one.field.c_str()) == 0) {
        one.field = field;
        s.comparisons.push_back(std::move(one));
        break;
      }
}
Where::~Where() = default;
Where::Where(Where&&) noexcept = default;

const std::vector<std::string>& Where::fields() const {
  return state_->fields;
}

const std::vector<Comparison>& Where::comparisons() const {
  return state_->comparisons;
}

bool Where::keep(const Json& meta) {
  static const Json kNone;
  State& s = *state_;
  for (std::size_t i = 0; i < s.fields.size(); ++i) {
    const auto found = meta.find(s.fields[i]);
    const int index = static_cast<int>(i) + 1;
    const int bound = bind(s.statement.get(), index, found == meta.end() ? kNone : *found);
    if (bound != SQLITE_OK)
      fail("the --where expression cannot be evaluated: of field '{}' SQLite says '{}'",
           s.fields[i], sqlite3_errstr(bound));
  }
  for (Comparison& one : s.comparisons)
    if (const auto value = meta.find(one.field); value != meta.end()) {
      const bool number = value->is_number() || value->is_boolean();
      if (value->is_string() || number) ++(number == one.text ? one.differs : one.fits);
    }
  s.steps = 0;
  const int status = sqlite3_step(s.statement.get());
  check_stop();  // A signal ends the evaluation, but is not an error of the expression.
  if (s.steps > kSteps) {
    sqlite3_reset(s.statement.get());
    fail("the --where expression does not come to an end: given up after {} steps", kSteps);
  }
  const std::string error =
      status == SQLITE_ROW || status == SQLITE_DONE ? "" : sqlite3_errmsg(s.db.get());
  sqlite3_reset(s.statement.get());
  if (!error.empty()) fail("the --where expression cannot be evaluated: {}", error);
  return status == SQLITE_ROW;
}

std::string sql_version() {
  return std::string("SQLite ") + sqlite3_libversion();
}

std::vector<std::string> near_matches(const std::string& word,
                                      const std::vector<std::string>& names) {
  std::vector<std::pair<std::size_t, std::string>> near;
  for (const std::string& name : names) {
    const std::string a = lower(word), b = lower(name);
    std::size_t distance = edit_distance(a, b);
    if (a.size() >= 3 && (b.starts_with(a) || a.starts_with(b)))
      distance = std::min<std::size_t>(distance, 1);
    if (distance <= std::max<std::size_t>(1, word.size() / 3)) near.emplace_back(distance, name);
  }
  std::sort(near.begin(), near.end());
  std::vector<std::string> result;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, near.size()); ++i)
    result.push_back(near[i].second);
  return result;
}

std::vector<std::string> slips_of(const std::string& word, const std::vector<std::string>& names) {
  std::vector<std::pair<std::size_t, std::string>> near;
  const std::size_t most = word.size() < 8 ? 1 : 2;
  for (const std::string& name : names)
    if (const std::size_t distance = edit_distance(lower(word), lower(name)); distance <= most)
      near.emplace_back(distance, name);
  std::sort(near.begin(), near.end());
  std::vector<std::string> result;
  for (const auto& [distance, name] : near)
    result.push_back(name);
  return result;
}

}  // namespace vfm::shard
