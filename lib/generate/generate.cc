// SPDX-License-Identifier: Apache-2.0
#include "generate/generate.h"

#include <optional>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "generate/clip_makers.h"
#include "generate/part_clips.h"
#include "share/ordered.h"
#include "tensor/failure.h"

namespace vfm::generate {
namespace {

/// Throws Error if the measured error exceeds the job's limit.
void check_output_error(const GenerateJob& job, const std::optional<double>& error) {
  if (error && !(*error <= job.tolerance))
    fail(
        "{0} the model's output by {2:.4f} of its size, more than --tolerance {3} allows: leave "
        "out --{1}, or allow more",
        job.quantize ? "weights in 8 bits change" : "FP8 changes",
        job.quantize ? "quantize" : "fp8", *error, job.tolerance);
}

/// In the order of the prompts, on one thread.
void hand_over(Result& result, ClipFolder& output, Progress& progress) {
  std::string& error = result.asked.error;
  if (error.empty() && output.to_stream())
    error = output.stream(*result.tokenizer, result.latent, result.record);
  if (!error.empty()) {
    output.add_error({result.asked.where, error, result.asked.cause});
    return;
  }
  if (!output.to_stream())
    output.report(result.record, result.made ? std::optional(result.seconds) : std::nullopt);
  progress.add();
}

}  // namespace

std::optional<Asked> AskedClips::next() {
  std::optional<PromptLine> line = next_prompt_();
  if (!line) return std::nullopt;
  Asked asked;
  asked.error = std::move(line->error);
  const bool own_seed = line->prompt.own_seed;
  if (asked.error.empty()) asked = makers_.ask(std::move(line->prompt));
  if (asked.error.empty())
    asked.error = failure_of(
        [&] { names_.take(*asked.request, own_seed, makers_.in_use(), makers_.output()); },
        &asked.cause);
  asked.where = std::move(line->where);
  asked.place = line->place;
  check_output_error(job_, makers_.output_error());
  return asked;
}

long generate_clips(const GenerateJob& job, ClipMakers& makers, share::Slots& slots,
                    Progress& progress) {
  if (makers.helped()) return 0;
  if (job.parts) return generate_parts(job, makers, slots, progress);
  std::optional<PromptReader> prompts;
  if (makers.first()) prompts.emplace(job.prompts, job.defaults);
  if (prompts) progress.start("clips", prompts->total());
  AskedClips clips(job, makers, [&] { return prompts->next(); });
  const auto next = [&] { return clips.next(); };
  const auto done = [&](Result& result) { hand_over(result, makers.output(), progress); };
  if (!makers.make_in_rounds(next, done, slots))
    share::for_each_ordered<Asked, Result>(
        slots, next, [&](Asked& asked) { return makers.make(asked); }, done);
  if (!prompts) {
    makers.finished();
    return 0;
  }
  const io::InputStreams& input = prompts->streams();
  const long errors = makers.output().finish(input, "prompts");
  if (!job.report.empty()) makers.report(input.broken_off());
  makers.finished();
  input.check_whole("the clips of what came are made and kept");
  return errors;
}

}  // namespace vfm::generate
