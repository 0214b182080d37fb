// SPDX-License-Identifier: Apache-2.0
#include "shard/sql_costs.h"

#include <sqlite3.h>

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <string>

#include "base/error.h"

namespace vfm::shard {
namespace {

constexpr double kMostSteps = 4e9;  // compared bytes, a few seconds

double value_bytes(sqlite3_value* value) {
  return static_cast<double>(sqlite3_value_bytes(value));
}

/// Each byte of one text is compared with each byte of the other.
double search_steps(int count, sqlite3_value** arguments) {
  return count < 2 ? 0 : value_bytes(arguments[0]) * value_bytes(arguments[1]);
}

/// Adds the widths and precisions in the format. Each is a number, or an argument for '*'.
double format_steps(int count, sqlite3_value** arguments) {
  constexpr double kForOne = 60;  // A character takes as long as 60 compared bytes.
  const auto* c =
      count == 0 ? nullptr : reinterpret_cast<const char*>(sqlite3_value_text(arguments[0]));
  int next = 1;
  double sum = 0;
  const auto number = [&] {
    if (*c == '*') {
      ++c;
      if (next < count) sum += std::fabs(sqlite3_value_double(arguments[next++]));
      return;
    }
    double value = 0;
    for (; *c >= '0' && *c <= '9'; ++c)
      value = 10 * value + (*c - '0');
    sum += value;
  };
  while (c && (c = std::strchr(c, '%')) != nullptr) {
    c += 1 + std::strspn(c + 1, "-+ #!,0");
    number();
    if (*c == '.') {
      ++c;
      number();
    }
    c += std::strspn(c, "l");
    if (*c == '\0') break;
    if (*c != '%' && *c != 'n') ++next;
    ++c;
  }
  return kForOne * sum;
}

constexpr double kNever = 2 * kMostSteps;

double count_of(sqlite3_value* value, const char* characters) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(value));
  double count = 0;
  while (text && (text = std::strpbrk(text, characters)) != nullptr)
    ++count, ++text;
  return count;
}

/// Each name of the patch is compared with the names of the target and those added before.
double patch_steps(int count, sqlite3_value** arguments) {
  constexpr double kForOne = 8;       // for skipping a name, in compared bytes
  constexpr double kAtOnce = 1 / 8.;  // for a byte of names of equal length
  if (count < 2) return 0;
  const double names = count_of(arguments[1], ":");
  const double bytes = value_bytes(arguments[0]) + value_bytes(arguments[1]);
  return names * (kForOne * (count_of(arguments[0], ":") + names) + kAtOnce * bytes);
}

/// SQLite creates each missing level of a path by recursion, so a long path would overflow the
/// stack. kMostLevels is also SQLite's limit for the depth of JSON.
double put_steps(int count, sqlite3_value** arguments) {
  constexpr double kMostLevels = 2000;
  for (int i = 1; i < count; i += 2)
    if (count_of(arguments[i], ".[") > kMostLevels) return kNever;
  return 0;
}

struct CloseOwnDatabase {
  void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
};
struct FinalizeCall {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

#ifdef SQLITE_RESULT_SUBTYPE
constexpr int kReadsJson = SQLITE_SUBTYPE | SQLITE_RESULT_SUBTYPE;
#else
constexpr int kReadsJson = SQLITE_SUBTYPE;
#endif
constexpr unsigned kJson = 'J';  // SQLite's mark for the result of a JSON function.

struct Lasting {
  const char* name;
  int arguments;  // -1 for any number.
  double (*steps)(int, sqlite3_value**);
  bool json = false;  // Takes and returns marked JSON.
};
constexpr Lasting kLasting[] = {{"format", -1, format_steps},
                                {"printf", -1, format_steps},
                                {"instr", 2, search_steps},
                                {"replace", 3, search_steps},
                                {"trim", 2, search_steps},
                                {"ltrim", 2, search_steps},
                                {"rtrim", 2, search_steps},
                                {"like", 2, search_steps},
                                {"like", 3, search_steps},
                                {"glob", 2, search_steps},
                                {"json_patch", 2, patch_steps, true},
                                {"json_set", -1, put_steps, true},
                                {"json_insert", -1, put_steps, true}};

/// Calls SQLite's own function in a database of its own.
struct Original {
  Lasting lasting;
  std::shared_ptr<sqlite3> db;
  std::map<std::string, std::unique_ptr<sqlite3_stmt, FinalizeCall>> by_text;

  sqlite3_stmt* statement(int count, sqlite3_value** arguments) {
    constexpr std::size_t kMostTexts = 64;
    std::string text = std::string("SELECT ") + lasting.name + "(";
    for (int i = 0; i < count; ++i) {
      text += i == 0 ? "" : ",";
      // A bound value loses its mark.
      text += lasting.json && sqlite3_value_subtype(arguments[i]) == kJson ? "json(?)" : "?";
    }
    text += ")";
    if (by_text.size() > kMostTexts) by_text.clear();
    auto& made = by_text[text];
    if (made) return made.get();
    sqlite3_stmt* handle = nullptr;
    sqlite3_prepare_v2(db.get(), text.c_str(), -1, &handle, nullptr);
    made.reset(handle);
    return handle;
  }
};

void call_bounded(sqlite3_context* context, int count, sqlite3_value** arguments) {
  auto* original = static_cast<Original*>(sqlite3_user_data(context));
  const Lasting& lasting = original->lasting;
  try {
    if (lasting.steps(count, arguments) > kMostSteps) {
      const std::string why = std::string(lasting.name) + "() would take too long on these values";
      return sqlite3_result_error(context, why.c_str(), -1);
    }
    sqlite3_stmt* statement = original->statement(count, arguments);
    for (int i = 0; statement && i < count; ++i)
      sqlite3_bind_value(statement, i + 1, arguments[i]);
    if (statement && sqlite3_step(statement) == SQLITE_ROW) {
      sqlite3_result_value(context, sqlite3_column_value(statement, 0));
      if (lasting.json) sqlite3_result_subtype(context, kJson);
    } else {
      sqlite3_result_error(context, sqlite3_errmsg(original->db.get()), -1);
    }
    if (!statement) return;
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
  } catch (...) {  // std::bad_alloc, which must not pass through C.
    sqlite3_result_error_nomem(context);
  }
}

}  // namespace

void bound_costs(sqlite3* db) {
  sqlite3* handle = nullptr;
  const int opened = sqlite3_open(":memory:", &handle);
  const std::shared_ptr<sqlite3> own(handle, CloseOwnDatabase());
  if (opened != SQLITE_OK) fail("cannot start SQLite: {}", sqlite3_errstr(opened));
  for (const int limit : {SQLITE_LIMIT_LENGTH, SQLITE_LIMIT_LIKE_PATTERN_LENGTH})
    sqlite3_limit(handle, limit, sqlite3_limit(db, limit, -1));
  for (const Lasting& lasting : kLasting) {
    auto original = std::make_unique<Original>();
    original->lasting = lasting;
    original->db = own;
    const int flags =
        SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS | (lasting.json ? kReadsJson : 0);
    // SQLite frees the object even if the call fails.
    const int made = sqlite3_create_function_v2(
        db, lasting.name, lasting.arguments, flags, original.release(), call_bounded, nullptr,
        nullptr, [](void* data) { delete static_cast<Original*>(data); });
    if (made != SQLITE_OK) fail("cannot start SQLite: {}", sqlite3_errstr(made));
  }
}

}  // namespace vfm::shard
