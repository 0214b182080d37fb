// SPDX-License-Identifier: Apache-2.0
#include "shard/where.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/json.h"

using namespace vfm;
using namespace vfm::shard;
using Catch::Contains;

namespace {

const Json kMeta = {{"motion", 0.0031}, {"seconds", 2},
                    {"audio", nullptr}, {"ok", true},
                    {"codec", "h264"},  {"big", 18446744073709551615u},
                    {"a b", 5},         {"e", {{"name", "look"}, {"dim", 64}}}};

bool keep(const std::string& expression) {
  return Where(expression).keep(kMeta);
}

}  // namespace

TEST_CASE("expressions over the fields of a sample") {
  CHECK(keep("motion > 0.002 AND seconds >= 2"));
  CHECK_FALSE(keep("motion > 0.0031"));
  CHECK(keep("audio IS NULL"));
  CHECK_FALSE(keep("audio = 'aac'"));
  CHECK_FALSE(keep("missing > 1"));
  CHECK(keep("missing IS NULL"));
  CHECK(keep("ok"));
  CHECK(keep("codec LIKE 'H%' AND codec IN ('h264', 'hevc')"));
  CHECK(keep("big > 1e19"));
  CHECK(keep("\"a b\" = 5"));
  CHECK(keep("e ->> 'dim' = 64 AND json_extract(e, '$.name') = 'look'"));
  CHECK(keep("1 -- a comment"));
  CHECK_FALSE(keep("0"));
  CHECK_FALSE(keep("NULL"));
}

TEST_CASE("one Where serves many samples") {
  Where where("n % 2 = 0");
  CHECK(where.fields() == std::vector<std::string>{"n"});
  for (int i = 0; i < 10; ++i)
    CHECK(where.keep({{"n", i}}) == (i % 2 == 0));
  CHECK_FALSE(where.keep(Json::object()));
}

TEST_CASE("what is no expression is refused, with the reason") {
  for (const char* bad :
       {"", "  ", "motion >", "motion > 1 extra", "(motion", "motion) FROM sample; --",
        "1; DROP TABLE sample", "count(*) > 1", "nothere(motion)", "x IN (SELECT y FROM z)",
        "a.b > 1 AND c.d.e.f", "'open"}) {
    INFO(bad);
    try {
      Where where{bad};
      FAIL("accepted");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::usage);
      CHECK_THAT(error.what(), Contains("--where"));
    }
  }
}

TEST_CASE("an expression reaches nothing but the sample, and answers the same every time") {
  CHECK_THROWS_WITH(Where("random() > 0"), Contains("random"));
  CHECK_THROWS_AS(Where("CURRENT_TIMESTAMP > 'a'"), Error);
  CHECK_THROWS_AS(Where("(SELECT count(*) FROM sqlite_master) > 0"), Error);
  CHECK_THROWS_AS(Where("load_extension('x')"), Error);
  CHECK_THROWS_AS(Where("(WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) "
                        "SELECT count(*) FROM r) > 0"),
                  Error);
}

TEST_CASE("what may answer otherwise the next time is no function of an expression") {
  for (const char* refused :
       {"date('now') > ''", "strftime('%s', 'now') > 0", "julianday() > 1", "datetime(a) > 0",
        "changes() > 0", "total_changes() > 0", "last_insert_rowid() > 0",
        "fts3_tokenizer('simple', x'0011223344556677') IS NULL", "fts3_tokenizer('simple') IS NULL",
        "sqlite_version() > ''", "sqlite_source_id() > ''", "sqlite_log(1, 'x') IS NULL",
        "zeroblob(1000000) IS NULL", "randomblob(4) IS NULL",
        "EXISTS (SELECT 1 FROM pragma_function_list)", "EXISTS (SELECT 1 FROM sqlite_stmt)"}) {
    INFO(refused);
    CHECK_THROWS_AS(Where(refused), Error);
  }
  CHECK_THROWS_WITH(Where("date(a) > ''"),
                    Contains("no function is called 'date'") && Contains("compare as text"));
  CHECK_THROWS_WITH(Where("random() > 0"), !Contains("compare as text"));
  CHECK(keep("'2024-05-31' > '2024-05'"));
  Where where("round(a, 1) = 0.5 AND lower(name) LIKE 'x%' AND tags ->> 0 = 'red'");
  CHECK(where.keep({{"tags", {"red", "blue"}}, {"a", 0.52}, {"name", "XY"}}));
  CHECK_FALSE(where.keep({{"tags", {"blue"}}, {"a", 0.52}, {"name", "XY"}}));
}

