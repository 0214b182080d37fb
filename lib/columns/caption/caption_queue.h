// Writes the samples of a caption column in order. Samples wait for a server's answers
// (columns/caption/endpoint.h), at most two samples for each parallel request. Answers are on disk
// before a sample is written (columns/caption/paid_answers.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/held_json.h"
#include "base/progress.h"
#include "columns/caption/caption.h"
#include "columns/caption/endpoint.h"
#include "columns/caption/paid_answers.h"
#include "columns/column_job.h"
#include "io/manifest.h"
#include "shard/reader.h"
#include "shard/writer.h"

namespace vfm::columns {

struct Caption {
  std::string text;
  std::string source;
  HeldJson facts = HeldJson::object();     ///< Facts that the sample's json lacks.
  HeldJson by_model = HeldJson::object();  ///< "caption_model" and related fields.
  /// Requests from Endpoint::requests(). May be empty.
  std::vector<std::string> requests = {};
};

/// Returns `text`, cut at a word if it is longer than options.max_characters.
std::string cut_caption(const CaptionOptions& options, std::string text);

/// Returns the path of the file with the server's answers, beside the record's column.
std::string answers_path(const CaptionOptions& options, const io::Record& record);

/// Adds `texts` to the record's "caption_cut", the number of texts cut at the token limit.
void count_cut(ColumnNotes& notes, std::int64_t texts);

class CaptionQueue {
 public:
  /// `endpoint` may be null if no caption has requests.
  CaptionQueue(const CaptionOptions& options, Endpoint* endpoint, const io::Record& record,
               shard::Writer& writer, ColumnNotes& notes, Progress& progress);

  /// Adds a sample. `name` is the sample's name in errors.
  void push(const std::string& key, const std::string& name, Caption caption);
  /// Writes the remaining samples, and notes the tokens used. Throws Error if the server failed for
  /// all captions. Also throws EndpointDown and Stopped.
  void finish();

 private:
  struct Asked {
    std::optional<EndpointAnswer> paid = {};
    std::future<EndpointAnswer> answer = {};
    std::string request = {};  ///< Request for a further try, or empty.
  };
  struct Waiting {
    std::string key, name;
    Caption caption;
    std::vector<Asked> asked = {};  ///< Requests for the caption and for further questions.
  };
  Asked ask(const std::string& name, std::string request);
  void write_first();
  EndpointAnswer wait_for(Asked& asked);
  void take_caption(Waiting& one);
  void take_further(Waiting& one, const FurtherQuestion& question, Asked& asked);

  const CaptionOptions& options_;
  Endpoint* endpoint_;
  shard::Writer& writer_;
  ColumnNotes& notes_;
  Progress& progress_;
  std::shared_ptr<PaidAnswers> paid_;
  std::deque<Waiting> waiting_;
  bool any_text_ = false;
  std::int64_t answers_ = 0, failed_ = 0, prompt_tokens_ = 0, completion_tokens_ = 0;
};

/// Returns the number of a column's captions from each source, for ColumnJob::origins. Captions by
/// builtin:measure and missing captions are left out. Throws Error and Stopped.
std::map<std::string, std::int64_t> caption_origins(const std::string& tar,
                                                    const shard::ReadLimits& limits);

}  // namespace vfm::columns
