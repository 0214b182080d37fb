// What a CaptionModel asks of a family of models: which frames, what becomes of them, and the
// prompt's tokens. One implementation a family; everything else is theirs together.
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

/// A folder's model is opened in this way.
struct OpenCaptioner {
  DType compute = DType::f32;
  std::optional<int> frame_tokens;  ///< of a pair of frames, at most
  bool int8 = false;
  Device device = Device::cpu;  ///< cuda; or meta, where only headers of weights are read
};

class CaptionFamily {
 public:
  virtual ~CaptionFamily() = default;

  virtual const VisionLanguageModel& model() const = 0;
  virtual const ChatWords& words() const = 0;
  /// Tokens that end a text where the folder's ChatWords have none.
  virtual std::vector<std::int32_t> ends() const = 0;
  /// Tokens of a prompt and its answer, at most.
  virtual std::int64_t positions() const = 0;
  /// Frames a second where nobody asks for others.
  virtual double fps() const = 0;
  /// CaptionModel::plan().
  virtual std::vector<std::int64_t> plan(std::int64_t frames, double rate, double fps) const = 0;
  /// CaptionModel::prepare().
  virtual std::vector<std::uint8_t> prepare(const PictureView& picture,
                                            std::size_t frames) const = 0;
  /// CaptionModel::check_prompt().
  virtual void check_prompt(std::string_view prompt) const = 0;
  /// A prompt with a token for each part of what is seen. Throws Error for what no video is;
  /// Error{usage} for a prompt that has no meaning.
  virtual std::vector<std::int32_t> prompt(const SeenFrames& seen, std::string_view text) const = 0;
  /// What the model looks at.
  virtual QwenPicture picture(const SeenFrames& seen) const = 0;
  /// What decides pixels.
  virtual Json input() const = 0;
};

/// Of a folder, which must outlive it, of the types of Qwen2.5-VL, and of SmolVLM and Idefics3.
/// Throw Error{usage} for what is not supported.
std::unique_ptr<CaptionFamily> make_qwen_captioner(const HfComponent& folder,
                                                   const OpenCaptioner& how);
std::unique_ptr<CaptionFamily> make_smol_captioner(const HfComponent& folder,
                                                   const OpenCaptioner& how);

}  // namespace vfm::models
