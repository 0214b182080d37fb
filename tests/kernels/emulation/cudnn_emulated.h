// An emulated cuDNN (cudnn_emulated.cc) for the tests of what is done with its results.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace vfm::test {

/// How it behaves, and how often it was called.
struct EmulatedCudnn {
  std::string missing;                                 ///< why_no_cudnn()
  bool forward_fails = false, backward_fails = false;  ///< throws an Error
  bool empty_samples = true;                           ///< cudnn_takes_empty_samples()
  float out_factor = 1, dk_factor = 1;                 ///< of its results; 1 is right
  float sums_off = 0;                                  ///< added to its log-sum-exps
  int forward_calls = 0, backward_calls = 0;
  std::string fp8_missing;  ///< why_no_cudnn_fp8()
  bool fp8_fails = false;   ///< throws an Error
  bool fp8_bf16 = false;    ///< cudnn_fp8_writes_bf16()
  float fp8_factor = 1;     ///< of its result; 1 is right
  int fp8_calls = 0;
  bool convolution_fails = false;
  float convolution_factor = 1;
  int convolutions = 0;
};

EmulatedCudnn& emulated_cudnn();

}  // namespace vfm::test
