// The caption of a clip by a model that sees it (models/vlm/caption_model.h): window by window,
// each a question of its own.
//
// A clip is cut into windows of `window` frames; what is left at the end is a window of its own
// where it is half as long or longer, else it belongs to the one before it. Of each window frames
// are taken at `fps`. A window's frames are in memory until it is answered, and no others. The
// captions of windows are joined by a space. So are those of further questions (questions.h); what
// fits a schema is, of several windows, a list with a place for each. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/held_json.h"
#include "base/json_fwd.h"
#include "cards/stage_models.h"
#include "columns/model_place.h"
#include "columns/questions.h"
#include "media/hardware.h"
#include "models/vlm/caption_model.h"
#include "shard/sample.h"
#include "tensor/tensor.h"

namespace vfm::columns {

inline constexpr int kLeastWindow = 16;

class CaptionCosts;

/// How a model is asked.
struct ModelCaptionOptions {
  DType compute = DType::f32;
  Device device = Device::cpu;            ///< or cuda; of workers theirs
  cards::StageModels* workers = nullptr;  ///< that compute instead of this process; or null
  bool int8 = false;                      ///< matrices are rounded to 8 bits
  double fps = 0;                         ///< of the frames that it sees; 0: as the model has it
  int window = 256;                       ///< frames of the clip
  std::optional<int> frame_tokens = {};   ///< of two frames, at most
  std::string video_prompt = "Describe in detail what this video shows and what happens in it.";
  std::string picture_prompt = "Describe in detail what this picture shows.";
  models::AnswerRule rule;
  Questions also;                 ///< asked beside it
  bool keep_tokens = false;       ///< for scores (written_caption.h)
  CaptionCosts* costs = nullptr;  ///< is told what questions cost; null: nobody asks

  ModelPlace place() const { return {device, workers}; }
  double fps_of(const models::CaptionModel& model) const { return fps > 0 ? fps : model.fps(); }
};

/// Frames of a clip, from `begin` to before `end`.
struct FrameWindow {
  std::int64_t begin = 0, end = 0;
  bool operator==(const FrameWindow&) const = default;
};
/// How many a clip of `frames` has, at least 1, and which one number `i` is: not a list of them,
/// since a container may promise any number of frames.
std::int64_t count_windows(std::int64_t frames, int window);
FrameWindow nth_window(std::int64_t frames, int window, std::int64_t i);
/// A container promised more frames than the clip has: how many of the windows that were `answered`
/// by then, the first ones, are windows of the clip. They need not be asked about again.
std::int64_t same_windows(std::int64_t promised, std::int64_t frames, int window,
                          std::int64_t answered);

struct ModelCaption {
  std::string text;
  /// Of several windows {"start", "end", "caption"}, in seconds from the clip's begin, and "cut"
  /// where a text reached its most tokens; else null. With the fields of further questions, and
  /// "also_cut", the names of those whose answers did.
  HeldJson windows;
  bool cut = false;  ///< the text of the only window reached its most tokens
  HeldJson also =
      HeldJson::object();  ///< fields of further questions; of one window "caption_also_cut"
  std::vector<std::string> faults;  ///< of further questions
  std::int64_t cuts = 0;            ///< texts that reached their most tokens, of any question
  HeldJson
      written;  ///< written_json() where one window's text is all, and tokens are kept; else null
  HeldJson facts = HeldJson::object();  ///< as take_frames() returns them
};

/// Of a sample's member. `key` is the sample's. Throws Error, naming `where`, for a clip that
/// cannot be decoded or asked about; Stopped.
ModelCaption caption_clip(const shard::Member& member, const std::string& where, const Json& known,
                          const std::string& key, const models::CaptionModel& model,
                          const ModelCaptionOptions& options,
                          const media::HardwareDecoder* hardware);

/// Adds what of a rule decides the texts.
void add_rule(Json& config, const models::AnswerRule& rule);
/// What decides the texts: the model's config() and the options.
Json model_caption_config(const models::CaptionModel& model, const ModelCaptionOptions& options);

}  // namespace vfm::columns
