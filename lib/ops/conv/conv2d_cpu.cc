// SPDX-License-Identifier: Apache-2.0
#include <unordered_map>

#include "base/error.h"
#include "ops/conv/conv2d_plain.h"
#include "ops/conv/conv_kernels.h"
#include "ops/cpu/onednn.h"
#include "ops/pointwise/add.h"
#include "tensor/device.h"

namespace vfm::ops {
namespace {

using dnnl::memory;
using Backward = dnnl::convolution_backward_data;
using Weights = dnnl::convolution_backward_weights;
using Forward = dnnl::convolution_forward;

// The primitives of one convolution. Compiled kernels are kept by oneDNN itself.
class Convolution {
 public:
  Convolution(const Conv2d& c, DType dtype, std::int64_t images)
      : over_frames_(c.over_frames()),
        weights_last_(c.weights_last),
        type_(dtype == DType::bf16 ? memory::data_type::bf16 : memory::data_type::f32),
        x_(pixels(images, c.in, c.frames, c.height, c.width)),
        y_(pixels(images, c.out, c.out_frames(), c.out_height(), c.out_width())),
        w_shape_{c.out, c.in},
        bias_({c.out}, memory::data_type::f32, memory::format_tag::x) {
    if (over_frames_) {
      w_shape_.push_back(c.kernel_frames), strides_.push_back(c.stride_t);
      before_.push_back(c.pad_front), after_.push_back(c.pad_back);
    }
    w_shape_.insert(w_shape_.end(), {c.kernel_height, c.kernel_width});
    strides_.insert(strides_.end(), {c.stride_y, c.stride_x});
    before_.insert(before_.end(), {c.pad_top, c.pad_left});
    after_.insert(after_.end(), {c.pad_bottom, c.pad_right});
    w_any_ = {w_shape_, type_, memory::format_tag::any};
  }

  Forward::primitive_desc forward(bool bias, bool add, dnnl::prop_kind kind) const {
    dnnl::primitive_attr attributes;
    if (add) {
      dnnl::post_ops post;
      post.append_sum(1.f);
      attributes.set_post_ops(post);
    }
    const auto direct = dnnl::algorithm::convolution_direct;
    if (!bias)
      return described<Forward>(attributes, kind, direct, x_, w_any_, y_, strides_, before_,
                                after_);
    return described<Forward>(attributes, kind, direct, x_, w_any_, bias_, y_, strides_, before_,
                              after_);
  }
  Backward::primitive_desc backward_data() const {
    return described_gradient<Backward>(forward(false, false, dnnl::prop_kind::forward_training),
                                        dnnl::algorithm::convolution_direct, x_, w_any_, y_,
                                        strides_, before_, after_);
  }
  Weights::primitive_desc backward_weights() const {
    const memory::desc dw(w_shape_, memory::data_type::f32, memory::format_tag::any);
    return described_gradient<Weights>(forward(true, false, dnnl::prop_kind::forward_training),
                                       dnnl::algorithm::convolution_direct, x_, dw, bias_, y_,
                                       strides_, before_, after_);
  }

  memory::desc plain_weights(memory::data_type type) const {
    using Tag = memory::format_tag;
    if (weights_last_) return {w_shape_, type, over_frames_ ? Tag::odhwi : Tag::ohwi};
    return {w_shape_, type, over_frames_ ? Tag::oidhw : Tag::oihw};
  }
  memory::data_type type() const { return type_; }
  const memory::desc& x() const { return x_; }
  const memory::desc& y() const { return y_; }
  const memory::desc& bias() const { return bias_; }

 private:
  memory::desc pixels(std::int64_t images, std::int64_t channels, std::int64_t frames,
                      std::int64_t height, std::int64_t width) const {
    if (!over_frames_) return {{images, channels, height, width}, type_, memory::format_tag::nhwc};
    return {{images, channels, frames, height, width}, type_, memory::format_tag::ndhwc};
  }

  bool over_frames_, weights_last_;
  memory::data_type type_;
  memory::desc x_, y_;
  memory::dims w_shape_;
  memory::desc w_any_, bias_;
  memory::dims strides_, before_, after_;
};

// Bytes from the allocator of tensors, as a memory of oneDNN.
struct Room {
  explicit Room(const memory::desc& desc)
      : bytes({static_cast<std::int64_t>(desc.get_size())}, DType::u8),
        memory(desc, cpu_engine(), bytes.raw()) {}
  Tensor bytes;
  dnnl::memory memory;
};

memory view(const memory::desc& desc, const void* data) {
  return {desc, cpu_engine(), const_cast<void*>(data)};
}

dnnl::stream& stream() {
  thread_local dnnl::stream stream(cpu_engine());
  return stream;
}

std::int64_t floats(const memory::desc& desc) {
  return static_cast<std::int64_t>((desc.get_size() + sizeof(float) - 1) / sizeof(float));
}

// Runs `body`; false if this machine has no such kernel.
template <class Body>
bool attempt(const Conv2d& c, Body body) {
  try {
    body();
    return true;
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_unimplemented) return false;
    fail("oneDNN cannot convolve {}x{}x{}x{} with {}x{}x{}: {}", c.frames, c.height, c.width, c.in,
         c.kernel_frames, c.kernel_height, c.kernel_width, error.what());
  }
}

// What `made`, of oneDNN's primitive, says, or if there is none, `plain`.
template <class Made>
std::int64_t scratch_of(const Conv2d& conv, Made made, std::int64_t plain) {
  std::int64_t scratch = 0;
  return attempt(conv, [&] { scratch = made(); }) ? scratch : plain;
}

}  // namespace

