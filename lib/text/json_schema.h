// Checks the form of a JSON value by a part of JSON Schema:
//
//   type                   one or a list of null, boolean, integer, number, string, array, object
//   enum                   values, compared as JSON has them: 1 is 1.0, members have no order
//   minimum, maximum, exclusiveMinimum, exclusiveMaximum
//   minLength, maxLength   of a text, in Unicode's code points
//   items                  a schema for all elements; minItems, maxItems
//   properties             a schema for each; required; additionalProperties: true, false, a schema
//
// Anything else in a schema is refused, except keys that do not restrict values: $schema, $comment,
// title, description, default, examples. An integer is a number without a fraction, also as 2.0.
// Source: "JSON Schema: a media type for describing JSON documents" and its validation vocabulary,
// draft 2020-12. (Debian's validator for this library of JSON, valijson 1.0, does not take 2.0 as
// an integer, compares whole numbers as doubles and ignores unknown keys.)
// Pure. Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/held_json.h"
#include "base/json_fwd.h"

namespace vfm::text {

class JsonSchema {
 public:
  /// Throws Error{usage}, naming `what` and the place, for an unsupported or impossible schema.
  JsonSchema(Json schema, std::string_view what);

  /// The place and reason of a misfit: "$.colours[2] is not one of …"; "" if the value fits.
  std::string misfit(const Json& value) const;
  const Json& json() const { return schema_; }

 private:
  HeldJson schema_;
};

/// The JSON that a model wrote: the whole text, or its only fenced block (```json … ```), mended by
/// mend_json(). Throws Error if it is not JSON.
Json parse_answer(std::string_view said);

}  // namespace vfm::text
