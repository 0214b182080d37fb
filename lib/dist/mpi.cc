// SPDX-License-Identifier: Apache-2.0
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdint>
#include <exception>
#include <numeric>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/stop.h"
#include "dist/errand_thread.h"
#include "dist/late_wire.h"
#include "dist/message_group.h"
#include "dist/mpi_engine.h"
#include "dist/mpi_meeting.h"
#include "dist/mpi_start.h"
#include "dist/mpi_wire.h"
#include "dist/pulse_thread.h"
#include "dist/world.h"

namespace vfm::dist {
namespace {

// MPI counts are ints; and one message of gigabytes is no faster than several.
constexpr std::size_t kMaxCount = std::size_t{1} << 28;

class MpiWorld final : public World {
 public:
  explicit MpiWorld(double late) : late_(late) {
    thread_.call([this] { init(); });
    pulse_.emplace(std::move(plan_), recorder());
    meeting_->give_up_by([this](std::string message, std::vector<int> ranks) {
      pulse_->give_up({.kind = "stuck", .ranks = std::move(ranks), .text = std::move(message)});
    });
    current_section().lost = [this](const std::string& message) {
      pulse_->wait_for_end(1);  // of a rank whose connection broke, the pulse knows more
      pulse_->give_up({.kind = "stuck", .text = message});
    };
    engine_.emplace(traffic(), recorder(), *meeting_, thread_);
    std::vector<int> ranks(static_cast<std::size_t>(size_));
    std::iota(ranks.begin(), ranks.end(), 0);
    all_ = group("world", std::move(ranks));
  }
  ~MpiWorld() override {
    // On the way out of an error the other ranks may never come to MPI_Finalize.
    if (std::uncaught_exceptions() > 0) {
      pulse_->leave(stop_signal() != 0 ? fmt::format("signal {}", stop_signal())
                                       : "it stopped by itself");
      return;
    }
    engine_->finish_all();
    thread_.call([this] { meeting_->then("MPI_Finalize", [] { return MPI_Finalize(); }); });
    pulse_->leave("");
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string host() const override { return host_; }
  int local_size() const override { return local_size_; }
  int least_local_size() const override { return least_local_size_; }
  void section(std::string_view what, double limit) override {
    World::section(what, limit);
    meeting_->section(what, current_section());
  }
  void silent_limit(double seconds) override {
    World::silent_limit(seconds);
    pulse_->limit(seconds);
  }
  void record_to(const std::string& folder) override {
    World::record_to(folder);
    pulse_->record_to(folder);
  }

  std::unique_ptr<Group> group(std::string_view axis, std::vector<int> ranks) override {
    const int place = place_in(ranks, rank_, size_, axis);
    std::unique_ptr<Wire> wire;
    thread_.call([&] { wire = mpi_wire(*meeting_, ranks, rank_); });
    if (wire && late_ > 0) wire = late_wire(std::move(wire), late_);
    auto group = std::make_unique<MessageGroup>(std::string(axis), place, std::move(ranks),
                                                std::move(wire), *engine_);
    equip(*group);
    return group;
  }

  void use_device(Device device, bool ordered) override {
    World::use_device(device, ordered);
    std::vector<int> ranks = all_->ranks();
    all_ = group("world", std::move(ranks));
  }

  // MPI_Allreduce may add in another order on each rank, and replicas that differ in one bit drift
  // apart; MPI_Reduce in one that depends on where the ranks run.
  Group& all() override { return *all_; }
  void all_reduce_sum(std::span<float> values) override { all_->all_reduce(values).wait(); }
  void all_reduce_sum(std::span<double> values) override { all_->all_reduce(values).wait(); }

  void broadcast(std::span<std::byte> bytes) override {
    for (; !bytes.empty(); bytes = bytes.subspan(std::min(kMaxCount, bytes.size())))
      collective(fmt::format("MPI_Bcast of {} bytes", bytes.size()), [&] {
        return MPI_Bcast(bytes.data(), static_cast<int>(std::min(kMaxCount, bytes.size())),
                         MPI_BYTE, 0, MPI_COMM_WORLD);
      });
  }

  std::vector<std::string> gather(const std::string& text) override {
    if (text.size() > kMaxCount) fail("a text of {} bytes is too long to gather", text.size());
    const int length = static_cast<int>(text.size());
    std::vector<int> lengths(rank_ == 0 ? size_ : 0), begins(lengths.size());
    collective("MPI_Gather", [&] {
      return MPI_Gather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
    });
    std::int64_t total = 0;
    for (std::size_t i = 0; i < lengths.size(); total += lengths[i++])
      begins[i] = static_cast<int>(std::min<std::int64_t>(total, INT_MAX));
    if (total > INT_MAX) fail("texts of {} bytes are too long to gather", total);
    std::string all(static_cast<std::size_t>(total), '\0');
    collective("MPI_Gatherv", [&] {
      return MPI_Gatherv(text.data(), length, MPI_CHAR, all.data(), lengths.data(), begins.data(),
                         MPI_CHAR, 0, MPI_COMM_WORLD);
    });
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < lengths.size(); ++i)
      texts.push_back(
          all.substr(static_cast<std::size_t>(begins[i]), static_cast<std::size_t>(lengths[i])));
    return texts;
  }