TEST_CASE("an expression that does not come to an end is given up") {
  std::string numbers = "(VALUES (0)";
  for (int i = 1; i < 100; ++i)
    numbers += ",(" + std::to_string(i) + ")";
  numbers += ")";
  std::string tables = numbers;
  for (int i = 1; i < 8; ++i)
    tables += "," + numbers;
  Where where("a = (SELECT count(*) FROM " + tables + ")");
  CHECK_THROWS_WITH(where.keep({{"a", 1}}), Contains("does not come to an end"));
  CHECK_THROWS_WITH(where.keep({{"a", 1}}), Contains("does not come to an end"));
}

TEST_CASE("a function that would take long is refused, and else answers as SQLite's own") {
  const std::string a(4 << 20, 'a');
  const Json meta = {{"text", a}, {"part", a.substr(0, a.size() / 2) + "b"}};
  for (const char* bad :
       {"format('%.*c', 2e9, 'x') = 'a'", "printf('%s %.2000000000c', 1, 'x') = 'a'",
        "format('%*d', -2000000000, 1) = 'a'", "instr(text, part) > 0",
        "replace(text, part, '') = ''", "rtrim(text, text) = ''", "'b' || text LIKE text",
        "text GLOB text"}) {
    INFO(bad);
    CHECK_THROWS_WITH(Where(bad).keep(meta), Contains("() would take too long on these values"));
  }
  CHECK(
      keep("format('%5.2f|%-*s|%.*c|%d%%', 3.14159, 4, 'ab', 3, 'x', 12345678901) = "
           "' 3.14|ab  |xxx|12345678901%'"));
  CHECK(keep("format() IS NULL AND format(NULL) IS NULL AND printf('%s') = ''"));
  CHECK(keep("instr('abc', 'c') = 3 AND instr(NULL, 'c') IS NULL AND instr(x'0102', x'02') = 2"));
  CHECK(keep(
      "replace('aba', 'a', 'cc') = 'ccbcc' AND trim('xxaxx', 'x') = 'a' AND trim(' a ') = 'a'"));
  CHECK(keep("'A_b' LIKE 'a!_%' ESCAPE '!' AND NOT 'Axb' LIKE 'a!_%' ESCAPE '!'"));
  CHECK(keep("codec GLOB 'h*4' AND NOT codec GLOB 'H*' AND NULL LIKE 'a' IS NULL"));
  CHECK_THROWS_WITH(keep("'a' LIKE 'b' ESCAPE 'cc'"),
                    Contains("ESCAPE expression must be a single character"));
  const Json word = {{"text", a}, {"word", "b"}};
  CHECK_FALSE(Where("text LIKE '%' || word || '%' OR instr(text, word) > 0").keep(word));
}

TEST_CASE("JSON that would take long to join, or a path without end, is refused") {
  Json target, patch;
  for (int i = 0; i < 30'000; ++i) {
    target["a" + std::to_string(i)] = i;
    patch["b" + std::to_string(i)] = i;
  }
  std::string path = "$";
  for (int i = 0; i < 1'000'000; ++i)
    path += i % 2 ? ".a" : "[0]";
  const Json meta = {{"target", target}, {"patch", patch}, {"small", {{"a7", 8}}}, {"path", path}};
  for (const char* bad :
       {"json_patch(target, patch) = ''", "json_patch('{}', patch) = ''",
        "json_set('{}', path, 1) = ''", "json_insert('{}', '$.a', 1, path, 1) = ''"}) {
    INFO(bad);
    CHECK_THROWS_WITH(Where(bad).keep(meta), Contains("() would take too long on these values"));
  }
  CHECK(Where("json_patch(target, small) ->> 'a7' = 8").keep(meta));
  CHECK(Where("json_patch(small, patch) ->> 'b29999' = 29999")
            .keep({{"small", meta["small"]}, {"patch", {{"b29999", 29999}}}}));
  // Texts are told from JSON as SQLite does.
  CHECK(
      keep("json_set('{}', '$.a', json('[1,2]'), '$.b', '[1,2]') = "
           "'{\"a\":[1,2],\"b\":\"[1,2]\"}'"));
  CHECK(
      keep("json_array(json_patch('{\"a\":1}', '{\"a\":2}'), json_insert('[1]', '$[#]', 3)) = "
           "'[{\"a\":2},[1,3]]'"));
  CHECK(keep("json_set('{}') = '{}' AND json_patch(NULL, '{}') IS NULL"));
  CHECK_THROWS_WITH(keep("json_set('{}', 'a', 1) = ''"), Contains("JSON path error"));
  CHECK_THROWS_WITH(keep("json_patch('{', '{}') = ''"), Contains("malformed JSON"));
}

