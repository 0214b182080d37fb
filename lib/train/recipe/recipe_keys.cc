// Which keys all recipes have, what each may be, and which may change when a run goes on; between
// them those of the kind of training.
// SPDX-License-Identifier: Apache-2.0
#include "train/kind.h"
#include "train/recipe/parallel_fields.h"
#include "train/recipe/recipe_field.h"
#include "train/recipe/recipe_keys.h"
#include "train/state/optimizer_kinds.h"

namespace vfm::train {

std::vector<std::string> model_types() {
  std::vector<std::string> all;
  for (const Kind* kind : kinds())
    for (const std::string_view type : kind->types())
      all.emplace_back(type);
  return all;
}

std::vector<Field> fields_of(Recipe& r) {
  const Kind& kind = kind_of(r.model.type);
  FieldList list;
  list.section("model").choice("type", r.model.type, model_types());
  kind.add_model_fields(list, r);
  std::vector<std::string> recomputes = {"auto"};
  for (const nn::Recompute one : kind.recomputes())
    recomputes.emplace_back(nn::recompute_name(one));
  list.choice("compute", r.model.compute, {"f32", "bf16"})
      .choice("recompute", r.model.recompute, recomputes)
      .may_change();
  if (kind.can_offload()) list.flag("offload", r.model.offload).may_change();
  kind.add_sections(list, r);
  kind.add_data_fields(list.section("data", true), r.data);
  list.number("tokens", r.data.tokens, at_least(1))
      .number("packs", r.data.packs, between(1, 1 << 20))
      .number("window", r.data.window, between(1, 1 << 20))
      .number("micro_packs", r.data.micro_packs, between(0, 1 << 20))
      .may_change();
  list.names("folders", r.data.folders).may_change();  // their fingerprint may not
  list.numbers("weights", r.data.weights, positive, true);
  list.numbers("repeats", r.data.repeats, positive, true);
  list.number("ahead", r.data.ahead, at_least(0)).may_change();
  std::vector<std::string> optimizers;
  for (const OptimizerKind& one : optimizer_kinds())
    optimizers.emplace_back(one.name);
  list.section("optimizer").number("lr", r.optimizer.lr, positive).may_change();
  list.choice("kind", r.optimizer.kind, optimizers)
      .number("beta1", r.optimizer.beta1, between(0, 0.99999))
      .number("beta2", r.optimizer.beta2, between(0, 0.99999))
      .number("momentum", r.optimizer.momentum, between(0, 0.99999))
      .number("eps", r.optimizer.eps, positive)
      .number("weight_decay", r.optimizer.weight_decay, between(0, 1))
      .in_stages()
      .choice("moments", r.optimizer.moments, {"f32", "bf16", "8bit"})
      .number("clip", r.optimizer.clip, at_least(0))
      .in_stages()
      .number("max_skips", r.optimizer.max_skips, at_least(0))
      .may_change();
  list.section("schedule").number("warmup", r.schedule.warmup, at_least(0)).may_change();
  list.choice("shape", r.schedule.shape, {"constant", "linear", "cosine"}).may_change();
  list.number("final", r.schedule.final, between(0, 1)).may_change();
  list.section("ema")
      .choice("mode", r.ema.mode, {"off", "decay", "power"})
      .number("decay", r.ema.decay, between(0, 0.9999999))
      .number("length", r.ema.length, between(0.01, 0.28))
      .number("every", r.ema.every, between(1, 1 << 20))
      .choice("place", r.ema.place, {"device", "host"})
      .may_change();
  list.section("validation").number("every", r.validation.every, at_least(0)).may_change();
  list.number("samples", r.validation.samples, at_least(1)).may_change();
  kind.add_validation_fields(list, r.validation);
  add_parallel_fields(list, r.parallel);
  list.section("train").number("steps", r.train.steps, between(1, 4294967295)).may_change();
  list.number("seed", r.train.seed, at_least(0));
  list.number("checkpoint_every", r.train.checkpoint_every, at_least(1)).may_change();
  list.number("checkpoint_minutes", r.train.checkpoint_minutes, at_least(0)).may_change();
  list.number("keep", r.train.keep, at_least(1)).may_change();
  list.number("keep_every", r.train.keep_every, at_least(0)).may_change();
  list.number("log_every", r.train.log_every, at_least(1)).may_change();
  list.number("compare_every", r.train.compare_every, at_least(0)).may_change();
  list.number("skip_spikes", r.train.skip_spikes, at_least(0)).may_change();
  list.number("setup_limit", r.train.setup_limit, at_least(0)).may_change();
  list.number("step_limit", r.train.step_limit, at_least(0)).may_change();
  list.number("checkpoint_limit", r.train.checkpoint_limit, at_least(0)).may_change();
  list.number("silent_limit", r.train.silent_limit, at_least(0)).may_change();
  list.number("peak_tflops", r.train.peak_tflops, at_least(0)).may_change();
  return list.fields;
}

Recipe usual_recipe(const Recipe& recipe) {
  Recipe usual;
  usual.model.type = recipe.model.type;
  fields_of(usual);  // which takes the type
  const models::Process process = usual.diffusion.process;
  set_process(usual, recipe.diffusion.process);
  usual.diffusion.process = process;
  return usual;
}

}  // namespace vfm::train
