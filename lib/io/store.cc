// SPDX-License-Identifier: Apache-2.0
#include "io/store.h"
