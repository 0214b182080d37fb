// Matrix products on the GPU, by cuBLASLt.
//
// The library is opened when it is first needed, so that programs start as fast, and on machines
// without it. For a new shape the algorithms that its heuristics propose are timed once, on scratch
// memory, and the fastest is kept; with set_deterministic (determinism.h) nothing is timed, and the
// heuristics' first is taken. f32 products are f32 throughout (no TF32); sums are f32. cuBLASLt is
// column-major: a row-major C = A B is its C' = B' A', with the same bytes.
// SPDX-License-Identifier: Apache-2.0
#include <cublasLt.h>
#include <cuda_runtime.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "base/shared_library.h"
#include "ops/determinism.h"
#include "ops/matmul/matmul_kernels.h"
#include "tensor/device.h"
#include "tensor/device_cuda.h"

namespace vfm::ops {
namespace {

constexpr int kCandidates = 12, kTimedRuns = 4;

void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    fail("cuBLASLt cannot {} (status {})", what, static_cast<int>(status));
}

// The functions that we call, found when the library is opened.
struct Cublas {
#define VFM_EACH_CUBLASLT(x)                                                               \
  x(Create) x(GetVersion) x(Matmul) x(MatmulAlgoGetHeuristic) x(MatmulDescCreate)          \
      x(MatmulDescDestroy) x(MatmulDescSetAttribute) x(MatmulPreferenceCreate)             \
          x(MatmulPreferenceDestroy) x(MatmulPreferenceSetAttribute) x(MatrixLayoutCreate) \
              x(MatrixLayoutDestroy)
#define VFM_CUBLASLT(name) decltype(&cublasLt##name) name = nullptr;
  VFM_EACH_CUBLASLT(VFM_CUBLASLT)
#undef VFM_CUBLASLT

  Cublas() {
    // The one beside the CUDA toolkit that vfm was built with, then the system's.
    SharedLibrary file{VFM_CUDA_LIBRARIES "/libcublasLt.so.13", "libcublasLt.so.13",
                       VFM_CUDA_LIBRARIES "/libcublasLt.so.12", "libcublasLt.so.12"};
#define VFM_CUBLASLT(name) file.find("cublasLt" #name, name);
    VFM_EACH_CUBLASLT(VFM_CUBLASLT)
#undef VFM_CUBLASLT
    if (!file.missing().empty()) fail("no matrix products on the GPU: {}", file.missing());
    check(Create(&context), "start");
    workspace = Tensor({static_cast<std::int64_t>(kGemmWorkspace)}, DType::u8, Device::cuda);
  }

