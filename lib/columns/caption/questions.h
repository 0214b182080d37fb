// Further questions about a clip (vfm-caption --also NAME=TEXT). The answer is stored as
// "caption_NAME" in KEY.json. If the question has a schema, the answer is a JSON value that fits
// the schema. Otherwise the answer is a line of text.
//
// If an answer does not fit its schema, the question is asked again, except at temperature 0.
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
  std::shared_ptr<const text::JsonSchema> schema = {};  ///< Schema of the answer, or null for text.

  std::string field() const { return "caption_" + name; }
};

struct Questions {
  std::vector<FurtherQuestion> list;
  int tries = 3;            ///< Largest number of tries of a question with a schema.
  bool keep_empty = false;  ///< If true, an empty text is accepted.

  int tries_of(const FurtherQuestion& question, double temperature) const {
    return question.schema && temperature > 0 ? tries : 1;
  }
  /// Returns the settings that affect the answers, by the questions' names: {"short": {"prompt":
  /// …}, "facts": {"prompt": …, "schema": hash, "tries": …}}. "tries" is present if it is above 1.
  Json to_json(double temperature) const;
};

/// Both functions parse prompts NAME=TEXT or NAME=@FILE, and schemas NAME=FILE, and throw
/// Error{usage}. check_questions() opens no file.
void check_questions(const std::vector<std::string>& prompts,
                     const std::vector<std::string>& schemas);
std::vector<FurtherQuestion> parse_questions(const std::vector<std::string>& prompts,
                                             const std::vector<std::string>& schemas);

/// The value of an answer in KEY.json.
struct AnswerValue {
  HeldJson value;
  std::string fault = {};  ///< Reason for a missing value, or empty.
};
AnswerValue value_of_answer(const FurtherQuestion& question, const std::string& line,
                            bool keep_empty);
/// Returns the error message for a question that failed `tries` times.
std::string question_fault(const FurtherQuestion& question, const std::string& why, int tries);

}  // namespace vfm::columns
