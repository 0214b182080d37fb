// The words of --from, and what they are.
// SPDX-License-Identifier: Apache-2.0
#include "columns/caption/caption_source.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/json.h"

using namespace vfm;
using namespace vfm::columns;

TEST_CASE("sources of captions are parsed in their order, and a server comes last") {
  const CaptionSources sources = parse_caption_sources(
      {"field:a.b", "existing", "model:some/folder", "existing:srt", "builtin:measure"}, true);
  std::vector<std::string> names, values;
  for (const CaptionSource& source : sources.list) {
    names.push_back(source.name);
    values.push_back(source.value);
  }
  CHECK(names == std::vector<std::string>{"field:a.b", "existing:member", "existing:field",
                                          "existing:txt", "existing:json", "existing:srt", "model",
                                          "existing:srt", "builtin:measure", "endpoint"});
  CHECK(values == std::vector<std::string>{"a.b", "", "caption", "txt", "json", "srt",
                                           "some/folder", "srt", "", ""});
  CHECK(sources.list[0].kind == CaptionKind::field);
  CHECK(sources.list[7].kind == CaptionKind::sidecar);
  CHECK(sources.list.back().kind == CaptionKind::server);
  CHECK(sources.given == std::vector<std::string>{"field:a.b", "existing", "model", "existing:srt",
                                                  "builtin:measure", "endpoint"});
  CHECK(sources.model_folder() == "some/folder");
  CHECK(parse_caption_sources({}, false).list.empty());
  CHECK(parse_caption_sources({"existing"}, false).model_folder().empty());
}

TEST_CASE("what is no source of captions is refused") {
  for (const char* wrong : {"", "field:", "model:", "model", "endpoint", "none",
                            "existing:", "existing:mp4", "builtin:look", "Existing"})
    CHECK_THROWS_WITH(
        parse_caption_sources({"existing", wrong}, true),
        Catch::StartsWith("'" + std::string(wrong) + "' is not a source of captions"));
  CHECK_THROWS_WITH(parse_caption_sources({"model:a", "model:b"}, false),
                    "--from names two models; name one");
}

TEST_CASE("a name with dots leads into objects and lists") {
  const Json json = {{"a.b", 1}, {"a", {{"b", 2}, {"c", Json::array({3, nullptr})}}}};
  const auto at = [&](const char* name) {
    const Json* found = find_field(json, name);
    return found == nullptr ? Json() : *found;
  };
  CHECK(at("a.b") == 1);
  CHECK(at("a.c.0") == 3);
  CHECK(at("a.c.1").is_null());
  CHECK(at("a.c.2").is_null());
  CHECK(at("a.c.x").is_null());
  CHECK(at("b").is_null());
}