  cublasLtHandle_t context = nullptr;
  Tensor workspace;
};

// Never destroyed: the driver may be gone before static objects are.
Cublas& cublas() {
  static Cublas* const instance = new Cublas;
  return *instance;
}

// Everything an algorithm depends on: sizes, strides, alignments, types.
using Key = std::array<std::int64_t, 10>;

cudaDataType_t type_of(DType dtype) {
  if (dtype == DType::f8e4m3) return CUDA_R_8F_E4M3;
  return dtype == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

// The largest power of two up to 256 that divides the address.
std::uint32_t alignment_of(const void* p) {
  const auto address = reinterpret_cast<std::uintptr_t>(p) | 256;
  return static_cast<std::uint32_t>(address & -address);
}

// One product of one shape, with the chosen algorithm.
class Plan {
 public:
  // In cuBLASLt's terms: D (n x m) = B' (n x k) A' (k x m).
  Plan(std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a, const Matrix& b,
       DType c_dtype, std::int64_t c_stride) {
    Cublas& lt = cublas();
    check(lt.MatmulDescCreate(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "describe a product");
    set_transposed(CUBLASLT_MATMUL_DESC_TRANSA, b.transposed);
    set_transposed(CUBLASLT_MATMUL_DESC_TRANSB, a.transposed);
    if (a.dtype == DType::f8e4m3) {
      // Sums stay in the tensor cores, with fewer bits than f32: enough beside 3 bits of mantissa.
      const std::int8_t fast = 1;
      check(lt.MatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast,
                                      sizeof fast),
            "set how to sum");
    }
    layout(first_, b, n, k);
    layout(second_, a, k, m);
    check(lt.MatrixLayoutCreate(&result_, type_of(c_dtype), static_cast<std::uint64_t>(n),
                                static_cast<std::uint64_t>(m), c_stride),
          "describe a matrix");
  }
  ~Plan() {
    Cublas& lt = cublas();
    lt.MatmulDescDestroy(operation_);
    for (cublasLtMatrixLayout_t one : {first_, second_, result_})
      lt.MatrixLayoutDestroy(one);
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  // Products of f8e4m3: where the operands' scales are, before each product.
  void set_scales(const float* a, const float* b) const {
    const auto set = [this](cublasLtMatmulDescAttributes_t which, const float* scale) {
      check(cublas().MatmulDescSetAttribute(operation_, which, &scale, sizeof scale),
            "set a scale");
    };
    set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, b);
    set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, a);
  }

  std::vector<cublasLtMatmulAlgo_t> candidates(const void* a, const void* b, const void* c) const {
    Cublas& lt = cublas();
    cublasLtMatmulPreference_t preference = nullptr;
    check(lt.MatmulPreferenceCreate(&preference), "describe what it may use");
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t what, const auto& value) {
      check(lt.MatmulPreferenceSetAttribute(preference, what, &value, sizeof value),
            "set what it may use");
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kGemmWorkspace);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(b));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(a));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of(c));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(c));
    std::array<cublasLtMatmulHeuristicResult_t, kCandidates> results{};
    int found = 0;
    const cublasStatus_t status =
        lt.MatmulAlgoGetHeuristic(lt.context, operation_, first_, second_, result_, result_,
                                  preference, kCandidates, results.data(), &found);
    lt.MatmulPreferenceDestroy(preference);
    check(status, "propose an algorithm");
    std::vector<cublasLtMatmulAlgo_t> algorithms;
    for (int i = 0; i < found; ++i)
      if (results[static_cast<std::size_t>(i)].state == CUBLAS_STATUS_SUCCESS)
        algorithms.push_back(results[static_cast<std::size_t>(i)].algo);
    return algorithms;
  }

  cublasStatus_t run(const cublasLtMatmulAlgo_t& algorithm, const void* a, const void* b, void* c,
                     bool add) const {
    Cublas& lt = cublas();
    const float one = 1, beta = add ? 1.f : 0.f;
    return lt.Matmul(lt.context, operation_, &one, b, first_, a, second_, &beta, c, result_, c,
                     result_, &algorithm, lt.workspace.raw(), kGemmWorkspace, compute_stream());
  }

  cublasLtMatmulAlgo_t chosen{};

 private:
  void set_transposed(cublasLtMatmulDescAttributes_t which, bool transposed) {
    const cublasOperation_t value = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    check(cublas().MatmulDescSetAttribute(operation_, which, &value, sizeof value),
          "set a transposition");
  }
  // rows x columns as cuBLASLt sees the operand after its transposition.
  static void layout(cublasLtMatrixLayout_t& made, const Matrix& matrix, std::int64_t rows,
                     std::int64_t columns) {
    if (matrix.transposed) std::swap(rows, columns);
    check(
        cublas().MatrixLayoutCreate(&made, type_of(matrix.dtype), static_cast<std::uint64_t>(rows),
                                     static_cast<std::uint64_t>(columns), matrix.stride),
        "describe a matrix");
  }

  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t first_ = nullptr, second_ = nullptr, result_ = nullptr;
};

// What was fastest on this GPU in earlier runs: a line a shape, "GPU|version|key...|algorithm".
class Remembered {
 public:
  void open(std::string path) {
    path_ = std::move(path);
    loaded_ = false;
    std::error_code error;  // without the folder, add() writes nothing
    if (!path_.empty())
      std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), error);
  }
  const cublasLtMatmulAlgo_t* find(const Key& key) {
    load();
    const auto known = lines_.find(name(key));
    return known == lines_.end() ? nullptr : &known->second;
  }
  // A cache that cannot be written costs time in the next run, and nothing else.
  void add(const Key& key, const cublasLtMatmulAlgo_t& algorithm) {
    if (path_.empty()) return;
    std::ostringstream line;
    line << name(key) << '|';
    for (std::uint64_t word : algorithm.data)
      line << std::hex << word << ' ';
    line << "end\n";  // of a line that is cut off by a full disk the last number may be another
    std::ofstream(path_, std::ios::app) << line.str();
  }

 private:
  std::string name(const Key& key) {
    if (machine_.empty())
      machine_ = describe_gpu() + "|" + std::to_string(cublas().GetVersion()) + "|";
    std::string text = machine_;
    for (std::int64_t part : key)
      text += std::to_string(part) + " ";
    return text;
  }
  void load() {
    if (loaded_) return;
    loaded_ = true;
    std::ifstream file(path_);
    for (std::string line; !path_.empty() && std::getline(file, line);) {
      const std::size_t bar = line.rfind('|');
      if (bar == std::string::npos) continue;
      cublasLtMatmulAlgo_t algorithm{};
      std::istringstream words(line.substr(bar + 1));
      for (std::uint64_t& word : algorithm.data)
        words >> std::hex >> word;
      std::string end;
      if (words >> end && end == "end") lines_[line.substr(0, bar)] = algorithm;
    }
  }

  std::string path_, machine_;
  std::map<std::string, cublasLtMatmulAlgo_t> lines_;
  bool loaded_ = false;
};

