// A fuzz target: one function over outside bytes, and seeds to mutate.
//
// Each *_fuzz.cc defines both. Linked with driver.cc it is a self-contained program that makes a
// short, reproducible run (the test suite does that, under sanitizers). For a long, coverage-guided
// search, compile the same file with `clang++ -fsanitize=fuzzer,address,undefined`, without
// driver.cc.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// Must take any bytes: either work or throw vfm::Error inside and catch it. Returns 0.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

/// Well-formed inputs to start from.
std::vector<std::string> fuzz_seeds();
