// Further questions about a clip, beside the one whose answer is its caption: vfm-caption --also
// NAME=TEXT. The answer stands in KEY.json as "caption_NAME": a text on one line, or, with a
// schema, a JSON value that fits it.
//
// If an answer does not fit, the question is asked again, except at temperature 0, where the answer
// would be the same.
// Thread-safety: values.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/held_json.h"
#include "base/json_fwd.h"
#include "text/json_schema.h"

namespace vfm::columns {

struct Question {
  std::string name, prompt;
  std::shared_ptr<const text::JsonSchema> schema = {};  ///< null: a text

  std::string field() const { return "caption_" + name; }
};

struct Questions {
  std::vector<Question> list;
  int tries = 3;            ///< most tries for an answer that must fit a schema
  bool keep_empty = false;  ///< an empty text is an answer

  int tries_of(const Question& question, double temperature) const {
    return question.schema && temperature > 0 ? tries : 1;
  }
  /// All that the answers depend on: {"short": {"prompt": …}, "facts": {"prompt", "schema": hash,
  /// "tries"}}; "tries" is left out if it is 1.
  Json to_json(double temperature) const;
};

/// Parses NAME=TEXT or NAME=@FILE, and NAME=FILE for their optional schemas. Throws Error{usage}.
/// check_questions() opens no file.
void check_questions(const std::vector<std::string>& prompts,
                     const std::vector<std::string>& schemas);
std::vector<Question> parse_questions(const std::vector<std::string>& prompts,
                                      const std::vector<std::string>& schemas);

/// The value of an answer, from a line of text::clean_line().
struct AnswerValue {
  HeldJson value;
  std::string fault = {};  ///< why there is no value
};
AnswerValue value_of_answer(const Question& question, const std::string& line, bool keep_empty);
/// The message for a question that failed `tries` times.
std::string question_fault(const Question& question, const std::string& why, int tries);

}  // namespace vfm::columns
