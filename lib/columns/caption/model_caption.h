// Captions a clip with a model that sees its frames (models/vlm/caption_model.h), by one question
// for each window.
//
// A clip is cut into windows of `window` frames. Remaining frames of at least half a window form a
// window. Fewer remaining frames are added to the last window. Frames are sampled at `fps`, and are
// freed when their window is answered. The texts of several windows, also answers to further
// questions (questions.h), are joined by spaces. Answers with a schema become a list, one element a
// window. Thread-safety: any thread.
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

/// Settings of a captioning model.
struct ModelCaptionOptions {
  DType compute = DType::f32;
  Device device = Device::cpu;              ///< cpu or cuda; with workers: the workers'
  workers::StageModels* workers = nullptr;  ///< run the model; null: this process does
  bool int8 = false;                        ///< round weight matrices to 8 bits
  double fps = 0;                           ///< frames sampled a second; 0: the model's rate
  int window = 256;                         ///< length, in frames of the clip
  std::optional<int> frame_tokens = {};     ///< most tokens for two frames
  std::string video_prompt = "Describe in detail what this video shows and what happens in it.";
  std::string picture_prompt = "Describe in detail what this picture shows.";
  models::AnswerRule rule;
  Questions also;                 ///< further questions
  bool keep_tokens = false;       ///< keep tokens for scores (written_caption.h)
  CaptionCosts* costs = nullptr;  ///< collects costs; may be null

  ModelPlace place() const { return {device, workers}; }
  double fps_of(const models::CaptionModel& model) const { return fps > 0 ? fps : model.fps(); }
};

/// The frames from `begin` to before `end` of a clip.
struct FrameWindow {
  std::int64_t begin = 0, end = 0;
  bool operator==(const FrameWindow&) const = default;
};
/// These functions return the number of windows in a clip, at least 1, and window number `i`.
std::int64_t count_windows(std::int64_t frames, int window);
FrameWindow nth_window(std::int64_t frames, int window, std::int64_t i);
/// If the container promised more frames than the clip has, returns how many of the first
/// `answered` windows are the same for both lengths. The answers of these windows stay valid.
std::int64_t same_windows(std::int64_t promised, std::int64_t frames, int window,
                          std::int64_t answered);

struct ModelCaption {
  std::string text;
  /// For several windows a list of {"start", "end", "caption"} (seconds from the clip's begin),
  /// with fields of further questions. "cut": the caption reached the token limit; "also_cut":
  /// names of further questions whose answers reached the limit. The value is null for a single
  /// window.
  HeldJson windows;
  bool cut = false;  ///< the only window's text reached the token limit
  HeldJson also =
      HeldJson::object();  ///< fields of further questions; for one window "caption_also_cut"
  std::vector<io::Fault> faults;  ///< faults of further questions, without Fault::input
  std::int64_t cuts = 0;          ///< texts of all questions that reached the token limit
  HeldJson
      /// written_json(), if tokens are kept and the clip has at most `window` frames; else null
      written;
  HeldJson facts = HeldJson::object();  ///< result of take_frames()
};

/// Captions a member of sample `key`. Throws Error, which names `where`, if the clip cannot be
/// decoded or captioned; Stopped.
ModelCaption caption_clip(const shard::Member& member, const std::string& where, const Json& known,
                          const std::string& key, const models::CaptionModel& model,
                          const ModelCaptionOptions& options,
                          const media::HardwareDecoder* hardware);

/// Adds the settings of `rule` that decide the texts.
void add_rule(Json& config, const models::AnswerRule& rule);
/// Returns all that decides the texts: the model's config() and the options.
Json model_caption_config(const models::CaptionModel& model, const ModelCaptionOptions& options);

}  // namespace vfm::columns
