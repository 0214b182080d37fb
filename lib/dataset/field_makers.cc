// SPDX-License-Identifier: Apache-2.0
#include "dataset/field_makers.h"

#include <sstream>

namespace vfm::dataset {
namespace {

struct Made {
  std::string_view command;
  // Separated and enclosed by blanks. "concept_*" means all names with that beginning.
  std::string_view names;
};

constexpr Made kMade[] = {
    {"vfm-clip",
     " motion motion_per_second camera_motion object_motion doubled brightness contrast saturation"
     " sharpness black frozen focus underexposed overexposed blockiness banding combing text_area"
     " text_area_most bars logo logo_area loudness silence speech "},
    {"vfm-caption", " caption caption_source "},
    {"vfm-caption --also NAME=TEXT", " caption_* "},
    {"vfm-caption score",
     " caption_repetition caption_clean caption_script caption_ended caption_scored_by "},
    {"vfm-caption score --model DIR",
     " caption_tokens caption_logprob caption_logprob_blind caption_gain caption_gain_least "},
    {"vfm-caption score --clip DIR", " caption_fit caption_fit_least "},
    {"vfm-caption score --model DIR --clip DIR", " caption_quality "},
    {"vfm-embed", " video_encoder video.npy "},
    {"vfm-embed --windows SECONDS", " windows.npy "},
    {"vfm-embed --text DIR", " text_encoder text.npy "},
    {"vfm-embed --aesthetic FILE", " aesthetic "},
    {"vfm-embed --text-image", " text_image "},
    {"vfm-embed --concept NAME=TEXT", " concept_* "}};

bool holds(std::string_view names, std::string_view name) {
  const std::string between = " " + std::string(name) + " ";
  return names.find(between) != std::string_view::npos;
}

}  // namespace

std::string maker_of(std::string_view name) {
  for (const Made& made : kMade)
    if (holds(made.names, name)) return std::string(made.command);
  const std::size_t part = name.find('_');
  if (part == std::string_view::npos || part + 1 == name.size()) return "";
  const std::string family = std::string(name.substr(0, part + 1)) + "*";
  for (const Made& made : kMade)
    if (holds(made.names, family)) return std::string(made.command);
  return "";
}

std::vector<std::string> made_names() {
  std::vector<std::string> names;
  for (const Made& made : kMade) {
    std::istringstream words{std::string(made.names)};
    for (std::string name; words >> name;)
      if (!name.ends_with('*')) names.push_back(name);
  }
  return names;
}

}  // namespace vfm::dataset
