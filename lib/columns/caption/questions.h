// Further questions about a clip, besides the caption: vfm-caption --also NAME=TEXT. The answer is
// "caption_NAME" in KEY.json: one line of text, or with a schema a JSON value that fits the schema.
//
// If an answer does not fit its schema, the question is asked again, except at temperature 0.
// Thread-safety: plain values.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/held_json.h"
#include "base/json_fwd.h"
#include "text/json_schema.h"

namespace vfm::columns {

struct FurtherQuestion {
  std::string name, prompt;
  std::shared_ptr<const text::JsonSchema> schema = {};  ///< null: the answer is text

  std::string field() const { return "caption_" + name; }
};

struct Questions {
  std::vector<FurtherQuestion> list;
  int tries = 3;            ///< most tries of a question with a schema
  bool keep_empty = false;  ///< accept an empty text

  int tries_of(const FurtherQuestion& question, double temperature) const {
    return question.schema && temperature > 0 ? tries : 1;
  }
  /// Returns all that decides the answers: {"short": {"prompt": …}, "facts": {"prompt", "schema":
  /// hash, "tries"}}. "tries" is absent unless above 1.
  Json to_json(double temperature) const;
};

/// Both functions parse prompts NAME=TEXT or NAME=@FILE, and optional schemas NAME=FILE.
/// check_questions() opens no file. Both throw Error{usage}.
void check_questions(const std::vector<std::string>& prompts,
                     const std::vector<std::string>& schemas);
std::vector<FurtherQuestion> parse_questions(const std::vector<std::string>& prompts,
                                             const std::vector<std::string>& schemas);

/// An answer as a value for KEY.json.
struct AnswerValue {
  HeldJson value;
  std::string fault = {};  ///< reason for no value; empty: a value exists
};
AnswerValue value_of_answer(const FurtherQuestion& question, const std::string& line,
                            bool keep_empty);
/// Returns the error message if a question failed `tries` times.
std::string question_fault(const FurtherQuestion& question, const std::string& why, int tries);

}  // namespace vfm::columns
