// A model that says what a video shows: frames and a prompt in, a text out. From a folder as
// Hugging Face has them, of a Qwen2.5-VL, SmolVLM, SmolVLM2 or Idefics3: config.json, weights,
// tokenizer.json, chat template and preprocessor_config.json beside each other.
//
// Questions that are asked at the same time, by one call or from several threads, are answered
// together, by all processors: for a token of each of them the weights are read once. Yet a text
// does not depend on what else is asked, or in which order: video and prompt of a question are
// computed by themselves, and of the tokens after them each is a row of products that sum a row in
// the same order whatever other rows there are (ops/matmul/few_rows.h).
// On a GPU all weights are there, in memory, from when it is opened.
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

/// Answers that are written together, at most.
inline constexpr int kAnswersTogether = 8;

/// How an answer is written.
struct AnswerRule {
  TokenChoice choice{.repetition_penalty = 1.05};
  int most_tokens = 512;   ///< at least 1
  std::uint64_t seed = 0;  ///< of what is drawn, with the question's key
};

/// Some frames of a video, as CaptionModel::prepare() made them, or one still picture.
struct SeenFrames {
  std::vector<std::vector<std::uint8_t>> frames;
  int width = 0, height = 0;  ///< of the frames before prepare()
  bool still = false;
  double fps = 2;                  ///< at which they were taken
  std::vector<double> times = {};  ///< of a video's frames, in seconds from its begin
  double seconds = 0;              ///< of all of the video
};

/// What a model is asked.
struct Question {
  const SeenFrames* seen = nullptr;  ///< of several about one and the same it is looked at once
  std::string_view prompt;
  AnswerRule rule;
  std::string_view key;      ///< names the question where the rule draws
  bool keep_tokens = false;  ///< whether the answer has its tokens
};

struct Answer {
  std::string text;
  std::int64_t prompt_tokens = 0, tokens = 0;
  bool cut = false;                    ///< it did not end by itself
  std::exception_ptr error = nullptr;  ///< why there is no text; of answer_many() alone
  /// Where they are kept, and none stands for a picture: the tokens, and of each what
  /// log_probabilities() says of it, but for the last bits: a token alone is summed in another
  /// order than one of many.
  std::vector<std::int32_t> ids = {};
  std::vector<double> log_probabilities = {};
};

/// The same model in another place, which computes what a CaptionModel is asked, with the same
/// results (workers/captions.h). As CaptionModel's members of these names; any thread.
class AnswersElsewhere {
 public:
  virtual ~AnswersElsewhere() = default;
  virtual std::vector<Answer> answer_many(std::span<const Question> questions) const = 0;
  virtual std::vector<double> log_probabilities(const SeenFrames* seen, std::string_view prompt,
                                                std::span<const std::int32_t> said) const = 0;
};

class CaptionModel {
 public:
  /// `compute`: f32 or bf16; `frame_tokens`: what a pair of frames may become, at most, where the
  /// model leaves that open; `int8`: matrices are rounded to 8 bits; `device`: cpu or cuda;
  /// `elsewhere`: what computes there instead, with weights that are then not opened here. Throws
  /// Error{usage} for a folder that is not there, or holds what is not supported; GpuError.
  CaptionModel(const std::string& folder, DType compute, std::optional<int> frame_tokens = {},
               bool int8 = false, Device device = Device::cpu,
               std::unique_ptr<const AnswersElsewhere> elsewhere = nullptr);
  ~CaptionModel();

  Device device() const;
  /// Frames a second that it is shown where nobody asks for others.
  double fps() const;
  /// The numbers of the frames of `frames` at `rate` a second that it is shown at `fps`.
  std::vector<std::int64_t> plan(std::int64_t frames, double rate, double fps) const;
  /// What it is shown of one of `frames` frames, in little memory; of a still picture where that is
  /// 0. Throws Error for a picture of an impossible shape.
  std::vector<std::uint8_t> prepare(const PictureView& picture, std::size_t frames) const;
  /// Throws Error{usage} if a prompt has no meaning in the model's chat.
  void check_prompt(std::string_view prompt) const;
  /// In the order of the questions. What goes wrong with one is its `error`: an Error where what is
  /// seen does not fit, or comes to more tokens than the model takes; Stopped is that of all.
  std::vector<Answer> answer_many(std::span<const Question> questions) const;
  /// Of one, whose error it throws.
  Answer answer(const SeenFrames& seen, std::string_view prompt, const AnswerRule& rule,
                std::string_view key) const;
  /// Of each token of `text`, the natural logarithm of its probability after those before it, where
  /// `text` is the answer to `prompt` about what is seen; null: about nothing, in a message without
  /// a picture. As the model has it, without temperature or penalty. One pass over all tokens.
  /// Throws what answer() throws, and Error for a text with a token that stands for a picture.
  std::vector<double> log_probabilities(const SeenFrames* seen, std::string_view prompt,
                                        std::string_view text) const;
  /// The same of tokens, as Answer has them.
  std::vector<double> log_probabilities(const SeenFrames* seen, std::string_view prompt,
                                        std::span<const std::int32_t> said) const;
  /// FLOPs of that of `said` tokens, counted. Throws what log_probabilities() throws.
  double pass_flops(const SeenFrames* seen, std::string_view prompt, std::size_t said) const;
  /// The text of an answer's tokens; numbers that no token has are left out.
  std::string text(std::span<const std::int32_t> ids) const;
  /// What an answer of `written` tokens to the question costs, counted; of further questions about
  /// the same frames `looked` and `head` are spent once. Throws what answer() throws.
  AnswerCost cost(const Question& question, std::int64_t written) const;
  WeightCost weights() const;
  /// What it is, to be stored with its texts: {"name": "qwen2_5_vl", "path": …, "hash": …,
  /// "compute": "f32", "input": {…}}, "device": "cuda" where it is on a GPU, and "weights": "int8"
  /// where they are, or the formats of blocks that are stored, "Q4_K Q6_K". Two with the same, but
  /// for "path", write the same.
  Json config() const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

}  // namespace vfm::models
