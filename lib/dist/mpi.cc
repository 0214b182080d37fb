// SPDX-License-Identifier: Apache-2.0
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdint>
#include <exception>
#include <optional>

#include "base/error.h"
#include "dist/mpi_meeting.h"
#include "dist/world.h"

namespace vfm::dist {
namespace {

// MPI counts are ints; and one message of gigabytes is no faster than several.
constexpr std::size_t kMaxCount = std::size_t{1} << 28;

class MpiWorld final : public World {
 public:
  MpiWorld() {
    int provided = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
    std::array<char, MPI_MAX_PROCESSOR_NAME> name{};
    int length = 0;
    check(MPI_Get_processor_name(name.data(), &length), "MPI_Get_processor_name");
    host_.assign(name.data(), static_cast<std::size_t>(length));
    MPI_Comm here;
    check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &here),
          "MPI_Comm_split_type");
    check(MPI_Comm_size(here, &local_size_), "MPI_Comm_size");
    check(MPI_Comm_free(&here), "MPI_Comm_free");
    meeting_.emplace(rank_, size_, host_);
  }
  ~MpiWorld() override {
    // On the way out of an error the other ranks may never come to MPI_Finalize.
    if (std::uncaught_exceptions() == 0)
      meeting_->then("MPI_Finalize", [] { return MPI_Finalize(); });
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string host() const override { return host_; }
  int local_size() const override { return local_size_; }
  void section(std::string_view what, double limit) override { meeting_->section(what, limit); }

  using World::all_reduce_sum;
  void all_reduce_sum(std::span<float> values) override { reduce(values, MPI_FLOAT); }
  void all_reduce_sum(std::span<double> values) override { reduce(values, MPI_DOUBLE); }

  void broadcast(std::span<std::byte> bytes) override {
    for (; !bytes.empty(); bytes = bytes.subspan(std::min(kMaxCount, bytes.size())))
      collective("MPI_Bcast", [&] {
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
    MPI_Abort(MPI_COMM_WORLD, status);
    std::terminate();  // MPI_Abort does not return
  }

 private:
  /// Sums to rank 0, then from it to all: unlike one MPI_Allreduce, whose algorithms may add in
  /// another order on each rank, this leaves the same bits everywhere, and replicas that differ in
  /// one bit drift apart.
  template <class T>
  void reduce(std::span<T> values, MPI_Datatype type) {
    for (; !values.empty(); values = values.subspan(std::min(kMaxCount, values.size()))) {
      const int count = static_cast<int>(std::min(kMaxCount, values.size()));
      const void* from = rank_ == 0 ? MPI_IN_PLACE : values.data();
      collective("MPI_Reduce", [&] {
        return MPI_Reduce(from, values.data(), count, type, MPI_SUM, 0, MPI_COMM_WORLD);
      });
      collective("MPI_Bcast",
                 [&] { return MPI_Bcast(values.data(), count, type, 0, MPI_COMM_WORLD); });
    }
  }

  template <class Call>
  void collective(const char* operation, Call&& call) {
    check(meeting_->then(operation, call), operation);
  }

  void check(int code, const char* operation) const {
    if (code == MPI_SUCCESS) return;
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int length = 0;
    MPI_Error_string(code, text.data(), &length);
    fail("{} failed on host {}, rank {}: {}", operation, host_.empty() ? "?" : host_, rank_,
         std::string(text.data(), static_cast<std::size_t>(length)));
  }

  int rank_ = 0, size_ = 1, local_size_ = 1;
  std::string host_;
  std::optional<Meeting> meeting_;
};

}  // namespace

std::unique_ptr<World> mpi_world() {
  return std::make_unique<MpiWorld>();
}
bool has_mpi() {
  return true;
}

}  // namespace vfm::dist
