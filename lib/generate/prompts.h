// What vfm-generate is asked for: prompts from arguments and lines, each a whole order for one
// clip.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "generate/generator.h"
#include "io/input_lines.h"

namespace vfm::generate {

/// What is chosen of the way to sample; the rest is the model's own.
struct SampleChoice {
  std::optional<generate::Sampler> sampler;
  std::optional<int> steps;
  std::optional<double> sigma_min, sigma_max, shift, guidance, augment_sigma;
  std::optional<double> temperature, top_p;  ///< of autoregressive models

  /// Throws Error{usage} naming what is said that means nothing to such a model; `own` is its own
  /// sampler.
  void check_for(bool autoregressive, generate::Sampler own) const;
  generate::SampleOptions over(generate::SampleOptions options) const;
};

/// One clip to make: all that decides its pixels, and its name.
struct ClipOrder {
  generate::ClipRequest request;
  SampleChoice choice;
  generate::SampleOptions sampling;     ///< choice over the model's own, once that is known
  std::string condition;                ///< image or video that the clip begins with; empty: none
  std::optional<int> condition_frames;  ///< of a video: so many of its last; nothing: 9 or 1
  std::string noise;                    ///< file with the first noise; empty: by the seed
  /// Files with embeddings of the prompt and the negative prompt; empty: the text is encoded.
  std::string embedding, negative_embedding;
  std::string name;  ///< without extension; empty: made from prompt and address
  Json extra;        ///< the line's other keys, passed through to the manifest
  bool own_seed = false;
  std::string encoder;         ///< FFmpeg's name; empty: that of the command line
  std::optional<int> quality;  ///< of the mp4; nothing: that of the command line
  /// What a record says of the weights that made it, and of how it computed; nothing: any will do.
  std::optional<std::string> weights, model_hash, fp8, compute;
  Json lora = nullptr;  ///< what a record says of adapters; null: there were none
  /// What a record says of the files' contents; nothing: any will do.
  std::optional<std::string> condition_xxh3, noise_xxh3, embedding_xxh3, negative_embedding_xxh3;
  std::string where;  ///< for messages: "line 3 of standard input"
  std::string error;  ///< why the line is no order; empty if it is one
};

/// One line: bare text is the prompt; a line that begins with '{' is an object with "prompt" and,
/// if it differs from `defaults`, any of negative_prompt, seed, name, frames, width, height, fps,
/// sampler, steps, guidance, sigma_min, sigma_max, shift, temperature, top_p, condition,
/// condition_frames, augment_sigma, noise, embedding, negative_embedding, encoder, quality,
/// weights, model_hash, fp8, compute, lora. So a record of the manifest, given back, orders the
/// same clip. Without a prompt it is empty if there is an embedding. Other keys are kept in
/// `extra`. Throws Error naming the key. Pure; malformed UTF-8 becomes U+FFFD.
ClipOrder parse_prompt(std::string_view line, const ClipOrder& defaults, std::string_view where);

/// A negative prompt as the command line gives it: "@FILE" is what stands in FILE (UTF-8, without
/// white space at its ends), anything else the text itself. Throws Error{usage} for a file that
/// cannot be read, is empty or beyond 1 MiB.
std::string negative_text(const std::string& argument);

/// Refuses names that are not plain file names ("a/b", ".x", control characters, over 200 bytes).
void check_clip_name(const std::string& name);

/// "A red fox, crossing!" -> "a-red-fox-crossing": letters and digits of ASCII, at most 48; may be
/// empty.
std::string slug(std::string_view prompt);

/// The orders of the command line (io/input_lines.h): each argument is a prompt, or stands for
/// lines on standard input. Thread-safety: one thread at a time.
class PromptReader {
 public:
  PromptReader(std::vector<std::string> arguments, ClipOrder defaults);
  /// The next order, with an error if it is none, or nothing at the end. Throws Stopped.
  std::optional<ClipOrder> next();
  /// How many orders there are; 0: not known, for there are lines.
  std::size_t total() const { return total_; }
  const io::InputStreams& streams() const { return lines_.streams(); }

 private:
  std::size_t total_;
  ClipOrder defaults_;
  io::InputLines lines_;
};

}  // namespace vfm::generate