  void barrier() override {
    collective("MPI_Barrier", [] { return MPI_Barrier(MPI_COMM_WORLD); });
  }

  [[noreturn]] void end_all(int status) override {
    pulse_->give_up(
        {.kind = "error",
         .rank = rank_,
         .text = fmt::format("rank {} on host {} failed: {}", rank_, host_, recorder().error()),
         .status = status});
  }
  void await_end(double seconds) override { pulse_->wait_for_end(seconds); }

 private:
  void init() {
    int provided = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
    std::array<char, MPI_MAX_PROCESSOR_NAME> name{};
    int length = 0;
    check(MPI_Get_processor_name(name.data(), &length), "MPI_Get_processor_name");
    host_.assign(name.data(), static_cast<std::size_t>(length));
    recorder().name(rank_, host_);
    const FirstExchange guard(rank_, host_);
    MPI_Comm here;
    check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &here),
          "MPI_Comm_split_type");
    check(MPI_Comm_size(here, &local_size_), "MPI_Comm_size");
    int first = rank_;
    check(MPI_Bcast(&first, 1, MPI_INT, 0, here), "MPI_Bcast");
    check(MPI_Comm_free(&here), "MPI_Comm_free");
    check(MPI_Allreduce(&local_size_, &least_local_size_, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD),
          "MPI_Allreduce");
    plan_ = make_pulse_plan(rank_, size_, first, host_);
    std::vector<std::string> hosts;
    for (const Pulse::Rank& one : plan_.ranks)
      hosts.push_back(one.host);
    meeting_.emplace(rank_, std::move(hosts), recorder());
    if (rank_ == 0 && least_local_size_ < size_) log_info("{}", interface_words());
  }

  template <class Call>
  void collective(const std::string& operation, const Call& call) {
    thread_.call([&] { check(meeting_->then(operation, call), operation); });
  }

  void check(int code, const std::string& operation) const {
    check_mpi(code, operation,
              fmt::format("rank {} on host {}", rank_, host_.empty() ? "?" : host_));
  }

  int rank_ = 0, size_ = 1, local_size_ = 1, least_local_size_ = 1;
  std::string host_;
  PulsePlan plan_;
  std::optional<PulseThread> pulse_;
  std::optional<Meeting> meeting_;
  std::optional<MpiEngine> engine_;
  const double late_;
  // MPI is called by this thread alone, which ends before what it uses.
  ErrandThread thread_;
  std::unique_ptr<Group> all_;
};

}  // namespace

std::unique_ptr<World> mpi_world(double late) {
  return std::make_unique<MpiWorld>(late);
}
bool has_mpi() {
  return true;
}

}  // namespace vfm::dist