Remembered& remembered() {
  static Remembered* const instance = new Remembered;
  return *instance;
}

// Times the candidates: on C, which the product overwrites anyway, or, if it adds to C, on a result
// of their own. Where results must not depend on the clock: what the heuristics put first.
cublasLtMatmulAlgo_t fastest(const Plan& plan, const void* a, const void* b, void* c, bool add,
                             std::int64_t m, DType c_dtype, std::int64_t c_stride) {
  const std::vector<cublasLtMatmulAlgo_t> algorithms = plan.candidates(a, b, c);
  if (algorithms.empty()) fail("cuBLASLt has no algorithm for a product of this shape");
  if (algorithms.size() == 1 || deterministic()) return algorithms[0];
  refuse_recording("time a product");  // nobody may wait for an event that is captured
  const Tensor scratch = add ? Tensor({m, c_stride}, c_dtype, Device::cuda) : Tensor();
  void* const result = add ? scratch.raw() : c;
  cudaEvent_t begin = nullptr, end = nullptr;
  check_gpu(cudaEventCreate(&begin), "make an event");
  check_gpu(cudaEventCreate(&end), "make an event");
  const cublasLtMatmulAlgo_t* best = nullptr;
  float best_time = 0;
  for (const cublasLtMatmulAlgo_t& algorithm : algorithms) {
    if (plan.run(algorithm, a, b, result, false) != CUBLAS_STATUS_SUCCESS) continue;
    check_gpu(cudaEventRecord(begin, compute_stream()), "record an event");
    for (int i = 0; i < kTimedRuns; ++i)
      plan.run(algorithm, a, b, result, false);
    check_gpu(cudaEventRecord(end, compute_stream()), "record an event");
    check_gpu(cudaEventSynchronize(end), "time a product");
    float time = 0;
    check_gpu(cudaEventElapsedTime(&time, begin, end), "time a product");
    if (best == nullptr || time < best_time) best = &algorithm, best_time = time;
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  if (best == nullptr) fail("no algorithm of cuBLASLt runs a product of this shape");
  return *best;
}

}  // namespace

void cuda::set_gemm_cache(std::string path) {
  remembered().open(std::move(path));
}

void cuda::gemm(std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a, const Matrix& b,
                void* c, DType c_dtype, std::int64_t c_stride, bool add) {
  if (k == 0) {
    if (!add)
      zero_bytes(c, Device::cuda, static_cast<std::size_t>(m * c_stride) * dtype_size(c_dtype));
    return;
  }
  const int types = (a.dtype == DType::bf16 ? 1 : 0) | (c_dtype == DType::bf16 ? 2 : 0) |
                    (a.transposed ? 4 : 0) | (b.transposed ? 8 : 0) | (deterministic() ? 16 : 0) |
                    (a.dtype == DType::f8e4m3 ? 32 : 0);
  const Key key{m,
                n,
                k,
                a.stride,
                b.stride,
                c_stride,
                types,
                alignment_of(a.data),
                alignment_of(b.data),
                alignment_of(c)};
  static std::map<Key, std::unique_ptr<Plan>>* const plans =
      new std::map<Key, std::unique_ptr<Plan>>;
  std::unique_ptr<Plan>& plan = (*plans)[key];
  bool untried = false;
  if (!plan) {
    auto made = std::make_unique<Plan>(m, n, k, a, b, c_dtype, c_stride);
    if (a.scale != nullptr) made->set_scales(a.scale, b.scale);
    // What earlier runs found fastest is as good as timed: not for those that must be repeatable.
    const cublasLtMatmulAlgo_t* known = deterministic() ? nullptr : remembered().find(key);
    made->chosen = known ? *known : fastest(*made, a.data, b.data, c, add, m, c_dtype, c_stride);
    if (known == nullptr && !deterministic()) remembered().add(key, made->chosen);
    untried = known != nullptr;
    plan = std::move(made);
  }
  if (a.scale != nullptr) plan->set_scales(a.scale, b.scale);
  cublasStatus_t status = plan->run(plan->chosen, a.data, b.data, c, add);
  if (status != CUBLAS_STATUS_SUCCESS && untried) {  // the file is damaged, or from elsewhere
    plan->chosen = fastest(*plan, a.data, b.data, c, add, m, c_dtype, c_stride);
    status = plan->run(plan->chosen, a.data, b.data, c, add);
  }
  check(status, "multiply");
}

}  // namespace vfm::ops
