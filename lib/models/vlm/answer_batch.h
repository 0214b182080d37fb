// Texts of one model that are written together: questions of several threads share the steps of
// the decoder, so that the weights are read once for a token of each of them.
//
// There is no thread of its own: of those that wait for an answer one computes for all, and where
// its own are done another one goes on. A question that comes later joins as soon as there is room;
// its video and prompt are computed by themselves, up to the words behind the video and these after
// them, so that questions about one video share all but their words. Which texts come together
// changes no bit of one (ops/matmul/few_rows.h, ops/attention/newest_query.h). Thread-safety: any
// thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/philox.h"
#include "models/vlm/caption_model.h"
#include "models/vlm/qwen.h"
#include "models/vlm/token_choice.h"

namespace vfm::models {

/// What several questions are about. Looked at, and read, when the first of them is begun, and
/// dropped with the last.
struct SharedSight {
  std::function<QwenPicture()> open;
  QwenSight sight = {};
  Tensor tokens = {};                           ///< of the model's look(); undefined before
  std::vector<std::int32_t> ids = {};           ///< what `head` has read: qwen_head() of a prompt
  std::unique_ptr<const QwenAnswer> head = {};  ///< null, where one question is asked alone
};

/// A question, and what becomes of it.
struct TextJob {
  std::vector<std::int32_t> ids;      ///< the prompt; with what is written behind it
  std::shared_ptr<SharedSight> seen;  ///< null: nothing
  TokenChoice choice;
  int most_tokens = 0;
  std::optional<Random> random;
  bool weigh = false;  ///< `log_probabilities` are asked for

  std::vector<std::int32_t> written = {};
  /// Of `written`, as the model has them, without temperature or penalty.
  std::vector<double> log_probabilities = {};
  bool cut = true;  ///< it did not end by itself
  std::exception_ptr error = nullptr;
  bool done = false;
  std::unique_ptr<QwenAnswer> answer = nullptr;
};

/// One that is to be asked of a model; `key` names it where the rule draws.
TextJob text_job(std::vector<std::int32_t> ids, std::shared_ptr<SharedSight> seen,
                 const AnswerRule& rule, std::string_view key);

/// Held while models of text compute, each of which does so by all processors: two at once would
/// wait for each other's threads.
std::mutex& all_processors();

class AnswerBatch {
 public:
  /// `model` and `ends`, the tokens that end a text, must outlive it, and `turn`, which is held
  /// while it computes: of all threads one at a time does, since it does so by all processors.
  /// At most `together` texts are written at once: so many have their keys and values in memory.
  AnswerBatch(const VisionLanguageModel& model, const std::vector<std::int32_t>& ends,
              std::size_t together, std::mutex& turn)
      : model_(model), ends_(ends), together_(together), turn_(turn) {}

  /// Returns when all of `jobs` are done, as some may be before. What was thrown about one is its
  /// `error`; a stop is that of all.
  void run(std::span<TextJob> jobs);

 private:
  void lead(std::span<const TextJob> own);
  void fill();
  void begin(TextJob& job) const;
  std::unique_ptr<QwenAnswer> begin_seen(const TextJob& job, SharedSight& seen) const;
  void choose(std::span<TextJob* const> jobs) const;
  void finish(TextJob& job, std::exception_ptr error);

  const VisionLanguageModel& model_;
  const std::vector<std::int32_t>& ends_;
  const std::size_t together_;
  std::mutex& turn_;
  std::mutex mutex_;  // guards leading_, waiting_, and `done` of all jobs
  std::condition_variable changed_;
  bool leading_ = false;
  std::deque<TextJob*> waiting_;
  std::vector<TextJob*> active_;  // of the one who leads
};

}  // namespace vfm::models
