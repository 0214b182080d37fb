// Checks a JSON value by a part of JSON Schema:
//
//   type                   one or a list of null, boolean, integer, number, string, array, object
//   enum                   values; 1 equals 1.0, and the order of members is ignored
//   minimum, maximum, exclusiveMinimum, exclusiveMaximum
//   minLength, maxLength   of a text, in Unicode's code points
//   items                  a schema for all elements; also minItems, maxItems
//   properties             a schema for each member
//   required               names of members that must be present
//   additionalProperties   true, false or a schema
//
// All other keys of a schema are refused, except keys that do not restrict values: $schema,
// $comment, title, description, default, examples. An integer is a number without a fraction, also
// 2.0. Source: "JSON Schema: a media type for describing JSON documents" and its validation
// vocabulary, draft 2020-12. Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/held_json.h"
#include "base/json_fwd.h"

namespace vfm::text {

class JsonSchema {
 public:
  /// Throws Error{usage}, which names `what` and the place, for an unsupported or contradictory
  /// schema.
  JsonSchema(Json schema, std::string_view what);

  /// Returns the place and reason of the first error, such as "$.colours[2] is not one of …".
  /// Returns "" if the value is valid.
  std::string misfit(const Json& value) const;
  const Json& json() const { return schema_; }

 private:
  HeldJson schema_;
};

/// Returns the JSON in a model's answer: the whole text, or its only fenced block (```json … ```).
/// Repairs the JSON by mend_json() first. Throws Error if the text is not JSON.
Json parse_answer(std::string_view said);

}  // namespace vfm::text
