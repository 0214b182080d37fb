// Further questions about a clip, beside the one whose answer is its caption: vfm-caption --also
// NAME=PROMPT. The answer stands in KEY.json as "caption_NAME": a text, made one line, or, with a
// schema, what a JSON says that fits it.
//
// An answer that does not fit is asked for again where that may give another one: where answers
// are drawn. At temperature 0 a question is asked once.
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
  int tries = 3;            ///< of an answer that must fit a schema
  bool keep_empty = false;  ///< an empty text is an answer

  int tries_of(const Question& question, double temperature) const {
    return question.schema && temperature > 0 ? tries : 1;
  }
  /// What the answers depend on: {"short": {"prompt": …}, "facts": {"prompt", "schema": hash,
  /// "tries"}}; no tries where there is one.
  Json to_json(double temperature) const;
};

/// Of NAME=PROMPT, or NAME=@FILE, and of NAME=FILE for schemas of some of them. Throws
/// Error{usage}. check_questions() opens no file.
void check_questions(const std::vector<std::string>& prompts,
                     const std::vector<std::string>& schemas);
std::vector<Question> parse_questions(const std::vector<std::string>& prompts,
                                      const std::vector<std::string>& schemas);
/// What a prompt's file holds, without the line ends at its end. Throws Error{usage} for one that
/// is empty or larger than 1 MiB, of which no more is read.
std::string read_prompt_file(const std::string& path);

/// What an answer says, a line as text::clean_line() makes it.
struct AnswerValue {
  HeldJson value;
  std::string fault = {};  ///< why it is none
};
AnswerValue value_of_answer(const Question& question, const std::string& line, bool keep_empty);
/// The fault of a question that was asked `tries` times.
std::string question_fault(const Question& question, const std::string& why, int tries);

}  // namespace vfm::columns
