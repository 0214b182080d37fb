// SPDX-License-Identifier: Apache-2.0
#include "ops/matmul/gemm_cpu.h"

#include <map>
#include <optional>
#include <tuple>

#include "base/error.h"
#include "ops/cpu/onednn.h"
#include "tensor/device.h"

namespace vfm::ops {
namespace {

// Everything a compiled product depends on.
using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                       std::int64_t, int>;

struct Product {
  dnnl::matmul primitive;
  dnnl::memory a, b, c, scratch;
  Tensor scratch_bytes;
};

dnnl::memory::desc describe(std::int64_t rows, std::int64_t columns, DType dtype,
                            std::int64_t stride, bool transposed) {
  const auto type =
      dtype == DType::bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
  const dnnl::memory::dims strides =
      transposed ? dnnl::memory::dims{1, stride} : dnnl::memory::dims{stride, 1};
  return {{rows, columns}, type, strides};
}

// Nothing if this machine has no such kernel.
std::optional<Product> compile(std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a,
                               const Matrix& b, DType c_dtype, std::int64_t c_stride, bool add) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (add) {
    dnnl::post_ops post;
    post.append_sum(1.f);
    attributes.set_post_ops(post);
  }
  const auto a_desc = describe(m, k, a.dtype, a.stride, a.transposed);
  const auto b_desc = describe(k, n, b.dtype, b.stride, b.transposed);
  const auto c_desc = describe(m, n, c_dtype, c_stride, false);
  try {
    const auto desc = described<dnnl::matmul>(attributes, a_desc, b_desc, c_desc);
    Product product;
    product.primitive = dnnl::matmul(desc);
    product.a = dnnl::memory(a_desc, cpu_engine(), nullptr);
    product.b = dnnl::memory(b_desc, cpu_engine(), nullptr);
    product.c = dnnl::memory(c_desc, cpu_engine(), nullptr);
    product.scratch = dnnl::memory(desc.scratchpad_desc(), cpu_engine(), nullptr);
    product.scratch_bytes =
        Tensor({static_cast<std::int64_t>(desc.scratchpad_desc().get_size())}, DType::u8);
    product.scratch.set_data_handle(product.scratch_bytes.raw());
    return product;
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_unimplemented) return std::nullopt;
    fail("oneDNN cannot multiply {}x{} by {}x{}: {}", m, k, k, n, error.what());
  }
}

void multiply_f32(std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a, const Matrix& b,
                  float* c, std::int64_t c_stride, bool add) {
  const dnnl_status_t status =
      dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, 1.f,
                 static_cast<const float*>(a.data), a.stride, static_cast<const float*>(b.data),
                 b.stride, add ? 1.f : 0.f, c, c_stride);
  if (status != dnnl_success) fail("oneDNN cannot multiply {}x{} by {}x{}", m, k, k, n);
}

Matrix widen(const Matrix& matrix, std::int64_t rows, std::int64_t columns, Tensor& storage) {
  const std::int64_t lines = matrix.transposed ? columns : rows;
  const std::int64_t width = matrix.transposed ? rows : columns;
  storage = Tensor({lines, width});
  const auto* from = static_cast<const std::uint16_t*>(matrix.data);
  for (std::int64_t i = 0; i < lines; ++i)
    convert_bf16_to_f32(from + i * matrix.stride, storage.data<float>() + i * width, width);
  return {storage.raw(), DType::f32, width, matrix.transposed};
}

void multiply_widened(std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a,
                      const Matrix& b, void* c, DType c_dtype, std::int64_t c_stride, bool add) {
  Tensor wide_a, wide_b;
  const Matrix a32 = widen(a, m, k, wide_a), b32 = widen(b, k, n, wide_b);
  if (c_dtype == DType::f32)
    return multiply_f32(m, n, k, a32, b32, static_cast<float*>(c), c_stride, add);
  const Tensor wide_c({m, n});
  multiply_f32(m, n, k, a32, b32, wide_c.data<float>(), n, false);
  for (std::int64_t i = 0; i < m; ++i)
    convert_f32_to_bf16(wide_c.data<float>() + i * n, static_cast<std::uint16_t*>(c) + i * c_stride,
                        n);
}

// Whether products of bf16 have kernels here.
bool has_low_products() {
  static const bool has = [] {
    const Matrix square{nullptr, DType::bf16, 64, false};
    return compile(64, 64, 64, square, square, DType::f32, 64, false).has_value();
  }();
  return has;
}

}  // namespace

std::int64_t gemm_scratch(std::int64_t m, std::int64_t n, std::int64_t k, DType dtype,
                          DType c_dtype) {
  if (dtype == DType::f32 || has_low_products()) return 0;
  return m * k + k * n + (c_dtype == DType::f32 ? 0 : m * n);  // multiply_widened
}

void gemm_cpu(std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a, const Matrix& b,
              void* c, DType c_dtype, std::int64_t c_stride, bool add) {
  if (k == 0) {  // which oneDNN divides by
    for (std::int64_t row = 0; row < m && !add; ++row)
      zero_bytes(static_cast<std::byte*>(c) +
                     static_cast<std::size_t>(row * c_stride) * dtype_size(c_dtype),
                 Device::cpu, static_cast<std::size_t>(n) * dtype_size(c_dtype));
    return;
  }
  if (a.dtype == DType::f32)
    return multiply_f32(m, n, k, a, b, static_cast<float*>(c), c_stride, add);

  thread_local std::map<Key, std::optional<Product>> compiled;
  thread_local dnnl::stream stream(cpu_engine());
  const int kind = (a.transposed ? 1 : 0) | (b.transposed ? 2 : 0) | (add ? 4 : 0) |
                   (c_dtype == DType::f32 ? 8 : 0);
  const Key key{m, n, k, a.stride, b.stride, c_stride, kind};
  auto known = compiled.find(key);
  if (known == compiled.end()) {
    if (compiled.size() > 4096) compiled.clear();  // packs of ever new sizes must not fill memory
    known = compiled.emplace(key, compile(m, n, k, a, b, c_dtype, c_stride, add)).first;
  }
  if (!known->second) return multiply_widened(m, n, k, a, b, c, c_dtype, c_stride, add);
  Product& product = *known->second;
  product.a.set_data_handle(const_cast<void*>(a.data));
  product.b.set_data_handle(const_cast<void*>(b.data));
  product.c.set_data_handle(c);
  product.primitive.execute(stream, {{DNNL_ARG_SRC, product.a},
                                     {DNNL_ARG_WEIGHTS, product.b},
                                     {DNNL_ARG_DST, product.c},
                                     {DNNL_ARG_SCRATCHPAD, product.scratch}});
}

}  // namespace vfm::ops
