// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "dist/device_carrier.h"
#include "dist/message_group.h"
#include "dist/nccl_communicator_cuda.h"
#include "kernels/ordered_sum.h"
#include "tensor/device.h"
#include "tensor/device_cuda.h"
#include "tensor/kernel_type.h"

namespace vfm::dist {
namespace {

using nccl::library;

/// Where the parts of each rank begin in a tensor, and how long they are; elements.
struct DeviceParts {
  DeviceParts(const Tensor& tensor, const std::vector<std::int64_t>& counts, std::size_t element) {
    auto* at = static_cast<std::byte*>(tensor.raw());
    for (const std::int64_t count : counts) {
      begins.push_back(at);
      lengths.push_back(static_cast<std::size_t>(count));
      at += lengths.back() * element;
    }
  }
  bool even() const {
    return std::all_of(lengths.begin(), lengths.end(),
                       [&](std::size_t n) { return n == lengths.front(); });
  }
  std::vector<std::byte*> begins;
  std::vector<std::size_t> lengths;
};

ncclDataType_t type_of(Sum sum) {
  switch (sum) {
    case Sum::f32:
      return ncclFloat32;
    case Sum::bf16:
      return ncclBfloat16;
    case Sum::f64:
      return ncclFloat64;
    case Sum::i64:
      return ncclInt64;
    case Sum::none:
      break;
  }
  fail("a sum of what is no number");
}

/// Queues one call on the stream.
class Queueing {
 public:
  Queueing(Communicator& communicator, const Call& call, const std::string& place, bool ordered)
      : c_(communicator),
        call_(call),
        place_(place),
        // The order of whole numbers does not matter.
        ordered_(ordered && (call.sum == Sum::f32 || call.sum == Sum::bf16)),
        own_(static_cast<std::size_t>(communicator.rank())) {}

  /// Returns memory that is used until the call is done.
  Tensor queue() {
    switch (call_.operation) {
      case Operation::all_gather:
        gather(DeviceParts(call_.out, call_.from, call_.element), call_.in.raw());
        break;
      case Operation::reduce_scatter:
        reduce_scatter();
        break;
      case Operation::all_reduce:
        all_reduce();
        break;
      case Operation::all_to_all:
        all_to_all();
        break;
      case Operation::broadcast:
        if (call_.out.bytes() > 0)
          check(library().Broadcast(call_.out.raw(), call_.out.raw(), call_.out.bytes(), ncclUint8,
                                    call_.source, c_.comm(), c_.stream()));
        break;
      case Operation::exchange:
      case Operation::send:
      case Operation::receive:
        pass();
        break;
      default:
        fail("{} has no tensors", operation_name(call_.operation));
    }
    return staging_;
  }

 private:
  void check(ncclResult_t status) { c_.check(status, place_); }
  std::size_t ranks() const { return static_cast<std::size_t>(c_.size()); }

  /// Several that are one for NCCL, so that none waits for another.
  template <class Calls>
  void together(const Calls& calls) {
    check(library().GroupStart());
    calls();
    check(library().GroupEnd());
  }
  void send(std::size_t peer, const void* from, std::size_t bytes) {
    if (bytes > 0)
      check(library().Send(from, bytes, ncclUint8, static_cast<int>(peer), c_.comm(), c_.stream()));
  }
  void receive(std::size_t peer, void* to, std::size_t bytes) {
    if (bytes > 0)
      check(library().Recv(to, bytes, ncclUint8, static_cast<int>(peer), c_.comm(), c_.stream()));
  }
  void copy_here(void* to, const void* from, std::size_t bytes) {
    if (bytes > 0 && to != from)
      check_gpu(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, c_.stream()),
                "copy on the GPU");
  }

  void gather(const DeviceParts& parts, const void* in) {
    const std::size_t element = call_.element;
    if (parts.even()) {
      if (parts.lengths[0] > 0)
        check(library().AllGather(in, parts.begins[0], parts.lengths[0] * element, ncclUint8,
                                  c_.comm(), c_.stream()));
      return;
    }
    together([&] {
      for (std::size_t r = 0; r < ranks(); ++r)
        if (parts.lengths[r] > 0)
          check(library().Broadcast(r == own_ ? in : parts.begins[r], parts.begins[r],
                                    parts.lengths[r] * element, ncclUint8, static_cast<int>(r),
                                    c_.comm(), c_.stream()));
    });
  }

  void reduce_scatter() {
    const DeviceParts parts(call_.in, call_.to, call_.element);
    if (ordered_) return reduce_in_order(parts, static_cast<std::byte*>(call_.out.raw()));
    const ncclDataType_t type = type_of(call_.sum);
    if (parts.even()) {
      if (parts.lengths[0] > 0)
        check(library().ReduceScatter(parts.begins[0], call_.out.raw(), parts.lengths[0], type,
                                      ncclSum, c_.comm(), c_.stream()));
      return;
    }
    together([&] {
      for (std::size_t r = 0; r < ranks(); ++r)
        if (parts.lengths[r] > 0)
          check(library().Reduce(parts.begins[r], r == own_ ? call_.out.raw() : nullptr,
                                 parts.lengths[r], type, ncclSum, static_cast<int>(r), c_.comm(),
                                 c_.stream()));
    });
  }

  void all_reduce() {
    void* const values = call_.out.raw();
    if (ordered_) {
      const DeviceParts parts(call_.out, call_.to, call_.element);
      reduce_in_order(parts, parts.begins[own_]);
      return gather(parts, parts.begins[own_]);
    }
    const std::size_t count = call_.out.bytes() / call_.element;
    if (count > 0)
      check(library().AllReduce(values, values, count, type_of(call_.sum), ncclSum, c_.comm(),
                                c_.stream()));
  }

