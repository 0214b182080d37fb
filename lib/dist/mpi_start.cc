// SPDX-License-Identifier: Apache-2.0
#include "dist/mpi_start.h"

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "io/remote/environment.h"

namespace vfm::dist {
namespace {

std::string interfaces(const char* who, const char* variable) {
  const auto named = io::variable(variable);
  return named ? vfm::format("{} takes the interfaces {} ({})", who, *named, variable)
               : vfm::format("{} takes the interfaces that it chooses ({} is not set)", who,
                             variable);
}

}  // namespace

FirstExchange::FirstExchange(int rank, std::string host)
    : watcher_([this, rank, host = std::move(host)] { watch(rank, host); }) {}

FirstExchange::~FirstExchange() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  came_.notify_one();
  watcher_.join();
}

void FirstExchange::watch(int rank, const std::string& host) {
  std::unique_lock lock(mutex_);
  // In turns, not by the clock: the time in which this process is stopped does not count.
  const int seconds = kSeconds + (rank == 0 ? 0 : 3);  // rank 0 has time to tell
  for (int turn = 0; turn < seconds; ++turn)
    if (came_.wait_for(lock, std::chrono::seconds(1), [this] { return done_; })) return;
  if (rank == 0)
    log_error(
        "the ranks have started, but their first exchange over MPI has not come within {} s "
        "(rank 0 on host {}): {}; see that the hosts reach each other over these interfaces and "
        "that no firewall stands between them, name the right ones, such as with "
        "OMPI_MCA_btl_tcp_if_include=eth0, and give the command again",
        kSeconds, host, interface_words());
  std::_Exit(kLostStatus);
}

std::string interface_words() {
  return interfaces("MPI", "OMPI_MCA_btl_tcp_if_include") + ", and " +
         interfaces("NCCL", "NCCL_SOCKET_IFNAME");
}

PulsePlan make_pulse_plan(int rank, int size, int first, const std::string& host) {
  const auto check = [](int code, const char* operation) {
    if (code != MPI_SUCCESS) fail("{} failed while the ranks met", operation);
  };
  const auto ranks = static_cast<std::size_t>(size);
  PulsePlan plan;
  plan.rank = rank;
  if (rank == first) {
    allow_descriptors(size);
    plan.listener = listen_for_pulse(rank == 0, size);
  }
  struct Facts {
    int pid, first, port, length;  // of the host's name, which its first rank tells
  };
  const Facts mine = {::getpid(), first, plan.listener.port,
                      rank == first ? static_cast<int>(host.size()) : 0};
  std::vector<Facts> all(ranks);
  check(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE,
                      MPI_COMM_WORLD),
        "MPI_Allgather");
  std::vector<int> lengths, begins;
  int total = 0;
  for (const Facts& one : all) {
    lengths.push_back(one.length);
    begins.push_back(total);
    total += one.length;
  }
  std::string names(static_cast<std::size_t>(total), '\0');
  check(MPI_Allgatherv(host.data(), mine.length, MPI_CHAR, names.data(), lengths.data(),
                       begins.data(), MPI_CHAR, MPI_COMM_WORLD),
        "MPI_Allgatherv");
  for (const Facts& one : all) {
    const auto at = static_cast<std::size_t>(one.first);
    plan.ranks.push_back(
        {names.substr(static_cast<std::size_t>(begins[at]), static_cast<std::size_t>(lengths[at])),
         one.pid, one.first});
    plan.ports.push_back(one.port);
  }
  std::string addresses;
  if (rank == 0) {
    plan.token = draw_pulse_token();
    for (const std::string& address : own_addresses())
      addresses += address + '\n';
  }
  check(MPI_Bcast(plan.token.data(), static_cast<int>(plan.token.size()), MPI_CHAR, 0,
                  MPI_COMM_WORLD),
        "MPI_Bcast");
  int length = static_cast<int>(addresses.size());
  check(MPI_Bcast(&length, 1, MPI_INT, 0, MPI_COMM_WORLD), "MPI_Bcast");
  addresses.resize(static_cast<std::size_t>(length));
  check(MPI_Bcast(addresses.data(), length, MPI_CHAR, 0, MPI_COMM_WORLD), "MPI_Bcast");
  for (std::size_t at = 0, end; (end = addresses.find('\n', at)) != std::string::npos; at = end + 1)
    plan.addresses.push_back(addresses.substr(at, end - at));
  return plan;
}

}  // namespace vfm::dist
