// SPDX-License-Identifier: Apache-2.0
#include "curate/measures/describe.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "base/json.h"
#include "curate/measures/camera.h"

namespace vfm::curate {
namespace {

// Minimum shares of pixels of a colour that is named, and of a colour that is called "mostly".
constexpr double kSomeShare = 0.03, kMostShare = 0.5;
// Minimum motion that a viewer notices, in widths per second, and minimum growth per second.
constexpr double kPan = 0.03, kZoom = 0.03;

/// Returns nullopt if the fact is no number. Records of other programs are not refused.
std::optional<double> number(const Json& facts, const char* name) {
  const auto found = facts.find(name);
  if (found == facts.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

std::string length_words(double seconds) {
  if (seconds >= 90) return fmt::format("{:.0f}-minute", seconds / 60);
  if (seconds >= 10) return fmt::format("{:.0f}-second", seconds);
  std::string text = fmt::format("{:.1f}", seconds);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text + "-second";
}

std::string light_words(double light) {
  if (light < 0.08) return "very dark ";
  if (light < 0.27) return "dark ";
  if (light > 0.85) return "very bright ";
  if (light > 0.65) return "bright ";
  return "";
}

std::string colour_words(const std::vector<Measured::Colour>& colours) {
  std::vector<std::string> names;
  for (const auto& [name, share] : colours)
    if (share >= kSomeShare && names.size() < 3) names.push_back(name);
  if (names.empty()) return "";
  const bool ruled = colours.front().share >= kMostShare;
  if (names.size() == 1)
    return fmt::format(", {}{}", colours[0].share > 0.97 ? "" : "mostly ", names[0]);
  if (ruled)
    return fmt::format(", mostly {} with some {}{}", names[0], names[1],
                       names.size() > 2 ? std::string(" and ").append(names[2]) : "");
  return names.size() > 2 ? fmt::format(", in {}, {} and {}", names[0], names[1], names[2])
                          : fmt::format(", in {} and {}", names[0], names[1]);
}

std::string motion_words(double motion) {
  if (motion < 0.0008) return ", without motion";
  if (motion < 0.01) return ", with little motion";
  if (motion < 0.04) return ", with some motion";
  return ", with much motion";
}

std::string camera_words(const CameraMotion& camera) {
  if (!camera.known) return "";
  std::string pan, tilt, zoom;
  if (std::abs(camera.right) >= kPan) pan = camera.right > 0 ? "pans right" : "pans left";
  if (std::abs(camera.up) >= kPan) tilt = camera.up > 0 ? "tilts up" : "tilts down";
  if (std::abs(camera.zoom) >= kZoom) zoom = camera.zoom > 0 ? "zooms in" : "zooms out";
  // If pan or tilt is at least twice as strong as the other, name only the stronger one.
  if (!pan.empty() && !tilt.empty()) {
    if (std::abs(camera.right) >= 2 * std::abs(camera.up))
      tilt.clear();
    else if (std::abs(camera.up) >= 2 * std::abs(camera.right))
      pan.clear();
  }
  std::string words;
  for (const std::string& part : {pan, tilt, zoom})
    if (!part.empty()) words += (words.empty() ? "" : " and ") + part;
  return "; the camera " + (words.empty() ? "is still" : words);
}

}  // namespace

const char* colour_name(int red, int green, int blue) {
  const int high = std::max({red, green, blue}), low = std::min({red, green, blue});
  const int chroma = high - low;
  if (high < 40) return "black";
  if (chroma < 24 || chroma * 100 < high * 14)
    return high > 215 ? "white" : high < 60 ? "black" : "grey";
  double hue;
  if (high == red)
    hue = 60.0 * (green - blue) / chroma;
  else if (high == green)
    hue = 120 + 60.0 * (blue - red) / chroma;
  else
    hue = 240 + 60.0 * (red - green) / chroma;
  if (hue < 0) hue += 360;
  const bool pale = chroma * 100 < high * 50;
  if (hue < 14 || hue >= 345) return pale && high > 170 ? "pink" : "red";
  if (hue < 44) return high < 175 || (pale && high < 220) ? "brown" : "orange";
  if (hue < 68) return high < 110 ? "brown" : "yellow";
  if (hue < 165) return "green";
  if (hue < 258) return "blue";
  if (hue < 300) return "purple";
  return high > 150 ? "pink" : "purple";
}

Measured measure(const Glimpse& glimpse) {
  Measured out;
  std::map<std::string, std::size_t> counts;
  std::size_t pixels = 0;
  double light = 0, chroma = 0, motion = 0;
  for (const media::RgbImage& image : glimpse.pictures) {
    for (const float l : luma_of(image))
      light += l;
    for (std::size_t i = 0; i + 2 < image.pixels.size(); i += 3) {
      const std::uint8_t* p = &image.pixels[i];
      ++counts[colour_name(p[0], p[1], p[2])];
      chroma += std::max({p[0], p[1], p[2]}) - std::min({p[0], p[1], p[2]});
      ++pixels;
    }
  }
  if (pixels == 0) return out;
  std::size_t compared = 0;
  for (std::size_t i = 0; i < glimpse.later.size(); ++i) {
    const auto before = halve(luma_of(glimpse.pictures[i]), kGlimpseSize);
    const auto after = halve(luma_of(glimpse.later[i]), kGlimpseSize);
    for (std::size_t k = 0; k < before.size(); ++k)
      motion += std::abs(after[k] - before[k]);
    compared += before.size();
  }
  const auto n = static_cast<double>(pixels);
  out.light = light / n;
  out.colourless = chroma / n < 2.5;
  // At low rates, pictures are more than an eighth of a second apart: scale to this time.
  if (compared > 0 && glimpse.lag > 0)
    out.motion = motion / static_cast<double>(compared) * std::min(1.0, 0.125 / glimpse.lag);
  for (const auto& [name, count] : counts)
    out.colours.push_back({name, static_cast<double>(count) / n});
  std::stable_sort(out.colours.begin(), out.colours.end(),
                   [](const auto& a, const auto& b) { return a.share > b.share; });
  return out;
}

std::string describe(const Json& facts, const Glimpse& glimpse) {
  const auto media = facts.find("media");
  const bool image = (media != facts.end() && *media == "image") ||
                     (glimpse.pictures.size() == 1 && !number(facts, "seconds"));
  const Measured measured = measure(glimpse);
  const bool seen = !glimpse.pictures.empty();
  std::string words = seen ? light_words(measured.light) : "";
  if (seen && measured.colourless) words += "black-and-white ";
  const double seconds = number(facts, "seconds").value_or(0);
  if (!image && seconds > 0 && std::isfinite(seconds)) words += length_words(seconds) + " ";
  const double width = number(facts, "width").value_or(0),
               height = number(facts, "height").value_or(0);
  if (width > 0 && height > 1.2 * width) words += "upright ";
  // "An" stands before upright, eight, eighty, eleven and eighteen.
  const bool vowel = words.starts_with("upright") || words.starts_with("8") ||
                     words.starts_with("11-") || words.starts_with("18-");
  std::string text = fmt::format("{} {}{}", vowel ? "An" : "A", words, image ? "picture" : "video");
  if (seen && !measured.colourless) text += colour_words(measured.colours);
  if (const double shots = number(facts, "shots").value_or(1); !image && shots >= 2 && shots < 1e6)
    text += fmt::format(", in {:.0f} shots", shots);
  if (!image && !glimpse.later.empty()) {
    text += motion_words(measured.motion);
    text += camera_words(camera_motion(glimpse));
  }
  return text + ".";
}

}  // namespace vfm::curate
