// Chat templates: what transformers renders of the same ones (scripts/golden/chat_templates.py),
// and what is refused.
// SPDX-License-Identifier: Apache-2.0
#include "text/chat_template.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/json.h"
#include "io/file.h"
#include "support/usage_error.h"

using namespace vfm;
using Catch::Contains;

namespace {

std::string render(std::string_view source, const Json& variables = Json::object()) {
  return text::ChatTemplate(source, "'a'").render(variables);
}

}  // namespace

TEST_CASE("chat templates give the text that transformers gives", "[chat]") {
  const std::string path = std::string(VFM_GOLDEN) + "/chat_templates.json";
  const Json golden = parse_json(io::read_file(path), path);
  REQUIRE(golden["cases"].size() > 80);
  for (const Json& one : golden["cases"]) {
    INFO(one["case"].get<std::string>());
    const std::string source = golden["templates"][one["template"].get<std::string>()];
    if (one["text"].is_null())
      CHECK_THROWS_AS(render(source, one["variables"]), Error);
    else
      CHECK(render(source, one["variables"]) == one["text"].get<std::string>());
  }
}

TEST_CASE("what a chat template has and this has not is refused by name and line", "[chat]") {
  const auto refused = [](const char* source) { return usage_error([&] { render(source); }); };
  CHECK(refused("\n{% include 'x' %}") == "'a', line 2: the tag 'include' is not supported");
  CHECK_THAT(refused("{{ 1 }}\n\n{{ 'a' | wordcount }}"),
             Contains("line 3: the filter 'wordcount' is not supported"));
  CHECK_THAT(refused("{{ 1 is callable }}"), Contains("the test 'callable' is not supported"));
  CHECK_THAT(refused("{{ 'a'.zfill(3) }}"), Contains("'zfill' of a string is not supported"));
  CHECK_THAT(refused("{{ 'a'.__class__ }}"), Contains("'__class__' is not supported"));
  CHECK_THAT(refused("{{ strftime_now('%d') }}"), Contains("'strftime_now' is not supported"));
  CHECK_THAT(refused("{{ 'a' | tojson(cls=1) }}"), Contains("'cls' of 'tojson'"));
  CHECK_THAT(refused("{% for x in [1] recursive %}{% endfor %}"), Contains("recursive"));
  CHECK_THAT(refused("{{ '%s' % 1 }}"), Contains("'%' after a string"));
  CHECK_THAT(refused("{{ 9223372036854775807 + 1 }}"), Contains("too large"));
  CHECK_THAT(refused("{% set ns = namespace() %}{% set ns.a = ns %}"),
             Contains("a namespace in a list, mapping or namespace"));
  CHECK_THAT(refused("{{ raise_exception('not so') }}"), Contains("not so"));
  // A template may ask whether there is a date, and do without.
  CHECK(render("{{ 'now' if strftime_now is defined else 'never' }}") == "never");
}

TEST_CASE("a chat template is bounded in work, depth and output", "[chat][long]") {
  const auto refused = [](const std::string& source) {
    return usage_error([&] { render(source); });
  };
  CHECK_THAT(
      refused("{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}"),
      Contains("steps"));
  CHECK_THAT(refused("{{ 'aaaaaaaaaaaaaaaa' * 100000000 }}"), Contains("16 MiB"));
  CHECK_THAT(refused("{% set n = namespace(x='aaaaaaaaaaaaaaaa') %}{% for a in range(40) %}"
                     "{% set n.x = n.x + n.x %}{% endfor %}"),
             Contains("16 MiB"));
  // Not large in memory, but when it is written.
  CHECK_THAT(refused("{% set n = namespace(x=['a']) %}{% for a in range(90) %}"
                     "{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x }}"),
             Contains("16 MiB"));
  CHECK_THAT(refused("{% set n = namespace(x=[]) %}{% for a in range(900) %}"
                     "{% set n.x = [n.x] %}{% endfor %}"),
             Contains("deeper than 100"));
  CHECK_THAT(refused("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"), Contains("too often"));
  CHECK_THAT(refused("{{ " + std::string(5000, '(') + "1" + std::string(5000, ')') + " }}"),
             Contains("nested deeper"));
  std::string sum = "{{ 1";
  for (int i = 0; i < 5000; ++i)
    sum += " + 1";
  CHECK_THAT(refused(sum + " }}"), Contains("nested deeper"));
  CHECK_THAT(refused(std::string(2 << 20, 'a')), Contains("1 MiB"));
  // Time grows with the text, not with its square.
  CHECK(render("{{ ('a ' * 400000).split() | length }}") == "400000");
  CHECK(render("{{ ('a ' * 400000).rsplit() | length }}") == "400000");
  CHECK(render("{{ ('a' * 400000).strip('b' * 400000 ~ 'a') | length }}") == "0");
  CHECK(render(std::string(100000, 'a')).size() == 100000);
}
