// The main() of every unit test program; alone in its file because it takes long to compile.
// SPDX-License-Identifier: Apache-2.0
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