  /// As dist/message_group.h: the others' parts of what belongs here come a chunk at a time.
  void reduce_in_order(const DeviceParts& parts, std::byte* out) {
    const std::size_t element = call_.element, own = parts.lengths[own_];
    const std::size_t chunk = sum_chunk(element, ranks());
    const std::size_t most = *std::max_element(parts.lengths.begin(), parts.lengths.end());
    const std::size_t stride = (std::min(chunk, own) * element + 15) / 16 * 16 / element;
    staging_ = Tensor({static_cast<std::int64_t>((ranks() - 1) * stride * element)}, DType::u8,
                      Device::cuda);
    auto* const staging = static_cast<std::byte*>(staging_.raw());
    for (std::size_t begin = 0; begin < most; begin += chunk) {
      const auto length = [&](std::size_t part) {
        return part > begin ? std::min(chunk, part - begin) : 0;
      };
      together([&] {
        for (std::size_t r = 0; r < ranks(); ++r) {
          if (r == own_) continue;
          send(r, parts.begins[r] + begin * element, length(parts.lengths[r]) * element);
          receive(r, staging + (r - (r > own_)) * stride * element, length(own) * element);
        }
      });
      check_gpu(
          kernels::ordered_sum(call_.sum == Sum::f32 ? kernels::Type::f32 : kernels::Type::bf16,
                               parts.begins[own_] + begin * element, c_.rank(), staging,
                               static_cast<std::int64_t>(stride), c_.size(), out + begin * element,
                               static_cast<std::int64_t>(length(own)), c_.stream()),
          "add up what the ranks have");
    }
  }

  void all_to_all() {
    const DeviceParts to(call_.in, call_.to, call_.element),
        from(call_.out, call_.from, call_.element);
    copy_here(from.begins[own_], to.begins[own_], to.lengths[own_] * call_.element);
    together([&] {
      for (std::size_t r = 0; r < ranks(); ++r) {
        if (r == own_) continue;
        send(r, to.begins[r], to.lengths[r] * call_.element);
        receive(r, from.begins[r], from.lengths[r] * call_.element);
      }
    });
  }

  void pass() {
    if (call_.target == c_.rank())
      return copy_here(call_.out.raw(), call_.in.raw(), call_.in.bytes());
    together([&] {
      if (call_.target >= 0)
        send(static_cast<std::size_t>(call_.target), call_.in.raw(), call_.in.bytes());
      if (call_.source >= 0)
        receive(static_cast<std::size_t>(call_.source), call_.out.raw(), call_.out.bytes());
    });
  }

  Communicator& c_;
  const Call& call_;
  const std::string& place_;
  const bool ordered_;
  const std::size_t own_;
  Tensor staging_;
};

class NcclPending final : public Pending {
 public:
  NcclPending(std::shared_ptr<Communicator> communicator, const Call& call, std::string place,
              Tensor staging, std::function<void()> ended)
      : communicator_(std::move(communicator)),
        place_(std::move(place)),
        kept_{call.in, call.out, std::move(staging)},
        done_(communicator_->queued(place_, std::move(ended))) {}
  ~NcclPending() override {
    // Memory is reused in the order of the compute stream.
    if (!kept_.empty()) cudaStreamWaitEvent(compute_stream(), done_.get(), 0);
  }

  void wait() override {
    poll();
    check_gpu(cudaStreamWaitEvent(compute_stream(), done_.get(), 0), "wait for other ranks");
    kept_.clear();
  }
  bool done() override {
    poll();
    const cudaError_t status = cudaEventQuery(done_.get());
    if (status == cudaErrorNotReady) return false;
    check_gpu(status, "ask for what other ranks send");
    return true;
  }

 private:
  void poll() {
    const auto held = communicator_->lock();
    communicator_->poll(place_);
  }
  const std::shared_ptr<Communicator> communicator_;
  const std::string place_;
  std::vector<Tensor> kept_;
  const std::shared_ptr<CUevent_st> done_;
};

class NcclCarrier final : public DeviceCarrier {
 public:
  NcclCarrier(std::shared_ptr<Communicator> communicator, bool ordered)
      : communicator_(std::move(communicator)), ordered_(ordered) {}

  std::unique_ptr<Pending> start(const Call& call, const std::string& place,
                                 std::function<void()> ended) override {
    refuse_recording("exchange tensors with other ranks");
    const auto held = communicator_->lock();
    communicator_->poll(place);
    const std::shared_ptr<CUevent_st> begin = event_on(compute_stream());
    check_gpu(cudaStreamWaitEvent(communicator_->stream(), begin.get(), 0),
              "wait for what is computed");
    Tensor staging = Queueing(*communicator_, call, place, ordered_).queue();
    return std::make_unique<NcclPending>(communicator_, call, place, std::move(staging),
                                         std::move(ended));
  }

 private:
  const std::shared_ptr<Communicator> communicator_;
  const bool ordered_;
};

}  // namespace

std::string why_no_nccl() {
  return library().missing;
}

std::unique_ptr<DeviceCarrier> nccl_carrier(Group& group, const std::string& where, bool ordered,
                                            std::shared_ptr<const Section> section) {
  return std::make_unique<NcclCarrier>(
      std::make_shared<Communicator>(group, where, std::move(section)), ordered);
}

}  // namespace vfm::dist