std::int64_t conv2d_scratch(const Conv2d& conv, DType dtype, bool bias, bool residual) {
  const auto made = [&] {
    const Convolution c(conv, dtype, 1);
    return floats(c.forward(bias, residual, dnnl::prop_kind::forward_inference).weights_desc());
  };
  return scratch_of(conv, made, conv2d_plain_scratch(conv));
}

std::int64_t conv2d_backward_data_scratch(const Conv2d& conv, DType dtype) {
  const auto made = [&] {
    return floats(Convolution(conv, dtype, conv.images).backward_data().weights_desc());
  };
  return scratch_of(conv, made, conv2d_plain_scratch(conv));
}

std::int64_t conv2d_backward_weights_scratch(const Conv2d& conv, DType dtype) {
  const auto made = [&] {
    const Convolution c(conv, dtype, conv.images);
    return floats(c.backward_weights().diff_weights_desc()) + floats(c.bias()) +
           floats(c.plain_weights(memory::data_type::f32));
  };
  return scratch_of(conv, made, conv2d_plain_scratch(conv));
}

void cpu::conv2d(const Conv2d& conv, DType dtype, const void* x, const void* w, const float* bias,
                 const void* residual, void* y) {
  const auto run = [&] {
    const Convolution c(conv, dtype, 1);
    const auto desc =
        c.forward(bias != nullptr, residual != nullptr, dnnl::prop_kind::forward_inference);
    const Forward primitive(desc);
    Room weights(desc.weights_desc());
    memory given = view(c.plain_weights(c.type()), w);
    dnnl::reorder(given, weights.memory).execute(stream(), given, weights.memory);
    const std::size_t size = dtype_size(dtype);
    std::unordered_map<int, memory> arguments{{DNNL_ARG_SRC, view(c.x(), x)},
                                              {DNNL_ARG_WEIGHTS, weights.memory},
                                              {DNNL_ARG_DST, view(c.y(), y)}};
    if (bias != nullptr) arguments[DNNL_ARG_BIAS] = view(c.bias(), bias);
    if (residual != nullptr && residual != y)
      copy_bytes(y, Device::cpu, residual, Device::cpu,
                 static_cast<std::size_t>(conv.images * conv.y_step()) * size);
    for (std::int64_t i = 0; i < conv.images; ++i) {
      const auto at = [&](const void* data, std::int64_t step) {
        return static_cast<char*>(const_cast<void*>(data)) +
               static_cast<std::size_t>(i * step) * size;
      };
      arguments[DNNL_ARG_SRC].set_data_handle(at(x, conv.x_step));
      arguments[DNNL_ARG_DST].set_data_handle(at(y, conv.y_step()));
      primitive.execute(stream(), arguments);
    }
    stream().wait();
  };
  if (!attempt(conv, run)) conv2d_plain(conv, dtype, x, w, bias, residual, y);
}

void cpu::conv2d_backward_data(const Conv2d& conv, DType dtype, const void* dy, const void* w,
                               void* dx) {
  const auto run = [&] {
    const Convolution c(conv, dtype, conv.images);
    const auto desc = c.backward_data();
    Room weights(desc.weights_desc());
    memory given = view(c.plain_weights(c.type()), w);
    dnnl::reorder(given, weights.memory).execute(stream(), given, weights.memory);
    Backward(desc).execute(stream(), {{DNNL_ARG_DIFF_DST, view(c.y(), dy)},
                                      {DNNL_ARG_WEIGHTS, weights.memory},
                                      {DNNL_ARG_DIFF_SRC, view(c.x(), dx)}});
    stream().wait();
  };
  if (!attempt(conv, run)) conv2d_backward_data_plain(conv, dtype, dy, w, dx);
}

void cpu::conv2d_backward_weights(const Conv2d& conv, DType dtype, const void* x, const void* dy,
                                  float* dw, float* dbias) {
  const auto run = [&] {
    const Convolution c(conv, dtype, conv.images);
    const auto desc = c.backward_weights();
    Room made(desc.diff_weights_desc()), bias(c.bias());
    Weights(desc).execute(stream(), {{DNNL_ARG_SRC, view(c.x(), x)},
                                     {DNNL_ARG_DIFF_DST, view(c.y(), dy)},
                                     {DNNL_ARG_DIFF_WEIGHTS, made.memory},
                                     {DNNL_ARG_DIFF_BIAS, bias.memory}});
    const auto add = [](float* to, const void* from, const Shape& shape) {
      add_in_place(Tensor::borrow(to, shape, DType::f32, nullptr),
                   Tensor::borrow(from, shape, DType::f32, nullptr));
    };
    if (dw != nullptr) {
      Room plain(c.plain_weights(memory::data_type::f32));
      dnnl::reorder(made.memory, plain.memory).execute(stream(), made.memory, plain.memory);
      stream().wait();
      add(dw, plain.bytes.raw(), {conv.out * conv.in * conv.taps()});
    }
    stream().wait();
    if (dbias != nullptr) add(dbias, bias.bytes.raw(), {conv.out});
  };
  if (!attempt(conv, run)) conv2d_backward_weights_plain(conv, dtype, x, dy, dw, dbias);
}

}  // namespace vfm::ops
