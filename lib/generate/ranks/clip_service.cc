// SPDX-License-Identifier: Apache-2.0
#include "generate/ranks/clip_service.h"

#include <omp.h>

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/units.h"
#include "dist/world.h"
#include "generate/clip_maker.h"
#include "generate/files/clip_output.h"
#include "generate/files/generation_report.h"
#include "generate/request/request_parcel.h"
#include "generate/sampling/usable_model.h"
#include "io/file.h"
#include "share/ordered.h"
#include "tensor/failure.h"

namespace vfm::generate {
namespace {

constexpr const char* kWhat = "what a worker says of a clip";
constexpr const char* kAsked = "what is asked of a clip";

class ClipService final : public workers::Service {
 public:
  ClipService(const GenerateJob& job, int threads)
      : job_(job), threads_(threads), manifest_(-1), world_(dist::self_world()) {
    use_threads();
    const std::unique_ptr<ClipRanks> ranks = agree_on_ranks(job_, *world_);
    UsableModel model = load_usable(job_, *ranks);
    output_.emplace(job_.output, job_.encoder, no_progress(), manifest_, false);
    maker_.emplace(job_, *std::move(model.generator), model.tokenizer_compute, *output_,
                   no_progress());
  }

  workers::Parcel answer(const workers::Parcel& request) override {
    use_threads();
    if (request.name == "report") return report(request);
    const Json& words = request.words;
    PromptLine line = read_prompt({.where = std::string(workers::text_of(request.tensors.at(1))),
                                   .text = std::string(workers::text_of(request.tensors.at(0))),
                                   .as_is = get_bool(words, "as_is").value_or(false),
                                   .folder = std::string(workers::text_of(request.tensors.at(2)))},
                                  job_.defaults);
    if (!line.error.empty()) fail_as(Cause::line, "{}", line.error);
    line.prompt.seed += words.at("seeds").get<std::uint64_t>();
    if (const auto known = get_number(words, "output_error")) maker_->use_known(*known);
    const bool named = !line.prompt.name.empty(), own_seed = line.prompt.own_seed;
    maker_->requests().forget_names();
    Asked asked{maker_->requests().make(std::move(line.prompt)), line.where, ""};
    if (request.name == "name") {
      maker_->measure(*asked.request);
      Json told = {{"name", asked.request->name}, {"named", named}, {"own_seed", own_seed}};
      if (maker_->output_error()) told["output_error"] = *maker_->output_error();
      return {"", std::move(told), {}};
    }
    const Result result = maker_->make(asked);
    if (!result.asked.error.empty()) fail_as(result.asked.cause, "{}", result.asked.error);
    return {"", Json::object(), {workers::bytes_tensor(pack_result(result))}};
  }

 private:
  void use_threads() const {
    if (threads_ > 0) omp_set_num_threads(threads_);
  }

  workers::Parcel report(const workers::Parcel& request) const {
    const Json list = parse_json(workers::text_of(request.tensors.at(0)), kAsked);
    const std::vector<Json> records(list.begin(), list.end());
    write_generation_report(job_.report, records, maker_->generator().model(), job_.dataset,
                            need_string(request.words, "broken_off", kAsked));
    return {};
  }

  GenerateJob job_;
  int threads_;
  io::ManifestWriter manifest_;  // to nowhere: its program has one
  std::unique_ptr<dist::World> world_;
  std::optional<ClipFolder> output_;
  std::optional<ClipMaker> maker_;
};

/// A clip that is to be made, or why not.
struct DealtPrompt {
  PromptLine line;
  std::uint64_t seeds = 0;  ///< so much more than it says is its seed
  std::string error;
  Cause cause = Cause::line;
};

class Dealer {
 public:
  Dealer(const GenerateJob& job, workers::StageModels& models, std::size_t number,
         Progress& progress, io::ManifestWriter& manifest)
      : job_(job),
        models_(models),
        number_(number),
        progress_(progress),
        output_(job.output, job.encoder, progress, manifest),
        prompts_(job.prompts, job.defaults) {}

