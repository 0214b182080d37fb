// Generates the answers to several questions to one model together. Questions of several threads
// share the steps of the decoder, so the weights are read once for one token of each question.
//
// No background thread exists. One of the threads that wait for an answer computes for all; when
// its own answers are done, another takes over. A later question joins as soon as there is room.
// The prompt of a question is computed by itself, first up to the words after the video, then these
// words. So questions about one video share everything except their words. Which questions run
// together changes no bit of an answer (ops/matmul/few_rows.h, ops/attention/newest_query.h).
// Thread-safety: any thread.
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

/// The pictures or video that several questions are about. The vision tower runs when the first
/// question begins; the result is freed with the last question.
struct SharedSight {
  std::function<QwenPicture()> open;
  QwenSight sight = {};
  Tensor tokens = {};                           ///< result of the model's look(); undefined before
  std::vector<std::int32_t> ids = {};           ///< qwen_head() of the prompt that `head` has read
  std::unique_ptr<const QwenAnswer> head = {};  ///< null if only one question is asked
};

/// A question and its answer.
struct TextJob {
  std::vector<std::int32_t> ids;      ///< the prompt, followed by the tokens written so far
  std::shared_ptr<SharedSight> seen;  ///< null: no picture or video
  TokenChoice choice;
  int most_tokens = 0;
  std::optional<Random> random;
  bool weigh = false;  ///< compute `log_probabilities`

  std::vector<std::int32_t> written = {};
  /// One per token of `written`, from the model's logits without temperature or penalty.
  std::vector<double> log_probabilities = {};
  bool cut = true;  ///< the text did not end by itself
  std::exception_ptr error = nullptr;
  bool done = false;
  std::unique_ptr<QwenAnswer> answer = nullptr;
};

/// Makes the job of a question. `key` names the question for the random numbers of `rule`.
TextJob text_job(std::vector<std::int32_t> ids, std::shared_ptr<SharedSight> seen,
                 const AnswerRule& rule, std::string_view key);

/// Locked while a text model computes, since each uses all processors: two at once would wait for
/// each other's threads.
std::mutex& all_processors();

class AnswerBatch {
 public:
  /// `ends` are the tokens that end a text. `turn` is locked while a thread computes, since each
  /// computation uses all processors. At most `together` texts are written at once, and have keys
  /// and values in memory. `model`, `ends` and `turn` must outlive this object.
  AnswerBatch(const VisionLanguageModel& model, const std::vector<std::int32_t>& ends,
              std::size_t together, std::mutex& turn)
      : model_(model), ends_(ends), together_(together), turn_(turn) {}

  /// Returns when all of `jobs` are done; some may be done before the call. An exception about one
  /// job is its `error`; a stop is the error of all.
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
  std::vector<TextJob*> active_;  // jobs of the thread that computes
};

}  // namespace vfm::models
