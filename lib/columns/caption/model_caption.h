// Captions a clip with a model that sees frames (models/vlm/caption_model.h).
//
// A clip is cut into windows of `window` frames, and the model gets a question for each window. If
// at least half a window of frames remains at the end, the remaining frames form a window.
// Otherwise they are added to the last window. Frames are sampled at `fps`. The texts of several
// windows are joined by spaces. So are answers to further questions (questions.h), but answers with
// a schema become a list with an element for each window.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/held_json.h"
#include "base/json_fwd.h"
#include "columns/caption/questions.h"
#include "columns/model_place.h"
#include "io/error_log.h"
#include "media/decode/hardware.h"
#include "models/vlm/caption_model.h"
#include "shard/sample.h"
#include "tensor/tensor.h"
#include "workers/stage_models.h"

namespace vfm::columns {

inline constexpr int kLeastWindow = 16;

class CaptionCosts;

struct ModelCaptionOptions {
  DType compute = DType::f32;
  Device device = Device::cpu;              ///< Device of this process or of the workers.
  workers::StageModels* workers = nullptr;  ///< Workers that run the model; may be null.
  bool int8 = false;                        ///< If true, weight matrices are rounded to 8 bits.
  double fps = 0;                           ///< Sampled frames a second, or 0 for the model's rate.
  int window = 256;                         ///< Length of a window in frames of the clip.
  std::optional<int> frame_tokens = {};     ///< Largest number of tokens for two frames.
  std::string video_prompt = "Describe in detail what this video shows and what happens in it.";
  std::string picture_prompt = "Describe in detail what this picture shows.";
  models::AnswerRule rule;
  Questions also;
  bool keep_tokens = false;       ///< If true, tokens are kept (written_caption.h).
  CaptionCosts* costs = nullptr;  ///< Collector of costs; may be null.

  ModelPlace place() const { return {device, workers}; }
  double fps_of(const models::CaptionModel& model) const { return fps > 0 ? fps : model.fps(); }
};

/// The frames from `begin` to before `end` of a clip.
struct FrameWindow {
  std::int64_t begin = 0, end = 0;
  bool operator==(const FrameWindow&) const = default;
};
/// count_windows() returns the number of windows in a clip, at least 1. nth_window() returns window
/// number `i`.
std::int64_t count_windows(std::int64_t frames, int window);
FrameWindow nth_window(std::int64_t frames, int window, std::int64_t i);
/// Returns how many of the first `answered` windows are the same in a clip of `promised` frames and
/// in a clip of `frames` frames.
std::int64_t same_windows(std::int64_t promised, std::int64_t frames, int window,
                          std::int64_t answered);

struct ModelCaption {
  std::string text;
  /// Null for a single window. For several windows, a list with an object for each window. "start"
  /// and "end" are seconds from the clip's begin. "caption" is the window's text, and "cut" is true
  /// if the text reached the token limit. The object also has the answers to further questions.
  /// "also_cut" has the names of further questions whose answers reached the limit.
  HeldJson windows;
  bool cut = false;  ///< For a single window: whether the text reached the token limit.
  /// Fields of KEY.json: the answers to further questions, and for a single window
  /// "caption_also_cut".
  HeldJson also = HeldJson::object();
  std::vector<io::Fault> faults;  ///< Faults of further questions; Fault::input is unset.
  std::int64_t cuts = 0;          ///< Number of texts that reached the token limit.
  /// Result of written_json(). Null if tokens are not kept, or if the clip has more than `window`
  /// frames.
  HeldJson written;
  HeldJson facts = HeldJson::object();  ///< Result of take_frames().
};

/// Captions a member of sample `key`. Throws Stopped. If the clip cannot be decoded or captioned,
/// throws Error, which names `where`.
ModelCaption caption_clip(const shard::Member& member, const std::string& where, const Json& known,
                          const std::string& key, const models::CaptionModel& model,
                          const ModelCaptionOptions& options,
                          const media::HardwareDecoder* hardware);

/// Adds the settings of `rule` that affect the captions.
void add_rule(Json& config, const models::AnswerRule& rule);
/// Returns the model's config() and the options that affect the captions.
Json model_caption_config(const models::CaptionModel& model, const ModelCaptionOptions& options);

}  // namespace vfm::columns
