// Captions a clip by a model that sees it (models/vlm/caption_model.h), with one question for each
// window.
//
// A clip is cut into windows of `window` frames. A rest of at least half a window is a window; a
// shorter one belongs to the window before it. Frames of each window are taken at `fps`, and are in
// memory only until it is answered. The captions of windows, and answers to further questions
// (questions.h), are joined by a space; answers that fit a schema become a list with an element for
// each window. Thread-safety: any thread.
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

/// How a model is asked.
struct ModelCaptionOptions {
  DType compute = DType::f32;
  Device device = Device::cpu;            ///< or cuda; workers have their own
  workers::StageModels* workers = nullptr;  ///< that compute instead of this process; or null
  bool int8 = false;                      ///< whether matrices are rounded to 8 bits
  double fps = 0;                         ///< frames a second that it sees; 0: the model's own
  int window = 256;                       ///< frames of the clip
  std::optional<int> frame_tokens = {};   ///< most tokens for two frames
  std::string video_prompt = "Describe in detail what this video shows and what happens in it.";
  std::string picture_prompt = "Describe in detail what this picture shows.";
  models::AnswerRule rule;
  Questions also;                 ///< asked beside the prompt
  bool keep_tokens = false;       ///< keeps them for scores (written_caption.h)
  CaptionCosts* costs = nullptr;  ///< collects the questions' costs; may be null

  ModelPlace place() const { return {device, workers}; }
  double fps_of(const models::CaptionModel& model) const { return fps > 0 ? fps : model.fps(); }
};

/// Frames of a clip, from `begin` to before `end`.
struct FrameWindow {
  std::int64_t begin = 0, end = 0;
  bool operator==(const FrameWindow&) const = default;
};
/// The number of windows in a clip of `frames`, at least 1, and window `i`. They are not listed,
/// since a container may promise any number of frames.
std::int64_t count_windows(std::int64_t frames, int window);
FrameWindow nth_window(std::int64_t frames, int window, std::int64_t i);
/// For a container that promised more frames than the clip has: how many of the first `answered`
/// windows are also the clip's. They need not be asked about again.
std::int64_t same_windows(std::int64_t promised, std::int64_t frames, int window,
                          std::int64_t answered);

struct ModelCaption {
  std::string text;
  /// For several windows a list of {"start", "end", "caption"}, in seconds from the clip's begin,
  /// with "cut" where a text reached its most tokens, the fields of further questions, and
  /// "also_cut", the names of those whose answers were cut; else null.
  HeldJson windows;
  bool cut = false;  ///< the text of the only window reached its most tokens
  HeldJson also =
      HeldJson::object();  ///< fields of further questions; of one window "caption_also_cut"
  std::vector<io::Fault> faults;    ///< of further questions; without an input
  std::int64_t cuts = 0;            ///< texts that reached their most tokens, of any question
  HeldJson
      written;  ///< written_json() where one window's text is all, and tokens are kept; else null
  HeldJson facts = HeldJson::object();  ///< as take_frames() returns them
};

/// Captions a sample's member. `key` is the sample's. Throws Error, naming `where`, for a clip that
/// cannot be decoded or asked about; Stopped.
ModelCaption caption_clip(const shard::Member& member, const std::string& where, const Json& known,
                          const std::string& key, const models::CaptionModel& model,
                          const ModelCaptionOptions& options,
                          const media::HardwareDecoder* hardware);

/// Adds the parts of a rule that decide the texts.
void add_rule(Json& config, const models::AnswerRule& rule);
/// All that decides the texts: the model's config() and the options.
Json model_caption_config(const models::CaptionModel& model, const ModelCaptionOptions& options);

}  // namespace vfm::columns