  long run(share::Slots& slots) {
    progress_.start("clips", prompts_.total());
    share::for_each_ordered<DealtPrompt, Result>(
        slots, [this] { return next(); }, [this](DealtPrompt& prompt) { return make(prompt); },
        [this](Result& result) { hand_over(result); });
    const io::InputStreams& input = prompts_.streams();
    const long errors = output_.finish(input, "prompts");
    if (!job_.report.empty()) {
      Json records = Json::array();
      for (const Json& record : output_.records())
        records.push_back(record);
      // As a tensor, which may be larger than words.
      models_.ask(number_, {"report",
                            Json{{"broken_off", input.broken_off()}},
                            {workers::bytes_tensor(dump_json(records))}});
    }
    models_.finished();
    input.check_whole("the clips of what came are made and kept");
    return errors;
  }

 private:
  /// One caller at a time, in order: names and seeds follow from it.
  std::optional<DealtPrompt> next() {
    std::optional<PromptLine> line = prompts_.next();
    if (!line) return std::nullopt;
    DealtPrompt prompt{*std::move(line)};
    prompt.error = prompt.line.error;
    if (prompt.error.empty()) prompt.error = failure_of([&] { take_name(prompt); }, &prompt.cause);
    check_output_error(job_, output_error_);
    return prompt;
  }

  workers::Parcel ask(const char* what, const DealtPrompt& prompt) {
    const PromptLine& line = prompt.line;
    workers::Parcel request{what,
                            Json{{"as_is", line.as_is}, {"seeds", prompt.seeds}},
                            {workers::bytes_tensor(line.text), workers::bytes_tensor(line.where),
                             workers::bytes_tensor(line.folder)}};
    if (output_error_) request.words["output_error"] = *output_error_;
    return models_.ask(number_, std::move(request));
  }

  /// As RequestMaker does.
  void take_name(DealtPrompt& prompt) {
    for (;; ++prompt.seeds) {
      const Json told = ask("name", prompt).words;
      if (!output_error_) output_error_ = get_number(told, "output_error");
      if (names_.insert(need_string(told, "name", kWhat)).second) return;
      if (get_bool(told, "named").value_or(false))
        fail("the name '{}' is taken by another prompt of this run",
             told["name"].get<std::string>());
      if (get_bool(told, "own_seed").value_or(false)) fail("the same clip was asked for before");
    }
  }

  Result make(const DealtPrompt& prompt) {
    Result result;
    result.asked = {nullptr, prompt.line.where, prompt.error, prompt.cause};
    if (!result.asked.error.empty()) return result;
    std::string failure = failure_of(
        [&] {
          const workers::Parcel answer = ask("make", prompt);
          if (answer.tensors.size() != 1) fail("{}: there is none", kWhat);
          unpack_result(workers::text_of(answer.tensors[0]), result);
        },
        &result.asked.cause);
    if (!failure.empty()) result.asked.error = std::move(failure);
    return result;
  }

  void hand_over(Result& result) {
    if (!result.asked.error.empty()) {
      output_.add_error({result.asked.where, result.asked.error, result.asked.cause});
      return;
    }
    output_.report(result.record, result.made ? std::optional(result.seconds) : std::nullopt);
    progress_.add();
  }

  const GenerateJob& job_;
  workers::StageModels& models_;
  std::size_t number_;
  Progress& progress_;
  ClipFolder output_;
  PromptReader prompts_;
  std::set<std::string> names_;
  std::optional<double> output_error_;
};

}  // namespace

std::unique_ptr<workers::Service> open_clips(const GenerateJob& job, int threads) {
  return std::make_unique<ClipService>(job, threads);
}

long deal_clips(const GenerateJob& job, workers::StageModels& models, std::size_t number,
                share::Slots& slots, Progress& progress, io::ManifestWriter& manifest) {
  return Dealer(job, models, number, progress, manifest).run(slots);
}

}  // namespace vfm::generate
