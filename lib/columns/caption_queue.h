// Writes the samples of a caption column in their order, while some wait for the endpoint
// (columns/endpoint.h): twice as many as requests go out at once. An answer that was paid for is on
// disk before its sample is written (columns/paid_answers.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <future>
#include <memory>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/progress.h"
#include "columns/caption.h"
#include "columns/column_job.h"
#include "columns/endpoint.h"
#include "columns/paid_answers.h"
#include "io/manifest.h"
#include "shard/writer.h"

namespace vfm::columns {

struct Caption {
  std::string text;
  std::string source;
  Json facts = Json::object();     ///< measured on the way, where the sample's json lacks them
  Json by_model = Json::object();  ///< "caption_model" and what goes with it
  std::string request = {};        ///< what the endpoint is still to be asked; empty: nothing
};

/// As long as the options have it.
std::string cut_caption(const CaptionOptions& options, std::string text);

/// Of the answers that were paid for, beside the column of this record.
std::string answers_path(const CaptionOptions& options, const io::Record& record);

class CaptionQueue {
 public:
  /// `endpoint`: null, where no caption has a request.
  CaptionQueue(const CaptionOptions& options, Endpoint* endpoint, const io::Record& record,
               shard::Writer& writer, ColumnNotes& notes, Progress& progress);

  /// `name`: the sample's in errors.
  void push(const std::string& key, const std::string& name, Caption caption);
  /// Writes the rest, and notes what was used. Throws EndpointDown; Stopped.
  void finish();

 private:
  struct Waiting {
    std::string key, name;
    Caption caption;
    std::optional<EndpointAnswer> paid = {};
    std::future<EndpointAnswer> answer = {};
  };
  void write_first();
  void take_answer(Waiting& one);

  const CaptionOptions& options_;
  Endpoint* endpoint_;
  shard::Writer& writer_;
  ColumnNotes& notes_;
  Progress& progress_;
  std::shared_ptr<PaidAnswers> paid_;
  std::deque<Waiting> waiting_;
  std::int64_t answers_ = 0, failed_ = 0, prompt_tokens_ = 0, completion_tokens_ = 0;
};

}  // namespace vfm::columns
