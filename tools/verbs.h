// Functions that each make the Tool of a verb.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "cli/runner.h"

std::unique_ptr<vfm::cli::Tool> make_caption_score();
std::unique_ptr<vfm::cli::Tool> make_caption_status();
std::unique_ptr<vfm::cli::Tool> make_clip_list();
std::unique_ptr<vfm::cli::Tool> make_clip_shots();
std::unique_ptr<vfm::cli::Tool> make_clip_status();
std::unique_ptr<vfm::cli::Tool> make_clip_unique();
std::unique_ptr<vfm::cli::Tool> make_embed_search();
std::unique_ptr<vfm::cli::Tool> make_embed_index();
std::unique_ptr<vfm::cli::Tool> make_embed_status();
std::unique_ptr<vfm::cli::Tool> make_shard_report();
std::unique_ptr<vfm::cli::Tool> make_shard_join();
std::unique_ptr<vfm::cli::Tool> make_shard_plan();
std::unique_ptr<vfm::cli::Tool> make_shard_status();
std::unique_ptr<vfm::cli::Tool> make_pack_plan();
std::unique_ptr<vfm::cli::Tool> make_pack_status();
std::unique_ptr<vfm::cli::Tool> make_generate_decode();
std::unique_ptr<vfm::cli::Tool> make_generate_cost();
std::unique_ptr<vfm::cli::Tool> make_generate_status();
std::unique_ptr<vfm::cli::Tool> make_train_check();
std::unique_ptr<vfm::cli::Tool> make_train_cost();
std::unique_ptr<vfm::cli::Tool> make_train_plan();
std::unique_ptr<vfm::cli::Tool> make_train_calibrate();
std::unique_ptr<vfm::cli::Tool> make_train_export();
std::unique_ptr<vfm::cli::Tool> make_train_recipe();
std::unique_ptr<vfm::cli::Tool> make_train_why();
