// Interface of a family of models for CaptionModel: which frames to take, how to prepare them, and
// the tokens of the prompt. Each family has one implementation; everything else is shared.
// Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "models/folder/hf_folder.h"
#include "models/vlm/caption_model.h"
#include "models/vlm/chat_words.h"
#include "models/vlm/vision_language.h"

namespace vfm::models {

/// How the model of a folder is opened.
struct OpenCaptioner {
  DType compute = DType::f32;
  std::optional<int> frame_tokens;  ///< most tokens of a pair of frames; none: the model's
  bool int8 = false;
  Device device = Device::cpu;  ///< cpu, cuda, or meta, where only headers of weights are read
};

class CaptionFamily {
 public:
  virtual ~CaptionFamily() = default;

  virtual const VisionLanguageModel& model() const = 0;
  virtual const ChatWords& words() const = 0;
  /// Tokens that end a text if the folder's ChatWords have none.
  virtual std::vector<std::int32_t> ends() const = 0;
  /// Most tokens of a prompt with its answer.
  virtual std::int64_t positions() const = 0;
  /// Default frames per second.
  virtual double fps() const = 0;
  /// CaptionModel::plan().
  virtual std::vector<std::int64_t> plan(std::int64_t frames, double rate, double fps) const = 0;
  /// CaptionModel::prepare().
  virtual std::vector<std::uint8_t> prepare(const PictureView& picture,
                                            std::size_t frames) const = 0;
  /// CaptionModel::check_prompt().
  virtual void check_prompt(std::string_view prompt) const = 0;
  /// The tokens of a prompt, with one token for each part of `seen`. Throws Error if `seen` is not
  /// a valid video; Error{usage} for a prompt that the chat does not allow.
  virtual std::vector<std::int32_t> prompt(const SeenFrames& seen, std::string_view text) const = 0;
  /// The input of the vision tower.
  virtual QwenPicture picture(const SeenFrames& seen) const = 0;
  /// All settings that affect pixels.
  virtual Json input() const = 0;
};

/// Opens a folder of Qwen2.5-VL's type, or of SmolVLM's or Idefics3's type. `folder` must outlive
/// the result. Throws Error{usage} for what is not supported.
std::unique_ptr<CaptionFamily> make_qwen_captioner(const HfComponent& folder,
                                                   const OpenCaptioner& how);
std::unique_ptr<CaptionFamily> make_smol_captioner(const HfComponent& folder,
                                                   const OpenCaptioner& how);

}  // namespace vfm::models
