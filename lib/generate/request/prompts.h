// The input of vfm-generate: prompts from arguments and lines. Each is a request for one clip.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/held_json.h"
#include "generate/request/clip_request.h"
#include "generate/request/given_files.h"
#include "generate/sampling/sample_options.h"
#include "io/input_lines.h"

namespace vfm::generate {

/// The sampling options that the user chose. The model decides the others.
struct SampleChoice {
  std::optional<models::Sampler> sampler;
  std::optional<int> steps;
  std::optional<double> sigma_min, sigma_max, shift, guidance, guidance_low, augment_sigma;
  std::vector<double> sigmas = {};  ///< empty: not chosen
  std::optional<models::SampledAs> as;
  std::optional<double> temperature, top_p;  ///< for autoregressive models

  /// Throws Error{usage} that names a choice that the model does not have. `networks` is the number
  /// of networks that it chooses by noise level.
  void check_for(bool autoregressive, models::Process process, int networks) const;
  /// Returns the model's own `options` with what is chosen; a guidance without `guidance_low` is
  /// for all noise levels. Throws Error{usage} if they do not go together.
  SampleOptions over(SampleOptions options) const;
};

/// A record's facts about the model that made its clip, and how it computed. A fact that is missing
/// is not checked.
struct MadeBy {
  std::optional<std::string> weights, model_hash, fp8, quantize, compute, parallel;
  std::string lora;  ///< JSON that is only compared; empty: no adapters
};

/// The options of one clip from a line or argument. Options of the command line are the defaults.
struct Prompt {
  std::string text, negative;  ///< UTF-8, may be empty
  std::uint64_t seed = 0;
  bool own_seed = false;                  ///< the line gives the seed
  int frames = 0, height = 0, width = 0;  ///< 0: as trained
  double fps = 0;                         ///< 0: as trained
  SampleChoice choice;
  GivenFiles files;
  std::string name;     ///< name of the files without extension; empty: made from text and address
  std::string encoder;  ///< name in FFmpeg; empty: the command line's
  std::optional<int> quality;  ///< quality of the mp4; none: the command line's
  MadeBy made_by;
  HeldJson extra;  ///< other keys of the line, copied to the manifest
};

/// The request of a prompt. `usual` gives the size and `fps` (0: unknown) the rate where the prompt
/// has none. Does not read its files.
ClipRequest request_of(const Prompt& prompt, const Extents& usual, double fps);

/// Parses one line. Bare text is the prompt. A line that begins with '{' is an object with "prompt"
/// and, to differ from `defaults`, any of negative_prompt, seed, name, frames, width, height, fps,
/// sampler, as, steps, guidance, guidance_low, sigma_min, sigma_max, sigmas, shift, temperature,
/// top_p, condition, condition_frames, augment_sigma, noise, embedding, negative_embedding,
/// encoder, quality, weights, model_hash, fp8, quantize, parallel, compute, lora. So a record of
/// the manifest, used as a line, asks for the same clip. The prompt may be missing if there is an
/// embedding. Other keys are kept in `extra`. Relative file names start at `folder`; "": the
/// working directory. Throws Error naming the key. Malformed UTF-8 becomes U+FFFD.
Prompt parse_prompt(std::string_view line, const Prompt& defaults, std::string_view where,
                    const std::string& folder = {});

/// The text of a prompt argument, TEXT or @FILE (io/text_or_file.h), as UTF-8. Throws Error{usage}.
std::string given_text(const std::string& argument);

/// Throws Error for names that are not plain file names ("a/b", ".x", control characters, over 200
/// bytes).
void check_clip_name(const std::string& name);

/// "A red fox, crossing!" -> "a-red-fox-crossing": at most 48 ASCII letters and digits. May be
/// empty.
std::string slug(std::string_view prompt);

/// A prompt of the input, or the error why there is none.
struct PromptLine {
  Prompt prompt;
  std::uint64_t place = 0;  ///< number in the input, from 0
  std::string where;  ///< for messages: "line 3 of standard input"
  std::string error;  ///< empty: there is a prompt
};

/// Reads the prompts of the command line (io/input_lines.h). Each argument is a prompt, or "-" for
/// lines on standard input. Thread-safety: one thread at a time.
class PromptReader {
 public:
  /// With `again`, leaves the lines of standard input, which must be a file, to the next reader.
  PromptReader(std::vector<std::string> arguments, Prompt defaults, bool again = false);
  /// The next prompt; nothing at the end. Throws Stopped.
  std::optional<PromptLine> next();
  /// Number of prompts; 0: not known, since prompts come from lines.
  std::size_t total() const { return total_; }
  const io::InputStreams& streams() const { return lines_.streams(); }

 private:
  std::size_t total_;
  std::uint64_t place_ = 0;
  Prompt defaults_;
  io::InputLines lines_;
};

}  // namespace vfm::generate
