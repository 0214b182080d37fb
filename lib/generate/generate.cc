// SPDX-License-Identifier: Apache-2.0
#include "generate/generate.h"

#include <memory>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/units.h"
#include "dist/together.h"
#include "generate/clip_maker.h"
#include "generate/files/clip_output.h"
#include "generate/files/generation_report.h"
#include "generate/ranks/rounds.h"
#include "generate/sampling/usable_model.h"
#include "io/file.h"
#include "share/ordered.h"

namespace vfm::generate {

namespace {

class Run {
 public:
  Run(const GenerateJob& job, const ClipRanks& ranks, Generator generator,
      const std::string& tokenizer_compute, Progress& progress, io::ManifestWriter& manifest);
  long run(share::Slots& slots);

 private:
  std::optional<Asked> next();
  void hand_over(Result& result);
  void check_is_here(const Json& record) const;
  std::vector<Asked> read_round(std::size_t most, std::vector<std::uint64_t>& costs, bool& more);
  std::vector<Result> make_all(std::vector<Asked>& asked, share::Slots& slots);
  void make_in_rounds(share::Slots& slots);

  const GenerateJob& job_;
  const ClipRanks& ranks_;
  Progress& progress_;
  ClipFolder output_;
  ClipMaker maker_;
  std::optional<PromptReader> prompts_;  ///< of the first rank
};

Run::Run(const GenerateJob& job, const ClipRanks& ranks, Generator generator,
         const std::string& tokenizer_compute, Progress& progress, io::ManifestWriter& manifest)
    : job_(job),
      ranks_(ranks),
      progress_(progress),
      output_(job.output, job.encoder, progress, manifest, ranks.first()),
      maker_(job, std::move(generator), tokenizer_compute, output_, progress) {
  if (ranks.first()) prompts_.emplace(job.prompts, job.defaults);
}

/// One caller at a time, in order.
std::optional<Asked> Run::next() {
  std::optional<PromptLine> line = prompts_->next();
  return line ? std::optional(maker_.ask(*std::move(line))) : std::nullopt;
}

/// In the order of the prompts, on one thread.
void Run::hand_over(Result& result) {
  std::string& error = result.asked.error;
  if (error.empty() && output_.to_stream()) {
    if (output_.fits_stream(result.record))
      error = output_.stream(maker_.generator().tokenizer(), result.latent, result.record);
    else
      error = "its size or rate differs from the first clip's: a stream has one";
  }
  if (!error.empty()) {
    output_.add_error({result.asked.where, error, result.asked.cause});
    return;
  }
  if (!output_.to_stream())
    output_.report(result.record, result.made ? std::optional(result.seconds) : std::nullopt);
  progress_.add();
}

/// A clip that another rank has made.
void Run::check_is_here(const Json& record) const {
  const std::string path = record["path"];
  if (!io::file_exists(path))
    fail("rank 0 cannot find '{}', which another rank made: all ranks need one file system", path);
}

/// What rank 0 reads of the input for one round, and what each costs.
std::vector<Asked> Run::read_round(std::size_t most, std::vector<std::uint64_t>& costs,
                                   bool& more) {
  std::vector<Asked> asked;
  while (asked.size() < most) {
    std::optional<Asked> one = next();
    more = one.has_value();
    if (!more) break;
    const NamedRequest* const request = one->error.empty() ? one->request.get() : nullptr;
    costs.push_back(request
                        ? clip_cost(*request, maker_.generator().shape().latent_of(request->clip),
                                    maker_.generator().autoregressive())
                        : 0);
    asked.push_back(*std::move(one));
  }
  return asked;
}

/// In the order of `asked`. What ranks make together they exchange on this thread.
std::vector<Result> Run::make_all(std::vector<Asked>& asked, share::Slots& slots) {
  std::vector<Result> results;
  if (ranks_.clip().size() > 1) {
    for (Asked& one : asked)
      results.push_back(maker_.make(one));
    return results;
  }
  std::size_t taken = 0;
  const auto take = [&]() -> std::optional<Asked> {
    if (taken == asked.size()) return std::nullopt;
    return std::move(asked[taken++]);
  };
  share::for_each_ordered<Asked, Result>(
      slots, take, [this](Asked& one) { return maker_.make(one); },
      [&](Result& result) { results.push_back(std::move(result)); });
  return results;
}

void Run::make_in_rounds(share::Slots& slots) {
  const int each = ranks_.clip().size() > 1 ? 1 : slots.threads();
  const auto most = static_cast<std::size_t>(each) * ranks_.clips().size();
  for (bool more = true; more;) {
    std::vector<std::uint64_t> costs;
    std::vector<Asked> asked;
    if (ranks_.first()) asked = read_round(most, costs, more);
    Round round(ranks_.clips(), std::move(asked), costs, more, maker_.output_error());
    more = round.more();
    for (Result& result : round.collect(make_all(round.mine(), slots))) {
      if (result.asked.error.empty() && !output_.to_stream()) check_is_here(result.record);
      hand_over(result);
    }
  }
}

long Run::run(share::Slots& slots) {
  if (prompts_) progress_.start("clips", prompts_->total());
  if (ranks_.world().size() > 1)
    make_in_rounds(slots);
  else
    share::for_each_ordered<Asked, Result>(
        slots, [this] { return next(); }, [this](Asked& asked) { return maker_.make(asked); },
        [this](Result& result) { hand_over(result); });
  log_info("tensors had {} of the host's memory, at most", format_bytes(cpu_memory().peak));
  if (!prompts_) return 0;
  const io::InputStreams& input = prompts_->streams();
  const long errors = output_.finish(input, "prompts");
  if (!job_.report.empty())
    write_generation_report(job_.report, output_.records(), maker_.generator().model(),
                            job_.dataset, input.broken_off());
  input.check_whole("the clips of what came are made and kept");
  return errors;
}

}  // namespace

long generate_clips(const GenerateJob& job, dist::World& world, share::Slots& slots,
                    Progress& progress, io::ManifestWriter& manifest) {
  GenerateJob agreed = job;
  const std::unique_ptr<ClipRanks> ranks = agree_on_ranks(agreed, world);
  UsableModel model = load_usable(agreed, *ranks);
  std::optional<Run> run;
  dist::on_all_ranks(world, [&] {
    if (ranks->leads())
      run.emplace(agreed, *ranks, *std::move(model.generator), model.tokenizer_compute, progress,
                  manifest);
  });
  if (!run) {
    model.shared->serve(model.tokenizer_alone.get());
    return 0;
  }
  const long errors = run->run(slots);
  if (model.shared) model.shared->end();
  return errors;
}

}  // namespace vfm::generate
