// In place of lib/dist/nccl_library_cuda.cc.
// SPDX-License-Identifier: Apache-2.0
#include "nccl_emulated.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/half.h"
#include "dist/nccl_library_cuda.h"
#include "emulation.h"
#include "nccl.h"
#include "streams.h"

namespace {

namespace emulation = vfm::emulation;
using vfm::test::emulated_nccl;

enum class Kind { pass, broadcast, all_gather, all_reduce, reduce, reduce_scatter };

struct Clique;

// What one rank does in an operation.
struct Part {
  ncclComm* comm = nullptr;
  const void* from = nullptr;
  void* to = nullptr;
  CUstream_st* stream = nullptr;
  std::uint64_t place = 0;  // 0: not queued yet
  bool come = false;
};

struct Meeting {
  Kind kind = Kind::pass;
  std::size_t count = 0;
  ncclDataType_t type = ncclUint8;
  int root = 0;
  std::map<int, Part> parts;  // by rank
  std::size_t wanted = 0;     // parts
  int target = 0;             // of what is passed; the root sends it
  bool done = false;

  void perform();
  bool all_here() const;
  bool concerns(int rank) const { return kind != Kind::pass || rank == root || rank == target; }
};

// The ranks of one unique id.
struct Clique {
  std::vector<ncclComm*> comms;
  std::vector<std::shared_ptr<Meeting>> collectives;  // by number
  std::map<std::pair<int, int>, std::vector<std::shared_ptr<Meeting>>> passed;
};

struct Call {
  std::shared_ptr<Meeting> meeting;
  int rank;
};

}  // namespace

struct ncclComm {
  std::shared_ptr<Clique> clique;
  int rank = 0, device = 0;
  std::size_t collectives = 0;  // called
  std::map<std::pair<int, int>, std::size_t> passed;
  ncclResult_t error = ncclSuccess;
  std::string last;
  bool aborted = false;

  ncclResult_t fail(ncclResult_t result, const std::string& text) {
    last = text;
    return error = result;
  }
};

namespace {

std::map<std::string, std::shared_ptr<Clique>>& cliques() {
  static std::map<std::string, std::shared_ptr<Clique>> all;
  return all;
}

// Of the calling thread, between GroupStart and GroupEnd.
struct Group {
  int depth = 0;
  std::vector<Call> calls;
};
Group& group() {
  thread_local Group instance;
  return instance;
}

std::size_t size_of(ncclDataType_t type) {
  return type == ncclUint8 ? 1 : type == ncclBfloat16 ? 2 : type == ncclFloat32 ? 4 : 8;
}

template <class Value, class Read, class Write>
void add_as(std::vector<const void*> parts, void* to, std::size_t count, Read read, Write write) {
  std::vector<Value> sums(count);
  for (std::size_t i = 0; i < count; ++i) {
    auto sum = read(static_cast<const Value*>(parts.back())[i]);
    for (std::size_t p = parts.size() - 1; p-- > 0;)
      sum += read(static_cast<const Value*>(parts[p])[i]);
    sums[i] = write(sum);
  }
  if (count > 0) std::memcpy(to, sums.data(), count * sizeof(Value));
}

void add(const std::vector<const void*>& parts, void* to, std::size_t count, ncclDataType_t type) {
  const auto same = [](auto value) { return value; };
  if (type == ncclFloat32)
    add_as<float>(parts, to, count, same, same);
  else if (type == ncclFloat64)
    add_as<double>(parts, to, count, same, same);
  else if (type == ncclInt64)
    add_as<std::int64_t>(parts, to, count, same, same);
  else if (type == ncclBfloat16)
    add_as<std::uint16_t>(parts, to, count, vfm::bfloat16_to_float, vfm::float_to_bfloat16);
  else
    emulation::stop("NCCL adds what is no number");
}

const void* behind(const void* at, std::size_t bytes) {
  return static_cast<const char*>(at) + bytes;
}

}  // namespace

bool Meeting::all_here() const {
  if (parts.size() < wanted) return false;
  for (const auto& [rank, part] : parts)
    if (!part.come) return false;
  return true;
}

