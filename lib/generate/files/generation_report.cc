// SPDX-License-Identifier: Apache-2.0
#include "generate/files/generation_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "base/counted.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/units.h"
#include "io/file.h"
#include "io/folder.h"
#include "report/html.h"
#include "report/training_curves.h"
#include "shard/reader.h"
#include "text/unicode.h"

namespace vfm::generate {

namespace {

constexpr std::size_t kMostGenerated = 64;                           // clips embedded in the page
constexpr std::size_t kMostSamples = 5000;                           // of the dataset that are read
constexpr std::size_t kMostShown = 24;                               // of them that are shown
constexpr std::size_t kMostBytes = 4 << 20;                          // of one embedded clip
constexpr std::size_t kMostCharacters = 2000, kCharacterBytes = 32;  // of one text that is shown

std::string number(double value) {
  return fmt::format("{:.4g}", value);
}

// Of a record: how its latents were drawn, by a sampler or code after code.
std::string describe_sampling(const Json& clip) {
  if (clip.contains("sampler"))
    return fmt::format("{} sampler, {}, guidance {}{}", clip["sampler"].get<std::string>(),
                       clip.contains("sigmas") ? "noise levels " + clip["sigmas"].dump()
                                               : clip["steps"].dump() + " steps",
                       clip["guidance"].dump(),
                       clip.contains("guidance_low")
                           ? fmt::format(", at low noise levels {}", clip["guidance_low"].dump())
                           : "");
  return fmt::format("codes drawn at temperature {} from the likeliest {}",
                     clip["temperature"].dump(), clip["top_p"].dump());
}

void add_generated(report::Page& page, const std::vector<Json>& clips) {
  page.heading("Generated clips");
  std::vector<report::Figure> figures;
  for (const Json& clip : clips) {
    if (figures.size() == kMostGenerated) break;
    const std::string bytes = io::read_file(clip["path"].get<std::string>());
    if (bytes.size() > kMostBytes) continue;
    const std::string prompt = clip["prompt"].get<std::string>();
    figures.push_back(
        {report::data_url("video/mp4", bytes), prompt.empty() ? "(no prompt)" : prompt, true});
  }
  const Json& first = clips.front();
  page.paragraph(fmt::format(
      "{}{}. The first: {} of {}x{} at {} a second, {}, seed {}. The manifest has these facts for "
      "every clip.",
      counted(std::ssize(clips), "clip"),
      figures.size() < clips.size() ? fmt::format(", {} of them shown", figures.size()) : "",
      counted(first["frames"].get<std::int64_t>(), "frame"), first["width"].dump(),
      first["height"].dump(), first["fps"].dump(), describe_sampling(first), first["seed"].dump()));
  page.gallery(figures, 150);
}

template <class Config>
std::string sizes_of(const Config& config) {
  return fmt::format("{}, {}, {}", config.num_layers, config.width(), config.num_attention_heads);
}

void add_training(report::Page& page, const models::LoadedModel& model) {
  page.heading("Training");
  std::int64_t parameters = 0;
  for (const auto* parameter : model.parameters())
    parameters += parameter->elements();
  std::vector<std::vector<std::string>> rows = {
      {"parameters", format_count(static_cast<double>(parameters))},
      {"layers, width, heads",
       model.decoder ? sizes_of(model.decoder->config()) : sizes_of(model.network->config())},
      {"weights used", model.ema ? "averaged over the last steps (EMA)" : "of the last step"},
      {"checkpoint", model.folder}};
  const models::ModelFacts& facts = model.facts;
  if (facts.step) rows.insert(rows.begin() + 2, {"step", std::to_string(*facts.step)});
  if (facts.seed) rows.insert(rows.begin() + 2, {"seed", std::to_string(*facts.seed)});
  if (facts.tokenizer) rows.push_back({"tokenizer", facts.tokenizer->name});
  if (facts.text_encoder) rows.push_back({"text_encoder", facts.text_encoder->name});
  page.table({"", ""}, rows);

  const std::string metrics =
      io::join_path(io::dir_name(io::dir_name(model.folder)), "metrics.jsonl");
  if (!io::file_exists(metrics)) {
    page.paragraph("This checkpoint has no metrics.jsonl beside it, so its curve is unknown.");
    return;
  }
  report::add_training_curves(page, metrics);
}

/// A text as it is shown: one of megabytes would be the page.
std::string shown_text(std::string_view text) {
  return text::first_characters(text.substr(0, kMostCharacters * kCharacterBytes), kMostCharacters);
}

/// What is kept of a dataset while its samples pass by.
struct Summary {
  std::size_t samples = 0, stride = 1;
  bool cut = false;
  std::vector<report::Figure> shown;  ///< every stride-th sample
  std::map<std::string, std::vector<double>> numbers;
  std::map<std::string, std::size_t> caption_sources;
  std::set<std::string> sources;

