// SPDX-License-Identifier: Apache-2.0
#include "train/report/training_report.h"

#include <fmt/format.h>

#include "base/json.h"
#include "base/units.h"
#include "data/frame_strip.h"
#include "io/file.h"
#include "models/tokenizer.h"
#include "report/html.h"
#include "report/training_curves.h"
#include "train/cost/memory.h"
#include "train/data/blend.h"
#include "train/recipe/recipe_file.h"
#include "train/report/rank_timing.h"
#include "train/report/signs.h"
#include "train/state/next_stage.h"

namespace vfm::train {
namespace {

constexpr std::size_t kShown = 8;  // clips

/// The last line of timing.jsonl, as it is at the end; null: there is none.
Json last_timing(const std::string& path) {
  if (!io::file_exists(path)) return nullptr;
  std::string text = io::read_file(path);
  while (text.ends_with('\n'))
    text.pop_back();
  if (text.empty()) return nullptr;
  const std::size_t begin = text.rfind('\n') + 1;  // 0 if it is the only line
  return parse_json(std::string_view(text).substr(begin), "the last line of timing.jsonl");
}

void add_facts(report::Page& page, const RunOptions& options, const Recipe& recipe,
               const Trainer& trainer, const Json& timing) {
  const std::int64_t parameters = nn::element_count(trainer.objective().parameters());
  const RunState& state = trainer.state();
  const bool stage = !options.earlier.empty();
  std::vector<std::vector<std::string>> facts = {
      {"run", options.out},
      {"model", recipe.model.type},
      {"trained parameters", format_count(static_cast<double>(parameters))},
      {stage ? "continues" : "begins from", stage                  ? options.earlier
                                            : options.init.empty() ? "new weights"
                                                                   : options.init},
      {"data", options.data.empty() ? "made up" : name_data(options)},
      {"steps", fmt::format("{} of {}", state.step, state.first_step + recipe.train.steps)},
      {"samples seen", fmt::format("{}", state.samples)}};
  if (!timing.is_null()) {
    facts.push_back({"speed at the end", rates_words(timing)});
    if (std::string slowest = slowest_words(timing); !slowest.empty())
      facts.push_back({"slowest rank at the end", std::move(slowest)});
  }
  page.table({"", ""}, facts);
}

/// What each stage saw and changed; this run is the last one.
void add_stages(report::Page& page, Json stages, const Recipe& recipe, const RunState& state) {
  if (stages.empty()) return;
  page.heading("Stages");
  stages = stages_of(
      {{"stages", std::move(stages)}, {"state", state.to_json()}, {"recipe", to_json(recipe)}});
  stages.back()["checkpoint"] = "this run";
  const auto count = [](const Json& value) { return format_count(value.get<double>()); };
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const Json& stage = stages[i];
    const std::vector<std::string> changes =
        i > 0 ? recipe_changes(stages[i - 1]["recipe"], stage["recipe"])
              : std::vector<std::string>();
    rows.push_back({std::to_string(i + 1),
                    stage["first_step"].dump() + " to " + stage["last_step"].dump(),
                    count(stage["samples"]), count(stage["tokens"]),
                    get_string(stage, "checkpoint").value_or(""),
                    fmt::format("{}", fmt::join(changes, "; "))});
  }
  page.table({"stage", "steps", "samples", "tokens", "ends at", "changed"}, rows);
}

void add_clips(report::Page& page, const std::vector<Reconstruction>& clips,
               const std::string& split, bool averaged) {
  page.heading("Original above, decoded below");
  page.paragraph(
      fmt::format("Clips of the '{}' split, as validation takes them, through the model that the "
                  "run ends with{}.",
                  split, averaged ? ": its averaged weights" : ""));
  std::vector<report::Figure> figures;
  for (const auto& [sample, decoded] : clips)
    figures.push_back(
        {report::data_url("image/png", data::frame_strip(sample.pixels, decoded, sample.frames,
                                                         sample.height, sample.width)),
         fmt::format("{} ({:.1f} dB)", report::set_apart(sample.key),
                     models::psnr(sample.pixels, decoded)),
         false});
  page.gallery(figures, 640);
}

void add_recipe(report::Page& page, const Recipe& recipe) {
  page.heading("Recipe");
  std::vector<std::vector<std::string>> rows;
  const Json sections = to_json(recipe);
  for (const auto& [section, keys] : sections.items())
    for (const auto& [key, value] : keys.items())
      rows.push_back(
          {section + "." + key, value.is_string() ? value.get<std::string>() : dump_json(value)});
  page.table({"setting", "value"}, rows);
}

/// Of the last line of timing.
void add_signs(report::Page& page, const Json& timing, double usable) {
  if (timing.is_null()) return;
  for (const Sign& sign : signs_of(signs_of_timing(timing, usable)))
    page.paragraph("At the end: " + sign.words + ".");
}

}  // namespace

void write_training_report(const RunOptions& options, const Recipe& recipe, const Json& stages,
                           Trainer& trainer, Validation* validation) {
  report::Page page("Training", options.out);
  page.heading("Run");
  const Json timing = last_timing(io::join_path(options.out, "timing.jsonl"));
  add_facts(page, options, recipe, trainer, timing);
  add_stages(page, stages, recipe, trainer.state());
  const std::string metrics = io::join_path(options.out, "metrics.jsonl");
  if (io::file_exists(metrics)) report::add_training_curves(page, metrics);
  add_signs(page, timing, usable_memory(options.device, trainer.parallel().world().local_size()));
  if (trainer.objective().reconstructs() && validation != nullptr) {
    trainer.optimizer().swap_ema();
    add_clips(page, validation->reconstruct(trainer.objective(), kShown), validation->split(),
              trainer.optimizer().has_ema());
    trainer.optimizer().swap_ema();
  }
  add_recipe(page, recipe);
  page.write(options.report);
}

}  // namespace vfm::train