// All inputs are read before an output is written, which may be one.
void Meeting::perform() {
  const std::size_t bytes = count * size_of(type);
  std::vector<std::pair<void*, std::vector<char>>> writes;
  const auto write = [&](void* to, const std::function<void(char*)>& fill, std::size_t size) {
    writes.emplace_back(to, std::vector<char>(size));
    fill(writes.back().second.data());
  };
  const auto copy_of = [&](const void* from) {
    return [=](char* to) { std::memcpy(to, from, bytes); };
  };
  const auto sum_at = [&](std::size_t offset) {
    std::vector<const void*> inputs;
    for (const auto& [rank, part] : parts)
      inputs.push_back(behind(part.from, offset));
    return [=, this](char* to) { add(inputs, to, count, type); };
  };
  for (const auto& [rank, part] : parts) {
    if (kind == Kind::pass && part.to != nullptr)
      write(part.to, copy_of(parts.at(root).from), bytes);
    if (kind == Kind::broadcast) write(part.to, copy_of(parts.at(root).from), bytes);
    if (kind == Kind::all_reduce || (kind == Kind::reduce && rank == root))
      write(part.to, sum_at(0), bytes);
    if (kind == Kind::reduce_scatter)
      write(part.to, sum_at(static_cast<std::size_t>(rank) * bytes), bytes);
    if (kind == Kind::all_gather)
      for (const auto& [other, source] : parts)
        write(static_cast<char*>(part.to) + static_cast<std::size_t>(other) * bytes,
              copy_of(source.from), bytes);
  }
  for (const auto& [to, values] : writes)
    if (!values.empty()) std::memcpy(to, values.data(), values.size());
}

namespace {

// Whether all calls of a group, of one rank, are done; has the others come to them as far as they
// can. Where one of them has ended it never is, until this rank's communicator is aborted, too.
bool meet(const std::vector<Call>& calls) {
  const auto try_all = [&] {
    bool all = true;
    for (const Call& call : calls) {
      Meeting& meeting = *call.meeting;
      ncclComm& comm = *meeting.parts.at(call.rank).comm;
      bool ended = false;
      for (const ncclComm* const other : comm.clique->comms)
        ended = ended || (other->aborted && meeting.concerns(other->rank));
      if (!meeting.done && ended && !comm.aborted)
        comm.fail(ncclRemoteError, "a remote rank has ended");
      if (!meeting.done && !ended && meeting.all_here()) {
        meeting.perform();
        meeting.done = true;
        emulation::monitor().change();
      }
      all = all && (meeting.done || comm.aborted);
    }
    return all;
  };
  for (const Call& call : calls)
    call.meeting->parts.at(call.rank).come = true;
  if (try_all()) return true;
  for (const Call& call : calls) {
    if (call.meeting->done) continue;
    std::vector<Part> others;
    for (const auto& [rank, part] : call.meeting->parts)
      if (rank != call.rank && !part.come && part.place > 0) others.push_back(part);
    for (const Part& other : others)
      emulation::advance(other.stream, other.place);
  }
  return try_all();
}

ncclResult_t end_group() {
  Group& g = group();
  const std::vector<Call> calls = std::exchange(g.calls, {});
  if (calls.empty()) return ncclSuccess;
  CUstream_st* const stream = calls[0].meeting->parts.at(calls[0].rank).stream;
  // Where it will stand; nobody comes to it before it is queued.
  const std::lock_guard held(emulation::monitor());
  const std::uint64_t place = emulation::end_of(stream) + 1;
  for (const Call& call : calls)
    call.meeting->parts.at(call.rank).place = place;
  if (emulation::submit_meeting(stream, [calls] { return meet(calls); }) != place)
    emulation::stop("NCCL's work is not where it should be");
  return ncclSuccess;
}

ncclResult_t call(std::shared_ptr<Meeting> meeting, int rank, const Part& part) {
  meeting->parts[rank] = part;
  group().calls.push_back({std::move(meeting), rank});
  return group().depth > 0 ? ncclSuccess : end_group();
}

// A rank's next collective, which must be as the others have it.
ncclResult_t collective(Meeting wanted, const void* from, void* to, ncclComm_t comm,
                        cudaStream_t stream) {
  const std::lock_guard held(emulation::monitor());
  auto& all = comm->clique->collectives;
  const std::size_t number = comm->collectives++;
  if (number == all.size()) {
    wanted.wanted = comm->clique->comms.size();
    all.push_back(std::make_shared<Meeting>(wanted));
  }
  const Meeting& meeting = *all[number];
  if (meeting.kind != wanted.kind || meeting.count != wanted.count || meeting.type != wanted.type ||
      meeting.root != wanted.root)
    return comm->fail(ncclInvalidUsage, "the ranks call different collectives");
  return call(all[number], comm->rank, {comm, from, to, emulation::own_stream(stream)});
}

ncclResult_t pass(int from_rank, int to_rank, const void* from, void* to, std::size_t count,
                  ncclDataType_t type, ncclComm_t comm, cudaStream_t stream) {
  const std::lock_guard held(emulation::monitor());
  auto& all = comm->clique->passed[{from_rank, to_rank}];
  const std::size_t number = comm->passed[{from_rank, to_rank}]++;
  if (number == all.size()) {
    Meeting made;
    made.count = count, made.type = type, made.root = from_rank, made.target = to_rank;
    made.wanted = 2;
    all.push_back(std::make_shared<Meeting>(made));
  }
  if (all[number]->count != count || all[number]->type != type)
    return comm->fail(ncclInvalidUsage, "a rank receives another size than is sent");
  return call(all[number], comm->rank, {comm, from, to, emulation::own_stream(stream)});
}

}  // namespace

