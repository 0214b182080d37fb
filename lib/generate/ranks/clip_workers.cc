// SPDX-License-Identifier: Apache-2.0
#include "generate/ranks/clip_workers.h"

#include <omp.h>

#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "dist/world.h"
#include "generate/clip_maker.h"
#include "generate/ranks/clip_messages.h"
#include "tensor/failure.h"

namespace vfm::generate {
namespace {

workers::Parcel parcel_of(const char* what, const std::string& message) {
  return {what, Json::object(), {workers::bytes_tensor(message)}};
}

class ClipService final : public workers::Service {
 public:
  ClipService(const GenerateJob& job, int threads)
      : threads_(threads), manifest_(-1), world_(dist::self_world()) {
    use_threads();
    maker_.emplace(job, *world_, no_progress(), manifest_, false);
  }

  workers::Parcel answer(const workers::Parcel& request) override {
    use_threads();
    return parcel_of("", answer(request.name, workers::text_of(request.tensors.at(0))));
  }

 private:
  std::string answer(const std::string& what, std::string_view message) {
    if (what == "report") {
      HeldJson list;
      std::string incomplete;
      unpack(message, list, incomplete);
      maker_->report(std::vector<Json>(list->begin(), list->end()), incomplete);
      return {};
    }
    std::optional<double> known;
    if (what == "ask") {
      Prompt prompt;
      unpack(message, known, prompt);
      maker_->use_known(known);
      const Asked asked = maker_->ask(std::move(prompt));
      return pack(asked, maker_->output_error(), maker_->in_use());
    }
    Asked asked;
    std::string temporary;
    unpack(message, known, temporary, asked);
    maker_->use_known(known);
    use_folder(temporary);
    return pack(maker_->make(asked));
  }

  /// Uses a folder for temporary files of a part.
  void use_folder(const std::string& temporary) {
    if (temporary == folder_) return;
    temporary_.reset();
    folder_ = temporary;
    temporary_.emplace(maker_->output().folder(), own_folder(temporary));
  }

  void use_threads() const {
    if (threads_ > 0) omp_set_num_threads(threads_);
  }

  int threads_;
  io::ManifestWriter manifest_;  // to nowhere: its program has one
  std::unique_ptr<dist::World> world_;
  std::optional<ClipMaker> maker_;
  std::string folder_;
  std::optional<io::TemporaryPlace> temporary_;  // in folder_, if that is given
};

}  // namespace

std::unique_ptr<workers::Service> open_clips(const GenerateJob& job, int threads) {
  return std::make_unique<ClipService>(job, threads);
}

ClipWorkers::ClipWorkers(const GenerateJob& job, workers::StageModels& models, std::size_t number,
                         Progress& progress, io::ManifestWriter& manifest)
    : models_(models),
      number_(number),
      output_(job.output, job.encoder, progress, manifest, !job.parts) {}

std::string ClipWorkers::tell(const char* what, const std::string& message) {
  const workers::Parcel answer = models_.ask(number_, parcel_of(what, message));
  if (answer.tensors.size() != 1) fail("what a worker says of a clip: there is nothing");
  return std::string(workers::text_of(answer.tensors[0]));
}

Asked ClipWorkers::ask(Prompt prompt) {
  Asked asked;
  std::optional<double> measured;
  std::string failure = failure_of(
      [&] { unpack(tell("ask", pack(output_error_, prompt)), asked, measured, in_use_); },
      &asked.cause);
  // Written once, by the first request: no thread makes a clip and reads it before.
  if (measured && !output_error_) output_error_ = measured;
  if (!failure.empty()) asked.error = std::move(failure);
  return asked;
}

Result ClipWorkers::make(Asked& asked) {
  Result result;
  result.asked = std::move(asked);
  if (!result.asked.error.empty()) return result;
  std::string failure = failure_of(
      [&] { unpack(tell("make", pack(output_error_, temporary_, result.asked)), result); },
      &result.asked.cause);
  if (!failure.empty()) result.asked.error = std::move(failure);
  return result;
}

void ClipWorkers::report(const std::string& incomplete) {
  Json records = Json::array();
  for (const Json& record : output_.records())
    records.push_back(record);
  tell("report", pack(HeldJson(std::move(records)), incomplete));
}

}  // namespace vfm::generate
