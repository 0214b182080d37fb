// SPDX-License-Identifier: Apache-2.0
#include "generate/sampling/usable_model.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "dist/together.h"
#include "generate/ranks/choose_parallel.h"
#include "generate/request/given_files.h"
#include "generate/request/named_request.h"
#include "generate/sampling/network_headers.h"
#include "models/dit/architecture.h"
#include "models/dit/fp8.h"
#include "models/folder/checkpoint_folder.h"
#include "models/folder/model_facts.h"
#include "models/folder/model_folder.h"
#include "nn/cp_kind.h"

namespace vfm::generate {

/// Throws Error{usage} for what ranks that write codes cannot share.
static void check_writing_layout(const dist::Layout& parallel,
                                 const models::DecoderConfig& decoder) {
  constexpr const char* kInstead =
      "in an autoregressive model, ranks share layers (pp) and heads (tp)";
  if (parallel.cp > 1)
    fail_usage("--parallel cp: one code is computed at a time, and has no parts; {}", kInstead);
  if (parallel.cfg > 1)
    fail_usage("--parallel cfg: codes are drawn without guidance; {}", kInstead);
  if (parallel.shards_state())
    fail_usage("--parallel shard: all matrices would be gathered for each code; {}", kInstead);
  if (parallel.pp > decoder.num_layers)
    fail_usage("--parallel pp={}: the model has {}", parallel.pp,
               counted(decoder.num_layers, "layer"));
}

dist::Layout settle_layout(const dist::Layout& parallel, const NetworkHeaders& network,
                           const ModelFacts& facts, int of_machine) {
  if (network.decoder) {
    check_writing_layout(parallel, *network.decoder);
    return parallel;
  }
  if (parallel.pp > 1)
    fail_usage(
        "--parallel pp is for autoregressive models, and this one is a diffusion model: share "
        "clips by cfg, cp and tp");
  if (parallel.hybrid && !network.dit->architecture->space_time)
    fail_usage(
        "--parallel hybrid is for attention in frames and pixels, which a {} does not have: leave "
        "it out",
        network.dit->architecture->name);
  const std::array<int, 3>& patch = network.dit->patch_size;
  const Extents& usual = facts.usual;
  const std::int64_t tokens =
      std::int64_t{usual.frames / patch[0]} * (usual.height / patch[1]) * (usual.width / patch[2]);
  return nn::settled_cp(parallel, network.dit->heads(), of_machine, tokens);
}

namespace {

/// What --parallel auto means here. A collective.
void choose_on_ranks(GenerateJob& job, const models::OpenedModel& opened, dist::World& world) {
  std::string name;
  const dist::ShardKind shard = job.parallel.shard;
  on_all_ranks(world, [&] {
    const int ranks =
        job.parallel.choose == dist::Layout::kAllRanks ? world.size() : job.parallel.choose;
    if (world.size() % ranks != 0)
      fail_usage("--parallel auto={}: start a multiple of that number of ranks, not {}", ranks,
                 world.size());
    if (world.rank() == 0)
      name = clip_layout_option(
          as_usage([&] { return choose_parallel(job, opened, ranks, world.least_local_size()); }));
  });
  job.parallel = parse_parallel(dist::broadcast(world, name));
  if (!job.parallel.alone()) job.parallel.shard = shard;
}

/// Leaves attention in bf16 on all ranks where the first cannot run it in FP8. A collective.
void settle_fp8(GenerateJob& job, dist::World& world) {
  if (!job.fp8.attention) return;
  std::string name;
  on_all_ranks(world, [&] {
    if (world.rank() == 0)
      name = models::fp8_name(models::running_in_fp8(job.fp8, job.device, true));
  });
  job.fp8 = models::parse_fp8(dist::broadcast(world, name));
}

/// Returns the layout of ranks that share clips, with nothing left open in cp.
dist::Layout check_shared(const GenerateJob& job, const models::OpenedModel& opened,
                          int of_machine) {
  const NetworkHeaders network = read_network(job, opened);
  network.faults.finish();
  if (network.decoder && job.fp8.any())
    fail_usage("--fp8 is for diffusion models, and this one is autoregressive: leave it out");
  return settle_layout(job.parallel, network, opened.facts(), of_machine);
}

/// Returns the ranks of the job. Writes into the job what they agree on: the layout if it was open,
/// the kind of cp, and the parts in FP8. A collective.
std::unique_ptr<ClipRanks> agree_on_ranks(GenerateJob& job, const models::OpenedModel& opened,
                                          dist::World& world) {
  if (job.parallel.choose != 0) choose_on_ranks(job, opened, world);
  on_all_ranks(world, [&] {
    check_ranks(job.parallel, world.size());
    if (!job.parallel.alone())
      job.parallel = as_usage([&] { return check_shared(job, opened, world.least_local_size()); });
  });
  settle_fp8(job, world);
  return std::make_unique<ClipRanks>(world, job.parallel);
}

/// That of the command line. Lines of input may have one, and a length of the clip, of their own.
void check_condition(const GenerateJob& job, const Generator& generator) {
  GivenFiles files = job.defaults.files;
  if (files.condition.path.empty()) return;
  ClipRequest request = request_of(job.defaults, generator.usual(), generator.facts().fps);
  if (std::ranges::count(job.prompts, "-") > 0) request.frames = std::numeric_limits<int>::max();
  read_given_files(files, generator.shape(), request);
}

/// Separate adapters may also be only on a network that is not in memory yet.
void refuse_separate_in_fp8(const GenerateJob& job) {
  if (job.fp8.linear && job.lora.separate)
    fail_usage("--fp8 takes no separate adapters: leave out --no-merge");
}

/// Throws Error{usage} unless the generator can do what the job asks of it.
void check_generator(const GenerateJob& job, Generator& generator) {
  job.defaults.choice.check_for(generator.autoregressive(), generator.sampling().process,
                                generator.facts().networks());
  job.defaults.choice.over(generator.sampling()).validate();
  check_condition(job, generator);
  if (job.tokenizer_memory > 0 && !job.latents_only)
    generator.check_decodes(request_of(job.defaults, generator.usual(), generator.facts().fps));
  if (job.quantize && generator.autoregressive())
    fail_usage("--quantize is for diffusion models, and this one is autoregressive: leave it out");
  // Refuses a model that cannot; one that ranks share has been asked.
  if (job.fp8.any() && job.parallel.alone()) {
    generator.set_fp8(job.fp8);
    refuse_separate_in_fp8(job);
  }
}

/// Of ranks that share the network, before they exchange anything.
void check_shared_fp8(const GenerateJob& job, const models::DiffusionNetwork& network,
                      DType compute) {
  models::check_fp8(network.config(), compute, job.fp8);
  refuse_separate_in_fp8(job);
}

/// as_usage(), but for what ranks have refused together already.
template <class Act>
void as_usage_of_ranks(const Act& act) {
  try {
    act();
  } catch (const dist::RefusedTogether&) {
    throw;
  } catch (const Error& error) {
    throw Error(error.what(), ErrorKind::usage);
  }
}

/// Closes the folder when the model is loaded, so that its files do not stay mapped.
void load(UsableModel& usable, std::optional<models::OpenedModel>& opened) {
  const GenerateJob& job = usable.job;
  const ClipRanks& ranks = *usable.ranks;
  std::optional<DType> compute = job.compute;
  if (!compute && job.fp8.any()) compute = DType::bf16;
  if (!compute && job.device == Device::cpu) compute = DType::f32;
  models::LoadingRanks loading;
  if (ranks.world().size() > 1) {
    loading.group = &ranks.all();
    loading.layout = ranks.network();
    if (ranks.clip().size() > 1) loading.sharing = &ranks.clip();
    loading.agree = [&](const std::function<void()>& act) {
      on_all_ranks(ranks.world(), [&] { as_usage([&] { act(); }); });
    };
  }
  loading.layout.quantized = job.quantize;
  as_usage_of_ranks([&] {
    models::LoadedModel model = models::load_model(*opened, compute, job.device, job.lora, loading);
    opened.reset();  // of two networks the other one is opened when it is needed
    loading.agree([&] { usable.tokenizer_compute = move_parts(model.facts, job, model.pipeline); });
    auto tokenizer = models::make_tokenizer(model.facts.tokenizer.value(), job.device,
                                            job.tokenizer_memory, loading);
    if (ranks.clip().size() > 1)
      usable.shared = model.decoder ? std::make_unique<ClipNetwork>(*model.decoder, ranks)
                                    : std::make_unique<ClipNetwork>(*model.network, ranks);
    if (usable.shared && job.fp8.any()) {
      loading.agree([&] { check_shared_fp8(job, *model.network, model.compute); });
      usable.shared->set_fp8(job.fp8);
    }
    if (!ranks.leads()) {
      usable.network_alone = std::move(model);
      if (!job.latents_only) usable.tokenizer_alone = std::move(tokenizer);
    } else if (usable.shared) {
      tokenizer = usable.shared->share(std::move(tokenizer));
    }
    loading.agree([&] {
      if (!ranks.leads()) return;
      usable.generator.emplace(std::move(model), std::move(tokenizer), job.cache, job.text_encoder);
      if (usable.shared) usable.generator->share(*usable.shared);
      check_generator(job, *usable.generator);
    });
    // What that changes is measured by the first rank's group alone.
    if (job.quantize && ranks.clip().ranks().front() > 0) {
      if (usable.shared)
        usable.shared->quantize();
      else
        usable.generator->quantize();
    }
  });
}

}  // namespace

UsableModel load_usable(const GenerateJob& job, dist::World& world) {
  std::string path = job.model;
  if (world.size() > 1) {
    std::string found;
    on_all_ranks(world, [&] {
      check_ranks(job.parallel, world.size());
      if (world.rank() == 0) found = models::checkpoint_at(path);
    });
    found = dist::broadcast(world, found);
    if (!found.empty()) path = found;
  }
  // That checkpoint is fixed, so ranks do not go different ways.
  return models::retry_if_gone(path, [&] {
    UsableModel usable{.job = job};
    usable.job.model = path;
    std::optional<models::OpenedModel> opened;
    on_all_ranks(world, [&] { as_usage([&] { opened.emplace(path, job.ema); }); });
    usable.ranks = agree_on_ranks(usable.job, *opened, world);
    load(usable, opened);
    return usable;
  });
}

}  // namespace vfm::generate
