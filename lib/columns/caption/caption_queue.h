// Writes the samples of a caption column in their order, while some wait for the endpoint
// (columns/caption/endpoint.h): at most twice as many as parallel requests. A paid answer is on
// disk before its sample is written (columns/caption/paid_answers.h).
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
  HeldJson facts = HeldJson::object();  ///< measured on the way, where the sample's json lacks them
  HeldJson by_model = HeldJson::object();  ///< "caption_model" and related fields
  /// Requests still to be sent, by Endpoint::requests(); empty: none.
  std::vector<std::string> requests = {};
};

/// Cuts `text` to the length that the options allow.
std::string cut_caption(const CaptionOptions& options, std::string text);

/// The file of the paid answers, beside this record's column.
std::string answers_path(const CaptionOptions& options, const io::Record& record);

/// Counts texts that reached their most tokens, in the record.
void count_cut(ColumnNotes& notes, std::int64_t texts);

class CaptionQueue {
 public:
  /// `endpoint`: null, where no caption has a request.
  CaptionQueue(const CaptionOptions& options, Endpoint* endpoint, const io::Record& record,
               shard::Writer& writer, ColumnNotes& notes, Progress& progress);

  /// `name`: the sample's name in errors.
  void push(const std::string& key, const std::string& name, Caption caption);
  /// Writes the rest, and notes the tokens used. Throws EndpointDown; Error if the server's
  /// failures left every caption empty; Stopped.
  void finish();

 private:
  struct Asked {
    std::optional<EndpointAnswer> paid = {};
    std::future<EndpointAnswer> answer = {};
    std::string request = {};  ///< of what may be asked again
  };
  struct Waiting {
    std::string key, name;
    Caption caption;
    std::vector<Asked> asked = {};  ///< for the caption, then each further question
  };
  Asked ask(const std::string& name, std::string request);
  void write_first();
  EndpointAnswer wait_for(Asked& asked);
  void take_caption(Waiting& one);
  void take_further(Waiting& one, const Question& question, Asked& asked);

  const CaptionOptions& options_;
  Endpoint* endpoint_;
  shard::Writer& writer_;
  ColumnNotes& notes_;
  Progress& progress_;
  std::shared_ptr<PaidAnswers> paid_;
  std::deque<Waiting> waiting_;
  bool any_text_ = false;  ///< whether a sample has a caption, or an answer
  std::int64_t answers_ = 0, failed_ = 0, prompt_tokens_ = 0, completion_tokens_ = 0;
};

/// How many captions of a column come from each source. Measured ones, and none, are no loss and
/// not counted. Throws Error; Stopped.
std::map<std::string, std::int64_t> caption_origins(const std::string& tar,
                                                    const shard::ReadLimits& limits);

}  // namespace vfm::columns
