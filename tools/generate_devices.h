// vfm-generate --device all|0,2: distributes prompts to workers, which are processes of this
// program, one for each GPU. A worker reads the same command line again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "cli/options.h"
#include "cli/runner.h"
#include "device_workers.h"
#include "generate/clip_service.h"
#include "generate/generate_cost.h"
#include "media/encode/encode_sessions.h"
#include "media/encode/encoder.h"
#include "models/folder/checkpoint_folder.h"
#include "workers/service.h"

/// Throws Error{usage} for options that exclude workers: -o - and --parallel.
inline void refuse_with_workers(bool stream, const vfm::generate::ClipParallel& parallel) {
  if (stream) vfm::fail_usage("workers of --device write clips into a folder: leave out -o -");
  if (!parallel.alone() || parallel.choose != 0)
    vfm::fail_usage(
        "workers of --device make clips of their own; to share a clip among GPUs start "
        "'mpirun -np N vfm-generate --parallel ...' without --device");
}

inline void refuse_ranks(const vfm::cli::Launch& launch) {
  if (launch.ranks > 1)
    vfm::fail_usage(
        "--device all or a list starts a worker for each GPU by itself: start vfm-generate "
        "without mpirun, or leave out --device");
}

/// What a worker gets when it is opened.
struct DealtJob {
  std::vector<std::string> arguments;  ///< of the command line
  std::string cache, model;
  vfm::Device device = vfm::Device::cpu;
};

/// Parses the tool's options again. Ignores options that are not the tool's.
inline void read_again(CLI::App& app, std::vector<std::string> arguments) {
  app.allow_extras();
  app.add_flag("-v")->group("");  // needed for -vo DIR
  app.add_flag("-q")->group("");
  std::reverse(arguments.begin(), arguments.end());  // the order of CLI11
  app.parse(std::move(arguments));
}

/// Implements Tool::serve_card(). `job_of` makes the job from what the worker got.
inline int serve_clips(int channel,
                       const std::function<vfm::generate::GenerateJob(const DealtJob&)>& job_of) {
  const auto open = [&](const vfm::workers::Parcel& parcel, vfm::Device device) {
    DealtJob dealt;
    dealt.device = device;
    dealt.cache = vfm::workers::text_of(parcel.tensors.at(0));
    dealt.model = vfm::workers::text_of(parcel.tensors.at(1));
    for (std::size_t i = 2; i < parcel.tensors.size(); ++i)
      dealt.arguments.emplace_back(vfm::workers::text_of(parcel.tensors[i]));
    return vfm::generate::open_clips(job_of(dealt), parcel.words->at("threads").get<int>());
  };
  return vfm::workers::serve_card(channel,
                                  vfm::workers::stage_services({{vfm::generate::kClips, open}}));
}

/// Makes the job's clips in `workers`: as many at once as there are workers, or as -j allows.
inline long deal_to_cards(vfm::generate::GenerateJob& job, vfm::workers::StageModels& workers,
                          const vfm::cli::JobOptions& jobs, vfm::cli::Context& context) {
  const std::string newest = vfm::models::checkpoint_at(job.model);
  if (!newest.empty()) job.model = newest;  // the same for all workers
  const auto cards = static_cast<int>(workers.together());
  const int together = jobs.jobs > 0 ? std::min(jobs.jobs, cards) : cards;
  const auto processors = static_cast<int>(std::thread::hardware_concurrency());
  const bool cpu = workers.device() == vfm::Device::cpu;
  vfm::workers::Parcel open{
      "", vfm::Json{{"threads", cpu ? std::max(1, processors / cards) : 0}}, {}};
  for (const std::string& text : {context.cache, job.model})
    open.tensors.push_back(vfm::workers::bytes_tensor(text));
  for (const std::string& argument : context.arguments)
    open.tensors.push_back(vfm::workers::bytes_tensor(argument));
  const vfm::Json cost = vfm::generate::generation_cost(job);
  const std::size_t number = workers.add(vfm::generate::kClips, std::move(open),
                                         cost.at("memory_bytes").at("peak").get<std::int64_t>());
  const bool encodes = !job.latents_only && workers.device() == vfm::Device::cuda;
  if (encodes &&
      vfm::media::encodes_on_gpu(job.encoder.empty() ? vfm::media::default_encoder() : job.encoder))
    workers.add_sessions(vfm::share::CardKind::encode);
  workers.open();
  vfm::share::Slots slots = context.slots(jobs, together);
  slots.set_flow(workers.flow());
  return vfm::generate::deal_clips(job, workers, number, slots, context.progress, context.manifest);
}
