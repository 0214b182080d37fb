// SPDX-License-Identifier: Apache-2.0
#include "train/plan/plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "base/counted.h"
#include "base/error.h"
#include "base/json.h"
#include "base/units.h"
#include "models/predict.h"
#include "train/cost/less_memory.h"
#include "train/data/blend.h"
#include "train/kind.h"
#include "train/report/signs.h"
#include "train/run.h"
#include "train/state/beginning.h"

namespace vfm::train {
namespace {

/// In quotes, where a shell would take it for something else.
std::string shell_word(const std::string& word) {
  const auto harmless = [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("-_=./:,+@%").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!word.empty() && std::ranges::all_of(word, harmless)) return word;
  std::string quoted = "'";
  for (const char c : word)
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

/// What makes it slower than the best: the term that has most more.
std::string why_slower(const Costed& one, const Costed& best) {
  std::string term;
  double most = 0;
  for (const auto& [name, seconds] : one.time.terms)
    if (const double more = seconds - best.time.of(name); more > most) most = more, term = name;
  if (term.empty()) return "as fast";
  return fmt::format("{:.3g} ms more of {}", 1e3 * most, term);
}

Json to_json(const Costed& one, const Recipe& recipe, const Workload& load,
             const PlanRequest& request, const std::string& why) {
  Json json = {{"layout", one.candidate.layout()},
               {"settings", one.candidate.settings(recipe.given)},
               {"fits", one.fits},
               {"memory_bytes", static_cast<std::int64_t>(one.memory())},
               {"pinned_bytes", static_cast<std::int64_t>(one.need.pinned)},
               {"why", why}};
  if (!one.fits) return json;
  const double seconds = one.time.total();
  Json terms = Json::object();
  for (const auto& [name, of_it] : one.time.terms)
    terms[name] = of_it;
  const double gpus = request.gpus;
  json["seconds"] = seconds;
  json["tokens_per_second"] = load.tokens_a_step / seconds;
  json["mfu"] = load.flops_a_step / seconds / gpus / request.gpu->peak;
  json["terms"] = std::move(terms);
  json["signs"] = Json::array();
  const double read_seconds = load.read_seconds / one.candidate.dp;
  if (read_seconds > 0) json["read_seconds"] = read_seconds;
  Signs signs = signs_of_plan(json, request.gpu->usable(), read_seconds);
  signs.less_memory = less_memory(one.candidate.of(recipe), request.gpus, one.candidate.recompute,
                                  request.gpu->device(), one.need, request.gpu->usable());
  if (recipe.data.packs < request.gpus)
    json["signs"].push_back(fmt::format("{} a step for {} GPUs: data.packs={} has one for each",
                                        counted(recipe.data.packs, "pack"), request.gpus,
                                        request.gpus));
  for (const Sign& sign : signs_of(signs))
    json["signs"].push_back(sign.words);
  return json;
}

std::string why_too_big(const Costed& one, const models::Gpu& gpu) {
  return fmt::format("{}{} of memory{}, {} are usable", one.at_least ? "at least " : "",
                     format_bytes(one.memory()), one.state_alone ? " without any activation" : "",
                     format_bytes(gpu.usable()));
}

/// The layout that comes to mind first, which may be none of the best.
Json plain_json(const Plan& plan, const Recipe& recipe, const Workload& load,
                const PlanRequest& request) {
  if (!plan.plain_refused.empty())
    return {{"layout", plan.plain.candidate.layout()},
            {"fits", false},
            {"why", "left out, " + plan.plain_refused}};
  return to_json(plan.plain, recipe, load, request,
                 !plan.plain.fits    ? why_too_big(plan.plain, *request.gpu)
                 : plan.best.empty() ? "fits"
                                     : why_slower(plan.plain, plan.best[0]));
}

/// What runs the recipe in that layout.
std::string command_of(const PlanRequest& request, const Json& settings) {
  std::vector<std::string> words = request.arguments;
  std::erase_if(words, [&](const std::string& argument) {
    return std::ranges::any_of(settings, [&](const Json& setting) {
      const auto& text = setting.get_ref<const std::string&>();
      return argument.starts_with(text.substr(0, text.find('=') + 1));
    });
  });
  for (const Json& setting : settings)
    words.push_back(setting.get<std::string>());
  words.insert(words.end(), request.data.begin(), request.data.end());
  std::string command = fmt::format("mpirun -np {} vfm-train", request.gpus);
  for (const std::string& word : words)
    command += " " + shell_word(word);
  return command + " -o RUN";
}

/// Where the memory of a GPU is not what is wanting.
std::string words_of_none(const Json& plan) {
  const auto gpus = plan["gpus"].get<std::int64_t>(), packs = plan["packs"].get<std::int64_t>();
  std::string text = "no layout can be, whatever the memory; why those that were drawn cannot:\n";
  for (const auto& [why, count] : plan["layouts"]["refused"].items())
    text += fmt::format("  {}: {}\n", why, count.dump());
  return text +
         (packs < gpus
              ? fmt::format("a step of {} is too small: data.packs={} has one for each GPU\n",
                            counted(packs, "pack"), gpus)
              : "plan for fewer GPUs, or leave out short samples or keys of 'parallel'\n");
}

}  // namespace

Json plan_training(const RunOptions& options, const PlanRequest& asked) {
  Recipe recipe = options.recipe;
  PlanRequest request = asked;
  request.given = recipe.parallel;
  for (const char* key : {"parallel.stages", "parallel.tp_chunks"})
    if (recipe.given.contains(key)) fail_usage("plan chooses '{}' itself: leave it out", key);
  recipe.parallel = {};
  recipe.parallel.reduce = request.given->reduce;
  recipe.parallel.ahead = request.given->ahead;
  const Kind& kind = kind_of(recipe.model.type);
  check_run(options, recipe);
  Workload load;
  if (!options.data.empty() || !options.synthetic.empty()) {
    const std::unique_ptr<Dataset> set = open_data(options);
    set->fit(recipe);
    warn_of_data(*set);
    load = measure(recipe, *set);
    if (!options.data.empty()) load.read_seconds = time_reading(recipe, *set);
  } else {
    kind.fit_without_data(recipe);
    load = assume(recipe);
  }
  const Plan plan = make_plan(recipe, load, request);
  Json refused = Json::object(), best = Json::array(), too_big = Json::array();
  for (const auto& [why, count] : plan.layouts.refused)
    refused[why] = count;
  for (std::size_t i = 0; i < std::min(plan.best.size(), kShownLayouts); ++i)
    best.push_back(to_json(plan.best[i], recipe, load, request,
                           i == 0 ? "the fastest" : why_slower(plan.best[i], plan.best[0])));
  for (std::size_t i = 0; i < std::min<std::size_t>(plan.too_big.size(), 3); ++i)
    too_big.push_back(to_json(plan.too_big[i], recipe, load, request,
                              why_too_big(plan.too_big[i], *request.gpu)));
  Json command;
  if (!best.empty()) command = command_of(request, best[0]["settings"]);
  Json conditioning;
  if (plan.pipeline)
    conditioning = {{"layout", plan.pipeline->layout()},
                    {"computed_seconds", plan.conditioning.computed},
                    {"sent_seconds", plan.conditioning.sent}};
  return {{"kind", "plan"},
          {"data", load.source},
          {"gpu", request.gpu->title},
          {"gpus", request.gpus},
          {"per_node", request.per_node},
          {"packs", recipe.data.packs},
          {"tokens_per_step", load.tokens_a_step},
          {"usable_bytes", static_cast<std::int64_t>(request.gpu->usable())},
          {"layouts",
           {{"drawn", plan.layouts.drawn},
            {"refused", std::move(refused)},
            {"slower", plan.slower},
            {"too_big", plan.too_big.size()},
            {"fit", plan.best.size()}}},
          {"whole_differs", plan.whole_differs},
          {"conditioning", std::move(conditioning)},
          {"plain", plain_json(plan, recipe, load, request)},
          {"command", std::move(command)},
          {"best", std::move(best)},
          {"too_big", std::move(too_big)}};
}

std::string conditioning_words(const Json& conditioning) {
  if (conditioning.is_null() || conditioning["sent_seconds"] == 0) return "";
  return fmt::format(
      "noise levels and positions: each stage of {} computes them again in {:.3g} ms a step, and "
      "to send them would take {:.3g} ms",
      conditioning["layout"].get<std::string>(),
      1e3 * conditioning["computed_seconds"].get<double>(),
      1e3 * conditioning["sent_seconds"].get<double>());
}

std::string plain_words(const Json& plain) {
  std::string text = fmt::format("plain data parallel, {}: ", plain["layout"].get<std::string>());
  if (plain["fits"].get<bool>())
    text += fmt::format("fits, {:.4g} s a step, {:.1f} % MFU, {}; ", plain["seconds"].get<double>(),
                        100 * plain["mfu"].get<double>(),
                        format_bytes(plain["memory_bytes"].get<double>()));
  else if (plain.contains("memory_bytes"))
    text += "does not fit, ";
  return text + plain["why"].get<std::string>();
}

std::string plan_words(const Json& plan) {
  const auto number = [](const Json& value) { return value.get<double>(); };
  const Json& layouts = plan["layouts"];
  std::string text = fmt::format(
      "{:<22} {}\n{:<22} {} {}, {} on a node\n{:<22} {:.0f} in {} packs\n"
      "{:<22} {}, of them {} fit, {} are too big",
      "data", plan["data"].get<std::string>(), "for", plan["gpus"].dump(),
      plan["gpu"].get<std::string>(), plan["per_node"].dump(), "tokens per step",
      number(plan["tokens_per_step"]), plan["packs"].dump(), "layouts", layouts["drawn"].dump(),
      layouts["fit"].dump(), layouts["too_big"].dump());
  for (const auto& [why, count] : layouts["refused"].items())
    text += fmt::format(", {}: {}", why, count.dump());
  if (layouts["slower"] != 0)
    text += fmt::format(", slower than the ten in any case, memory not looked at: {}",
                        layouts["slower"].dump());
  text += "\npredicted, not measured\n";
  const auto lines = [&](const Json& list) {
    std::size_t width = 6;
    for (const Json& one : list)
      width = std::max(width, one["layout"].get_ref<const std::string&>().size());
    const bool fit = !list.empty() && list[0]["fits"].get<bool>();
    text += fmt::format("  {:<{}} ", "layout", width);
    if (fit)
      text += fmt::format("{:>9} {:>9} {:>6} {:>10}  ", "s a step", "tokens/s", "MFU, %", "memory");
    text += "why\n";
    for (const Json& one : list) {
      text += fmt::format("  {:<{}} ", one["layout"].get<std::string>(), width);
      if (fit)
        text += fmt::format("{:>9.4g} {:>9} {:>6.1f} {:>10}  ", number(one["seconds"]),
                            format_count(number(one["tokens_per_second"])),
                            100 * number(one["mfu"]), format_bytes(number(one["memory_bytes"])));
      text += one["why"].get<std::string>() + "\n";
    }
  };
  lines(plan["best"]);
  text += plain_words(plan["plain"]) + "\n";
  if (plan["best"].empty() && plan["too_big"].empty()) return text + words_of_none(plan);
  if (plan["best"].empty()) {
    text += "no layout fits; the smallest:\n";
    lines(plan["too_big"]);
    return text;
  }
  const Json& best = plan["best"][0];
  text += "the time of the first\n";
  for (const auto& [term, seconds] : best["terms"].items())
    text += fmt::format("  {:<20} {}, {:.1f} %\n", term, models::time_words(number(seconds)),
                        100 * number(seconds) / number(best["seconds"]));
  for (const Json& sign : best["signs"])
    text += fmt::format("  note: {}\n", sign.get<std::string>());
  if (const std::string words = conditioning_words(plan["conditioning"]); !words.empty())
    text += words + "\n";
  return text + plan["command"].get<std::string>() + "\n";
}

}  // namespace vfm::train
