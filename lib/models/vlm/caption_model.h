// A model that describes a video: frames and a prompt in, a text out. It is read from a Hugging
// Face folder of Qwen2.5-VL, SmolVLM, SmolVLM2 or Idefics3, with config.json, weights,
// tokenizer.json, chat template and preprocessor_config.json.
//
// Questions that are asked at the same time, by one call or from several threads, are answered
// together on all processors, so the weights are read once for one token of each. Still an answer
// does not depend on the other questions or their order. The video and prompt of a question are
// computed by themselves. Later tokens are rows of products whose sums do not depend on the other
// rows (ops/matmul/few_rows.h).
// On a GPU all weights are in its memory from the opening on.
// Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "models/encoder/picture_resize.h"
#include "models/vlm/answer_cost.h"
#include "models/vlm/token_choice.h"
#include "tensor/tensor.h"

namespace vfm::models {

/// The most answers that are written together.
inline constexpr int kAnswersTogether = 8;

/// Settings for writing an answer.
struct AnswerRule {
  TokenChoice choice{.repetition_penalty = 1.05};
  int most_tokens = 512;   ///< at least 1
  std::uint64_t seed = 0;  ///< seed of random choices, together with the question's key
};

/// Some frames of a video, as CaptionModel::prepare() made them, or one still picture.
struct SeenFrames {
  std::vector<std::vector<std::uint8_t>> frames;
  int width = 0, height = 0;  ///< size of the frames before prepare(), pixels
  bool still = false;
  double fps = 2;                  ///< frames per second that were taken
  std::vector<double> times = {};  ///< times of a video's frames, seconds from its beginning
  double seconds = 0;              ///< length of the whole video
};

/// One question to a model.
struct Question {
  /// The vision tower runs once for questions with the same `seen`.
  const SeenFrames* seen = nullptr;
  std::string_view prompt;
  AnswerRule rule;
  std::string_view key;      ///< names the question for random choices
  bool keep_tokens = false;  ///< the answer includes its tokens
};

struct Answer {
  std::string text;
  std::int64_t prompt_tokens = 0, tokens = 0;
  bool cut = false;                    ///< the text did not end by itself
  std::exception_ptr error = nullptr;  ///< why there is no text; only from answer_many()
  /// The tokens, if they are kept and none stands for a picture; and the log-probability of each.
  /// It equals that of log_probabilities() except for the last bits, since a single token is summed
  /// in another order than many.
  std::vector<std::int32_t> ids = {};
  std::vector<double> log_probabilities = {};
};

/// The same model in another place, such as another process. It answers in place of a CaptionModel,
/// with the same results (workers/captions.h). Members do what CaptionModel's members of these
/// names do. Thread-safety: any thread.
class AnswersElsewhere {
 public:
  virtual ~AnswersElsewhere() = default;
  virtual std::vector<Answer> answer_many(std::span<const Question> questions) const = 0;
  virtual std::vector<double> log_probabilities(const SeenFrames* seen, std::string_view prompt,
                                                std::span<const std::int32_t> said) const = 0;
};

class CaptionModel {
 public:
  /// `compute` is f32 or bf16. `frame_tokens` is the most tokens of a pair of frames, for models
  /// that leave it open. With `int8` matrices are rounded to 8 bits. The device is cpu or cuda. If
  /// `elsewhere` is not null, it computes instead, and no weights are opened here. Throws
  /// Error{usage} for a folder that does not exist or is not supported; GpuError.
  CaptionModel(const std::string& folder, DType compute, std::optional<int> frame_tokens = {},
               bool int8 = false, Device device = Device::cpu,
               std::unique_ptr<const AnswersElsewhere> elsewhere = nullptr);
  ~CaptionModel();

  Device device() const;
  /// Default frames per second.
  double fps() const;
  /// The numbers of the frames to show, from a video of `frames` frames with `rate` frames per
  /// second, at `fps` frames per second.
  std::vector<std::int64_t> plan(std::int64_t frames, double rate, double fps) const;
  /// Prepares one of `frames` frames of a video, or a still picture if `frames` is 0, as the model
  /// sees it, in little memory. Throws Error for a picture of an impossible shape.
  std::vector<std::uint8_t> prepare(const PictureView& picture, std::size_t frames) const;
  /// Throws Error{usage} for a prompt that the model's chat does not allow.
  void check_prompt(std::string_view prompt) const;
  /// Answers in the order of the questions. An error of one question is its `error`: an Error if
  /// its frames do not fit or need more tokens than the model takes. Stopped is the error of all.
  std::vector<Answer> answer_many(std::span<const Question> questions) const;
  /// Answers one question, and throws its error.
  Answer answer(const SeenFrames& seen, std::string_view prompt, const AnswerRule& rule,
                std::string_view key) const;
  /// The natural logarithm of the probability of each token of `text` after the tokens before it.
  /// `text` is the answer to `prompt` about `seen`; null: in a message without a picture. Without
  /// temperature or penalty, in one pass over all tokens. Throws what answer() throws, and Error
  /// for a text with a token that stands for a picture.
  std::vector<double> log_probabilities(const SeenFrames* seen, std::string_view prompt,
                                        std::string_view text) const;
  /// The same for tokens, as in Answer::ids.
  std::vector<double> log_probabilities(const SeenFrames* seen, std::string_view prompt,
                                        std::span<const std::int32_t> said) const;
  /// Counted FLOPs of log_probabilities() of `said` tokens. Throws what log_probabilities() throws.
  double pass_flops(const SeenFrames* seen, std::string_view prompt, std::size_t said) const;
  /// The text of an answer's tokens. Numbers without a token are left out.
  std::string text(std::span<const std::int32_t> ids) const;
  /// The counted cost of an answer with `written` tokens. Further questions about the same frames
  /// do not need `looked` and `head` again. Throws what answer() throws.
  AnswerCost cost(const Question& question, std::int64_t written) const;
  WeightCost weights() const;
  /// Description of the model, stored with its texts: {"name": "qwen2_5_vl", "path": …, "hash": …,
  /// "compute": "f32", "input": {…}}. There may also be "device": "cuda" and "weights": "int8", or
  /// the stored formats of blocks, "Q4_K Q6_K". Models whose descriptions are equal, except for
  /// "path", write the same texts.
  Json config() const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

}  // namespace vfm::models