vfm::test::EmulatedNccl& vfm::test::emulated_nccl() {
  static EmulatedNccl instance;
  return instance;
}

ncclResult_t ncclGetVersion(int* version) {
  *version = 0;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const std::lock_guard held(emulation::monitor());
  static int number = 0;
  *id = {};
  const std::string text = "emulated " + std::to_string(++number);
  std::memcpy(id->internal, text.data(), text.size());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  const std::lock_guard held(emulation::monitor());
  std::shared_ptr<Clique>& clique = cliques()[id.internal];
  if (!clique) {
    clique = std::make_shared<Clique>();
    clique->comms.resize(static_cast<std::size_t>(ranks));
  }
  *comm = new ncclComm{clique, rank, emulation::device()};
  clique->comms[static_cast<std::size_t>(rank)] = *comm;
  ++emulated_nccl().communicators;
  emulation::monitor().change();
  const auto& all = clique->comms;
  while (emulated_nccl().apart || std::count(all.begin(), all.end(), nullptr) > 0)
    if (!emulation::monitor().wait_for_change(emulation::monitor().changes(),
                                              std::chrono::seconds(60)))
      emulation::stop("NCCL waits for a rank for ever");
  for (const ncclComm* const other : all)
    if (other != *comm && other->device == (*comm)->device)
      return (*comm)->fail(ncclInvalidUsage, "two ranks on one device");
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t) {
  const std::lock_guard held(emulation::monitor());
  ++emulated_nccl().destroyed;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const std::lock_guard held(emulation::monitor());
  ++emulated_nccl().aborted;
  comm->aborted = true;
  emulation::monitor().change();
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  const std::lock_guard held(emulation::monitor());
  *error = comm->error;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError    ? "remote process exited or there was a network error"
         : result == ncclInvalidUsage ? "invalid usage"
                                      : "internal error";
}

const char* ncclGetLastError(ncclComm_t comm) {
  return comm == nullptr ? "" : comm->last.c_str();
}

ncclResult_t ncclGroupStart() {
  ++group().depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  return --group().depth > 0 ? ncclSuccess : end_group();
}

ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return pass(comm->rank, peer, from, nullptr, count, type, comm, stream);
}
ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return pass(peer, comm->rank, nullptr, to, count, type, comm, stream);
}
ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream) {
  return collective({Kind::broadcast, count, type, root}, from, to, comm, stream);
}
ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return collective({Kind::all_gather, count, type}, from, to, comm, stream);
}
ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t, ncclComm_t comm, cudaStream_t stream) {
  return collective({Kind::all_reduce, count, type}, from, to, comm, stream);
}
ncclResult_t ncclReduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                        ncclRedOp_t, int root, ncclComm_t comm, cudaStream_t stream) {
  return collective({Kind::reduce, count, type, root}, from, to, comm, stream);
}
ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t, ncclComm_t comm, cudaStream_t stream) {
  return collective({Kind::reduce_scatter, count, type}, from, to, comm, stream);
}

vfm::dist::nccl::Library::Library() {
#define VFM_NCCL(name) name = nccl##name;
  VFM_EACH_NCCL(VFM_NCCL)
#undef VFM_NCCL
  missing = emulated_nccl().missing;
}

const vfm::dist::nccl::Library& vfm::dist::nccl::library() {
  static const Library instance;
  return instance;
}
