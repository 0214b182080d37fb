// SPDX-License-Identifier: Apache-2.0
#include "generate/usable_model.h"

#include <utility>

#include "base/error.h"
#include "dist/together.h"
#include "generate/named_request.h"
#include "generate/network_headers.h"
#include "models/folder/checkpoint_folder.h"
#include "models/folder/model_facts.h"
#include "models/folder/model_folder.h"

namespace vfm::generate {
namespace {

/// What the ranks exchange in self-attention, of a clip as the model's are.
models::CpChoice choose_cp(const GenerateJob& job, const models::NetworkConfig& network,
                           int of_machine) {
  const ClipParallel& parallel = job.parallel;
  const Extents usual = models::read_facts(models::ModelFolder(job.model)).usual;
  const std::array<int, 3>& patch = network.patch_size;
  const std::int64_t tokens =
      std::int64_t{usual.frames / patch[0]} * (usual.height / patch[1]) * (usual.width / patch[2]);
  return models::find_cp_kind(parallel.cp_kind, 0, network,
                              {parallel.tp, parallel.cp, of_machine, tokens});
}

}  // namespace

models::CpChoice check_shared(const GenerateJob& job, int of_machine) {
  if (job.fp8.any())
    fail_usage("--fp8 is for ranks that make clips of their own, not for --parallel {}",
               job.parallel.name());
  const NetworkHeaders network = read_network(job);
  network.faults.finish();
  if (!network.dit)
    fail_usage(
        "--parallel is for diffusion models, this one is autoregressive: without it, ranks "
        "make clips of their own");
  if (job.parallel.cp == 1) return {};
  return choose_cp(job, *network.dit, of_machine);
}

std::unique_ptr<ClipRanks> agree_on_ranks(GenerateJob& job, dist::World& world) {
  models::CpChoice cp;
  if (world.size() > 1) {
    std::string path;
    on_all_ranks(world, [&] {
      check_ranks(job.parallel, world.size());
      if (world.rank() == 0) path = models::checkpoint_at(job.model);
    });
    path = dist::broadcast(world, path);
    if (!path.empty()) job.model = path;
  }
  on_all_ranks(world, [&] {
    check_ranks(job.parallel, world.size());
    if (!job.parallel.alone())
      cp = as_usage([&] { return check_shared(job, world.least_local_size()); });
  });
  if (job.parallel.cp > 1) job.parallel.cp_kind = models::cp_kind_name(cp.kind);
  return std::make_unique<ClipRanks>(world, job.parallel, cp);
}

namespace {

/// Throws Error{usage} unless the generator can do what the job asks of it.
void check_generator(const GenerateJob& job, Generator& generator) {
  job.defaults.choice.check_for(generator.autoregressive(), generator.sampling().sampler);
  job.defaults.choice.over(generator.sampling()).validate();
  if (job.tokenizer_memory > 0 && !job.latents_only)
    generator.check_decodes(request_of(job.defaults, generator.usual(), generator.facts().fps));
  if (job.fp8.any()) generator.set_fp8(job.fp8);  // refuses a model that cannot
}

}  // namespace

UsableModel load_usable(const GenerateJob& job, const ClipRanks& ranks) {
  std::optional<DType> compute = job.compute;
  if (!compute && job.fp8.any()) compute = DType::bf16;
  if (!compute && job.device == Device::cpu) compute = DType::f32;
  models::LoadingRanks loading;
  if (ranks.world().size() > 1) {
    loading.group = &ranks.all();
    loading.layout = ranks.network();
    loading.agree = [&](const std::function<void()>& act) {
      on_all_ranks(ranks.world(), [&] { as_usage([&] { act(); }); });
    };
  }
  UsableModel usable;
  as_usage([&] {
    models::LoadedModel model =
        models::load_model(job.model, job.ema, compute, job.device, job.lora, loading);
    loading.agree([&] { usable.tokenizer_compute = move_parts(model.facts, job); });
    auto tokenizer = models::make_tokenizer(model.facts.tokenizer.value(), job.device,
                                            job.tokenizer_memory, loading);
    if (ranks.clip().size() > 1)
      usable.shared = std::make_unique<SharedClip>(*model.network, ranks);
    if (!ranks.leads()) {
      usable.network_alone = std::move(model);
      if (!job.latents_only) usable.tokenizer_alone = std::move(tokenizer);
    } else if (usable.shared) {
      tokenizer = usable.shared->share(std::move(tokenizer));
    }
    loading.agree([&] {
      if (!ranks.leads()) return;
      usable.generator.emplace(std::move(model), std::move(tokenizer), job.cache, job.text_encoder);
      if (usable.shared)
        usable.generator->set_forward(
            [shared = usable.shared.get()](const models::NetworkBatch& batch) {
              return shared->forward(batch);
            });
      check_generator(job, *usable.generator);
    });
  });
  return usable;
}

}  // namespace vfm::generate
