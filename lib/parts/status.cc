// SPDX-License-Identifier: Apache-2.0
#include "parts/status.h"