  void take(const shard::Sample& sample);
};

void Summary::take(const shard::Sample& sample) {
  static const std::map<std::string, std::string> kMime = {
      {"mp4", "video/mp4"}, {"jpg", "image/jpeg"}, {"png", "image/png"}, {"webp", "image/webp"}};
  const std::string* json_text = sample.find("json");
  const Json json = json_text ? parse_json(*json_text, sample.key + ".json") : Json::object();
  for (const char* name : {"seconds", "frames", "motion", "brightness", "contrast", "saturation"})
    if (const auto value = get_number(json, name)) numbers[name].push_back(*value);
  if (const auto source = get_string(json, "source")) sources.insert(*source);
  if (const auto from = get_string(json, "caption_source")) ++caption_sources[*from];
  if (samples++ % stride != 0) return;
  for (const auto& member : sample.members) {
    const auto mime = kMime.find(member.extension);
    if (mime == kMime.end() || member.data.size() > kMostBytes) continue;
    const std::string* text = sample.find("txt");
    shown.push_back({report::data_url(mime->second, member.data),
                     shown_text(text ? *text : get_string(json, "caption").value_or(sample.key)),
                     member.extension == "mp4"});
    break;
  }
  if (shown.size() < 2 * kMostShown) return;
  stride *= 2;  // the samples shown stay spread evenly over those seen
  std::vector<report::Figure> half;
  for (std::size_t i = 0; i < shown.size(); i += 2)
    half.push_back(std::move(shown[i]));
  shown = std::move(half);
}

Summary summarise(const std::string& dataset) {
  std::vector<std::string> tars;
  for (const io::FolderEntry& entry : io::files_below(dataset))
    if (entry.name.ends_with(".tar")) tars.push_back(io::join_path(dataset, entry.name));
  Summary summary;
  for (const std::string& tar : tars) {
    shard::StreamReader reader(tar);
    shard::Sample sample;
    while (reader.next(sample)) {
      check_stop();
      if (summary.samples == kMostSamples) {
        summary.cut = true;
        return summary;
      }
      summary.take(sample);
    }
  }
  return summary;
}

void add_dataset(report::Page& page, const std::string& dataset) {
  page.heading("Training clips");
  const Summary summary = summarise(dataset);
  if (summary.samples == 0) {
    page.paragraph("There are no shards in " + report::set_apart(dataset) + ".");
    return;
  }
  std::vector<std::vector<std::string>> rows = {
      {"clips", fmt::format("{}{}", summary.cut ? "the first " : "", summary.samples)},
      {"videos they come from", fmt::format("{}", summary.sources.size())}};
  if (const auto seconds = summary.numbers.find("seconds"); seconds != summary.numbers.end()) {
    double sum = 0;
    for (const double value : seconds->second)
      sum += value;
    rows.push_back({"length in all", format_seconds(sum)});
  }
  for (const auto& [source, count] : summary.caption_sources)
    rows.push_back({"captions from " + report::set_apart(source), fmt::format("{}", count)});
  page.table({"", ""}, rows);
  page.gallery(summary.shown, 150);
  for (const auto& [name, values] : summary.numbers) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    page.svg(report::histogram(values, 30, name),
             fmt::format("{}: {} to {}", name, number(*low), number(*high)));
  }
}

/// Runs one part of the page; what fails is said on the page instead of ending the run.
template <class Part>
void attempt(report::Page& page, const Part& part) {
  try {
    part();
  } catch (const std::exception& error) {
    log_warning("a part of the report is missing: {}", error.what());
    page.paragraph(fmt::format("This part is missing: {}.", report::set_apart(error.what())));
  }
}

}  // namespace

void write_generation_report(const std::string& path, const std::vector<Json>& clips,
                             const models::LoadedModel& model, const std::string& dataset,
                             const std::string& incomplete) {
  report::Page page("From raw video to generated video", model.folder);
  page.not_complete(incomplete);
  attempt(page, [&] { add_generated(page, clips); });
  attempt(page, [&] { add_training(page, model); });
  if (!dataset.empty()) attempt(page, [&] { add_dataset(page, dataset); });
  page.write(path);
}

}  // namespace vfm::generate
