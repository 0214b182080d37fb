// The part of CUDA's runtime header that kernels, the library and their tests use, for the
// emulation, by subject. Device memory is the host's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime_device.h"
#include "runtime_device_code.h"
#include "runtime_graphs.h"
#include "runtime_launch.h"
#include "runtime_memory.h"
#include "runtime_streams.h"
#include "runtime_types.h"