TEST_CASE("an expression that fails on a value says so") {
  Where where("json_extract(a, '$.x') = 1");
  CHECK(where.keep({{"a", {{"x", 1}}}}));
  CHECK_THROWS_WITH(where.keep({{"a", "no json"}}), Contains("malformed JSON"));
  CHECK(where.keep({{"a", {{"x", 1}}}}));
}

TEST_CASE("a field that is too long for an expression is a fault, not NULL") {
  Where where("text IS NULL");
  CHECK_FALSE(where.keep({{"text", std::string(64 << 20, 'a')}}));
  CHECK_THROWS_WITH(where.keep({{"text", std::string((64 << 20) + 1, 'a')}}),
                    Contains("of field 'text' SQLite says 'string or blob too big'"));
}

TEST_CASE("comparisons of a field with constants, wherever they stand by themselves") {
  const auto found = [](const std::string& expression) {
    std::string all;
    for (const Comparison& one : constant_comparisons(expression))
      all += one.field + (one.text ? " text " : " number ") + one.constant + "; ";
    return all;
  };
  CHECK(found("a > '0.5'") == "a text '0.5'; ");
  CHECK(found("a>=0.5 AND NOT(b<>-2e-3)") == "a number 0.5; b number -2e-3; ");
  CHECK(found("'x''y' == \"a b\" or 1 < [c]") == "a b text 'x''y'; c number 1; ");
  CHECK(found("a BETWEEN 1 AND '2' and b not in ('x', 'y') -- c > 1\n") ==
        "a number 1; a text '2'; b text 'x'; ");
  CHECK(found("CASE WHEN a = 1 THEN b != 'c' ELSE 1 END /* d > 1 */") ==
        "a number 1; b text 'c'; ");
  CHECK(found("ifnull(a > 1, b = 'x')") == "a number 1; b text 'x'; ");
  // Of what is computed nothing is said.
  for (const char* none :
       {"a + b > 'x'", "a > 'x' || b", "a > 1 + 2", "a > -b", "lower(a) = 5", "e ->> 'dim' = 64",
        "a LIKE '5'", "a IS 5", "a IN ('x', 5)", "a IN (b, 'x')", "a = 'x' COLLATE NOCASE", "a = b",
        "'a' = 'b'", "a BETWEEN b AND 'x'", "a.b = 5", "", "a >", "> 'a'", "'open"}) {
    INFO(none);
    CHECK(found(none).empty());
  }
}

TEST_CASE("how often a field is of the other type than the constant is counted") {
  Where where("Motion > '0.5' AND codec = 'h264' AND ok = 1 AND missing < 1");
  REQUIRE(where.comparisons().size() == 4);
  where.keep(kMeta);
  where.keep({{"motion", "0.7"}, {"codec", 5}, {"ok", "true"}, {"missing", nullptr}});
  const auto counts = [&](std::size_t i) {
    return std::pair(where.comparisons()[i].fits, where.comparisons()[i].differs);
  };
  // SQLite takes either case for a field's name, and keep() the first that it met.
  CHECK(where.comparisons()[0].field == where.fields()[0]);
  CHECK(counts(1) == std::pair<std::uint64_t, std::uint64_t>(1, 1));
  CHECK(counts(2) == std::pair<std::uint64_t, std::uint64_t>(1, 1));
  CHECK(counts(3) == std::pair<std::uint64_t, std::uint64_t>(0, 0));
}

TEST_CASE("near matches") {
  const std::vector<std::string> names = {"motion", "seconds",        "width",
                                          "height", "caption_source", "key"};
  CHECK(near_matches("moton", names) == std::vector<std::string>{"motion"});
  CHECK(near_matches("Seconds", names) == std::vector<std::string>{"seconds"});
  CHECK(near_matches("caption", names) == std::vector<std::string>{"caption_source"});
  CHECK(near_matches("zebra", names).empty());
}
