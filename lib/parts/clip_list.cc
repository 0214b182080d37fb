// SPDX-License-Identifier: Apache-2.0
#include "parts/clip_list.h"
