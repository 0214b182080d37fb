// The input of vfm-generate: prompts from arguments and lines, each a request for one clip.
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
#include "generate/sampling/sampler.h"
#include "io/input_lines.h"

namespace vfm::generate {

/// The sampling options that the user chose; for the others the model decides.
struct SampleChoice {
  std::optional<Sampler> sampler;
  std::optional<int> steps;
  std::optional<double> sigma_min, sigma_max, shift, guidance, augment_sigma;
  std::vector<double> sigmas = {};           ///< empty: not chosen
  std::optional<double> temperature, top_p;  ///< of autoregressive models

  /// Throws Error{usage} naming a choice that the model does not have; `own` is its own sampler.
  void check_for(bool autoregressive, Sampler own) const;
  SampleOptions over(SampleOptions options) const;
};

/// A record's facts about the model that made its clip, and its computation; nothing: any is
/// accepted.
struct MadeBy {
  std::optional<std::string> weights, model_hash, fp8, quantize, compute, parallel;
  std::string lora;  ///< JSON, only compared; empty: no adapters
};

/// The options of one clip from a line or argument, with the command line's as defaults.
struct Prompt {
  std::string text, negative;  ///< UTF-8, may be empty
  std::uint64_t seed = 0;
  bool own_seed = false;                  ///< the line says it
  int frames = 0, height = 0, width = 0;  ///< 0: as trained
  double fps = 0;                         ///< 0: as trained
  SampleChoice choice;
  GivenFiles files;
  std::string name;            ///< without extension; empty: made from text and address
  std::string encoder;         ///< FFmpeg's name; empty: that of the command line
  std::optional<int> quality;  ///< of the mp4; nothing: that of the command line
  MadeBy made_by;
  HeldJson extra;  ///< the line's other keys, passed through to the manifest
};

/// The request of a prompt, with `usual` size and rate `fps` (0: unknown) where it names none. Its
/// files are not read.
ClipRequest request_of(const Prompt& prompt, const Extents& usual, double fps);

/// One line: bare text is the prompt; a line that begins with '{' is an object with "prompt" and,
/// if it differs from `defaults`, any of negative_prompt, seed, name, frames, width, height, fps,
/// sampler, steps, guidance, sigma_min, sigma_max, sigmas, shift, temperature, top_p, condition,
/// condition_frames, augment_sigma, noise, embedding, negative_embedding, encoder, quality,
/// weights, model_hash, fp8, quantize, parallel, compute, lora. So a record of the manifest, given
/// back, asks for the same clip. Without a prompt it is empty if there is an embedding. Other keys
/// are kept in `extra`. The files that it names are named from `folder`; "": from the working
/// directory. Throws Error naming the key. Malformed UTF-8 becomes U+FFFD.
Prompt parse_prompt(std::string_view line, const Prompt& defaults, std::string_view where,
                    const std::string& folder = {});

/// A prompt as the command line gives it, TEXT or @FILE (io/text_or_file.h), in UTF-8. Throws
/// Error{usage}.
std::string given_text(const std::string& argument);

/// Refuses names that are not plain file names ("a/b", ".x", control characters, over 200 bytes).
void check_clip_name(const std::string& name);

/// "A red fox, crossing!" -> "a-red-fox-crossing": letters and digits of ASCII, at most 48; may be
/// empty.
std::string slug(std::string_view prompt);

/// A prompt of the input, or why there is none.
struct PromptLine {
  Prompt prompt;
  std::string where;   ///< for messages: "line 3 of standard input"
  std::string error;   ///< empty: there is one
  std::string text;    ///< as it stands there
  bool as_is = false;  ///< an argument: no JSON, whatever it looks like
  std::string folder;  ///< from which it names files; empty: the working directory
};
/// Parses a line for PromptReader: `line` has text, where, as_is and folder.
PromptLine read_prompt(PromptLine line, const Prompt& defaults);

/// The prompts of the command line (io/input_lines.h): each argument is one, or "-" for lines on
/// standard input. Thread-safety: one thread at a time.
class PromptReader {
 public:
  PromptReader(std::vector<std::string> arguments, Prompt defaults);
  /// Nothing at the end. Throws Stopped.
  std::optional<PromptLine> next();
  /// How many prompts there are; 0: not known, for there are lines.
  std::size_t total() const { return total_; }
  const io::InputStreams& streams() const { return lines_.streams(); }

 private:
  std::size_t total_;
  Prompt defaults_;
  io::InputLines lines_;
};

}  // namespace vfm::generate
