// SPDX-License-Identifier: Apache-2.0
#include "workers/stage_models.h"

#include <mutex>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/units.h"
#include "tensor/device.h"
#include "workers/find_gpus.h"
#include "workers/worker_pool.h"

namespace vfm::workers {
namespace {

constexpr const char* kStageService = "models";
constexpr const char* kStageWords = "what a worker is asked";

Parcel addressed(std::size_t number, Parcel request) {
  request.words = Json{{"number", number}, {"words", std::move(*request.words)}};
  return request;
}

/// Combines several services. The parcel that opens it lists the words and the number of tensors of
/// each service. A request has the number of its service.
class StageService final : public Service {
 public:
  StageService(const Services& parts, const Parcel& open, Device device) {
    auto tensor = open.tensors.begin();
    for (const Json& one : open.words->at("services")) {
      const std::string name = need_string(one, "service", kStageWords);
      const auto found = parts.find(name);
      if (found == parts.end()) fail("a worker of this program is no '{}'", name);
      Parcel own{name, one.at("words"), {}};
      const auto count = static_cast<std::ptrdiff_t>(need_integer(one, "tensors", kStageWords));
      own.tensors.assign(tensor, tensor + count);
      tensor += count;
      services_.push_back(found->second(own, device));
    }
    if (device == Device::cuda)
      log_info("its models have {} of the GPU", format_bytes(cuda_memory().current));
  }

  Parcel answer(const Parcel& request) override {
    const auto number =
        static_cast<std::size_t>(need_integer(request.words, "number", kStageWords));
    return services_.at(number)->answer(
        {request.name, request.words->at("words"), request.tensors});
  }

 private:
  std::vector<std::unique_ptr<Service>> services_;
};

}  // namespace

struct StageModels::State {
  std::vector<share::SharedGpu> gpus;
  std::string share, stage;
  Parcel open = {"", Json{{"services", Json::array()}}, {}};
  std::int64_t memory = 0;
  unsigned beside = 0;
  std::shared_ptr<share::OrderedFlow> flow = std::make_shared<share::OrderedFlow>();
  std::mutex mutex;  // guards the making of `pool`
  std::unique_ptr<WorkerPool> pool;

  WorkerPool& started() {
    const std::lock_guard lock(mutex);
    if (!pool)
      pool = std::make_unique<WorkerPool>(
          share, gpus,
          share::GpuNeed{.stage = stage, .memory = memory, .beside = beside, .flow = flow},
          WorkerPlan{.service = kStageService, .open = open});
    return *pool;
  }
};

StageModels::StageModels(std::vector<share::SharedGpu> gpus, std::string share, std::string stage)
    : state_(std::make_unique<State>()) {
  state_->memory = device_of(gpus) == Device::cuda ? kContextBytes : 0;
  state_->gpus = std::move(gpus);
  state_->share = std::move(share);
  state_->stage = std::move(stage);
}

StageModels::~StageModels() = default;

Device StageModels::device() const {
  return device_of(state_->gpus);
}

std::size_t StageModels::together() const {
  return state_->gpus.size();
}

std::shared_ptr<share::OrderedFlow> StageModels::flow() const {
  return state_->flow;
}

std::size_t StageModels::add(const std::string& service, Parcel open, std::int64_t memory) {
  if (state_->pool) fail("a model is added to workers that are at work");
  Json& services = state_->open.words["services"];
  services.push_back(
      {{"service", service}, {"words", *open.words}, {"tensors", open.tensors.size()}});
  state_->open.tensors.insert(state_->open.tensors.end(), open.tensors.begin(), open.tensors.end());
  state_->memory += memory;
  return services.size() - 1;
}

void StageModels::add_sessions(share::GpuKind kind) {
  state_->beside |= share::gpu_flag(kind);
  state_->memory += share::kOwnSessions * share::kSessionBytes;
}

void StageModels::start() {
  state_->started();
}

void StageModels::open() {
  state_->started().open();
}

Parcel StageModels::ask(std::size_t number, Parcel request) {
  return state_->started().ask(addressed(number, std::move(request)));
}

std::optional<Parcel> StageModels::ask_late(std::size_t number,
                                            const std::function<std::optional<Parcel>()>& make) {
  return state_->started().ask_late([&] {
    std::optional<Parcel> request = make();
    if (request) request = addressed(number, std::move(*request));
    return request;
  });
}

void StageModels::finished() noexcept {
  const std::lock_guard lock(state_->mutex);
  if (state_->pool) state_->pool->finished();
}

Services stage_services(const Services& parts) {
  return {{kStageService, [parts](const Parcel& open, Device device) {
             return std::make_unique<StageService>(parts, open, device);
           }}};
}

}  // namespace vfm::workers
