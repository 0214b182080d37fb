// A whole run of vfm-shard: what it reads, drops, writes and tells; run again; refused.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "dataset_run.h"

using namespace vfm;
using namespace vfm::dataset;

namespace {

std::string png_header(int width, int height) {
  std::string png("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\0\0\0\0\0\x08\x02\0\0\0", 29);
  png[18] = static_cast<char>(width >> 8), png[19] = static_cast<char>(width);
  png[22] = static_cast<char>(height >> 8), png[23] = static_cast<char>(height);
  return png + std::string(40, 'x');
}

std::string by_encoder(const std::string& facts, int hash) {
  return fmt::format(R"({{{},"video_encoder":{{"name":"own","hash":"{}"}}}})", facts, hash);
}

/// Samples of all fates in three shards, one of them with a column in another order.
void add_fates(DatasetRun& run) {
  const std::vector<float> right = {1, 0, 0}, nearly = {1, 0.05f, 0};
  run.add(
      "one",
      {video("a1", by_encoder(R"("width":640,"height":480,"seconds":3,"fps":24.5,"frames":73,)"
                              R"("source_hash":"h1","source":"raw/1.mp4","kind":"x")",
                              1)),
       video("a2", R"({"width":1280,"height":720,"duration":12,"source":"s2","kind":"x"})"),
       video("a3", R"({"width":320,"height":240,"source_hash":"h3","kind":"y"})", "video a1"),
       video("a4", R"({"motion":0.1,"source":"s4"})"), video("a5", R"({"kind":"x","source":"s8"})"),
       video("a6", R"({"kind":"x"})"), video("a7", R"({"kind":"x","source":"s5"})")});
  run.folder.write("one.caption.tar", tar_of({{"a7", {{"txt", "seven"}}},
                                              {"a6", {{"txt", "six"}}},
                                              {"a5", {{"txt", "five"}}},
                                              {"a4", {{"txt", "four"}}},
                                              {"a3", {{"txt", "three"}}},
                                              {"a1", {{"txt", "one"}}}}));
  run.folder.write("one.embed.tar", tar_of({{"a1", {{"video.npy", vector_of(right)}}},
                                            {"a2", {{"video.npy", vector_of({0, 1, 0})}}},
                                            {"a3", {{"video.npy", vector_of({0, 0, 1})}}},
                                            {"a4", {{"video.npy", vector_of({0, 0, 1})}}},
                                            {"a5", {{"video.npy", vector_of({0, 0, 1})}}},
                                            {"a6", {{"video.npy", vector_of({0, 1, 1})}}},
                                            {"a7", {{"video.npy", vector_of({1, 1, 1})}}}}));
  run.add("two", {video("b1", by_encoder(R"("width":64,"height":48,"kind":"z")", 1), {},
                        {{"txt", "b"}, {"video.npy", vector_of(nearly)}}),
                  video("b2", R"({"source":"gone"})"),
                  video("b3", R"({})"),
                  {"b4", {{"png", png_header(300, 200)}, {"json", R"({"motion":0.5})"}}},
                  {"b5", {{"webm", "no json"}}},
                  video("b6", "[1]")});
  run.add("three", {video("a1", R"({"source":"another"})"), video("b4", "{}", "other contents")});
  run.options.inputs.push_back(run.folder / "missing.tar");
  run.folder.write("without.txt", "gone\r\nb3\n\nb3\nnobody\n");
  run.options.without = run.folder / "without.txt";
  run.options.where = "motion > 0.1 OR motion IS NULL";
  run.options.balance.rules = {{"kind", 1}};
  run.options.split = {{"train", 0.5}, {"val", 0.5}};
}

}  // namespace

TEST_CASE("every fate of a sample is told in the files of the dataset") {
  DatasetRun run;
  add_fates(run);
  CHECK(run.run() == 4);
  CHECK(run.log ==
        "one.tar: 'one.caption.tar' has no sample 'a2'\n"
        "two.tar: 'b6.json' is not a JSON object\n"
        "cannot open 'missing.tar': No such file or directory\n"
        "three.tar: key 'b4' comes twice with different contents, first in 'two.tar'; keep "
        "one, or give new keys with --rekey\n"
        "--without: 1 of 3 lines name nothing that is in the input; 'nobody' is the one\n"
        "the 'video.npy' of the samples are of 2 encoders; only those of one are compared "
        "with each other, so near duplicates across them stay\n");
  CHECK(run.text("out/errors.jsonl") ==
        R"({"tool":"vfm-shard","input":"one.tar","error":"'one.caption.tar' has no sample )"
        R"('a2'","code":"format"})"
        "\n"
        R"({"tool":"vfm-shard","input":"two.tar","error":"'b6.json' is not a JSON object",)"
        R"("code":"format"})"
        "\n"
        R"({"tool":"vfm-shard","input":"three.tar","error":"key 'b4' comes twice with )"
        R"(different contents, first in 'two.tar'; keep one, or give new keys with --rekey",)"
        R"("code":"duplicate"})"
        "\n"
        R"({"tool":"vfm-shard","input":"missing.tar","error":"cannot open 'missing.tar': No )"
        R"(such file or directory","code":"open"})"
        "\n");
  CHECK(run.text("out/duplicates.jsonl") ==
        R"({"key":"a1","duplicate_of":"a1","kind":"repeated","cosine":1.0,"reason":"the same )"
        R"(clip a second time"})"
        "\n"
        R"({"key":"a3","duplicate_of":"a1","kind":"exact","cosine":1.0,"reason":"more pixels: )"
        R"(640x480 against 320x240"})"
        "\n"
        R"({"key":"b1","duplicate_of":"a1","kind":"near","cosine":0.998752339,"reason":"more )"
        R"(pixels: 640x480 against 64x48","method":"exact"})"
        "\n");
  CHECK(run.text("out/left_out.jsonl") ==
        R"({"key":"a5","reason":"balance","by":"kind","value":"x","samples":4,"most":3})"
        "\n"
        R"({"key":"b2","reason":"without","by":"source","line":"gone"})"
        "\n"
        R"({"key":"b3","reason":"without","by":"key","line":"b3"})"
        "\n");
  CHECK(run.text("out/sources.jsonl") ==
        R"({"source":"a6","content":"3d1c02480694c156d719237dfd52caf8","split":"train"})"
        "\n"
        R"({"source":"b1","content":"f7ed44004b646fe7cd316b15a289f32b","split":"train"})"
        "\n"
        R"({"source":"b4","content":"fb2b6fcf2482b4bb0d7daccf5c5b0100","split":"train"})"
        "\n"
        R"({"source":"b5","content":"a3fc0f663bc6880498920cc09fd7e164","split":"val"})"
        "\n"
        R"({"source":"h1","path":"raw/1.mp4","split":"train"})"
        "\n"
        R"({"source":"h3","split":"train"})"
        "\n"
        R"({"source":"s5","split":"val"})"
        "\n");
  Json told = run.json("out/dataset.json");
  CHECK(told["plan"] == run.json("out/plan.json")["plan"]);
  CHECK(told["options"] == run.json("out/plan.json")["options"]);
  told.erase("plan"), told.erase("options");
  CHECK(dump_json(told) ==
        R"({"kind":"dataset","version":1,"samples":5,"shards":5,"bytes":21504,"seconds":3.0,)"
        R"("splits":{"train":{"samples":3,"shards":3,"bytes":13312,"seconds":3.0},)"
        R"("val":{"samples":2,"shards":2,"bytes":8192,"seconds":0.0}},)"
        R"("bins":{"480p_4x3_2s":{"samples":1,"shards":1,"bytes":5120,"seconds":3.0},)"
        R"("under256p_4x3_png_without_txt_video-npy":{"samples":1,"shards":1,"bytes":3072,)"
        R"("seconds":0.0},"unsized_untimed":{"samples":2,"shards":2,"bytes":10240,)"
        R"("seconds":0.0},"unsized_untimed_webm_without_txt_video-npy":{"samples":1,"shards":1,)"
        R"("bytes":3072,"seconds":0.0}},"read":15,"filtered":1,"duplicates":{"exact":1,)"
        R"("near":1,"repeated":1},"near_duplicates":{"by":"video.npy","method":"exact",)"
        R"("sets":[{"media":"video","encoder":null,"samples":3},{"media":"video",)"
        R"("encoder":{"name":"own","hash":"1"},"samples":2}]},"left_out":{"balance":1,)"
        R"("without":2},"balance":[{"by":"kind","strength":1.0,"values":2,"samples":6,)"
        R"("left_out":1,"largest":[{"value":"x","samples":4,"most":3,"stay":3},{"value":null,)"
        R"("samples":2,"most":2,"stay":2}]}]})");
  std::string there;
  run.each([&](const std::string& tar, const shard::Sample& sample) {
    there += tar;
    for (const shard::Member& member : sample.members)
      there += " " + (member.extension == "json" ? member.data : member.extension);
    there += "\n";
  });
  CHECK(there ==
        R"(train/480p_4x3_2s/480p_4x3_2s-000000.tar mp4 {"width":640,"height":480,"seconds":3,)"
        R"("fps":24.5,"frames":73,"source_hash":"h1","source":"raw/1.mp4","kind":"x",)"
        R"("video_encoder":{"name":"own","hash":"1"},"key":"a1","media":"video","bytes":8,)"
        R"("media_xxh3":"6637f3e1905a620be6f80ea885c9a9e0","split":"train",)"
        R"("bin":"480p_4x3_2s"} txt video.npy)"
        "\n"
        "train/under256p_4x3_png_without_txt_video-npy/under256p_4x3_png_without_txt_video-np"
        R"(y-000000.tar png {"motion":0.5,"key":"b4","media":"image","bytes":69,)"
        R"("media_xxh3":"fb2b6fcf2482b4bb0d7daccf5c5b0100","split":"train",)"
        R"("bin":"under256p_4x3_png_without_txt_video-npy"})"
        "\n"
        R"(train/unsized_untimed/unsized_untimed-000000.tar mp4 {"kind":"x","key":"a6",)"
        R"("media":"video","bytes":8,"media_xxh3":"3d1c02480694c156d719237dfd52caf8",)"
        R"("split":"train","bin":"unsized_untimed"} txt video.npy)"
        "\n"
        R"(val/unsized_untimed/unsized_untimed-000000.tar mp4 {"kind":"x","source":"s5",)"
        R"("key":"a7","media":"video","bytes":8,)"
        R"("media_xxh3":"bf6d0f00fa931261311b6d586fe9cfd2","split":"val",)"
        R"("bin":"unsized_untimed"} txt video.npy)"
        "\n"
        "val/unsized_untimed_webm_without_txt_video-npy/unsized_untimed_webm_without_txt_vide"
        R"(o-npy-000000.tar webm {"key":"b5","media":"video","bytes":7,)"
        R"("media_xxh3":"a3fc0f663bc6880498920cc09fd7e164","split":"val",)"
        R"("bin":"unsized_untimed_webm_without_txt_video-npy"})"
        "\n");
  std::string records;
  for (Json& record : run.records) {
    CHECK(record["xxh3"] == io::hash_file(run.folder / record["path"].get<std::string>()));
    record.erase("xxh3");
    records += dump_json(record) + "\n";
  }
  CHECK(records ==
        R"({"kind":"shard","path":"out/train/480p_4x3_2s/480p_4x3_2s-000000.tar","samples":1,)"
        R"("bytes":5120,"split":"train","bin":"480p_4x3_2s"})"
        "\n"
        R"({"kind":"shard","path":"out/train/under256p_4x3_png_without_txt_video-npy/under256p_)"
        R"(4x3_png_without_txt_video-npy-000000.tar","samples":1,"bytes":3072,"split":"train",)"
        R"("bin":"under256p_4x3_png_without_txt_video-npy"})"
        "\n"
        R"({"kind":"shard","path":"out/train/unsized_untimed/unsized_untimed-000000.tar",)"
        R"("samples":1,"bytes":5120,"split":"train","bin":"unsized_untimed"})"
        "\n"
        R"({"kind":"shard","path":"out/val/unsized_untimed/unsized_untimed-000000.tar",)"
        R"("samples":1,"bytes":5120,"split":"val","bin":"unsized_untimed"})"
        "\n"
        R"({"kind":"shard","path":"out/val/unsized_untimed_webm_without_txt_video-npy/unsized_u)"
        R"(ntimed_webm_without_txt_video-npy-000000.tar","samples":1,"bytes":3072,)"
        R"("split":"val","bin":"unsized_untimed_webm_without_txt_video-npy"})"
        "\n");
  const std::string card = run.text("out/README.md");
  CHECK(card.substr(0, card.find("dataset_info")) ==
        "---\n"
        "# Written by vfm: vfm-shard writes this file again.\n"
        "configs:\n"
        R"(- config_name: "mp4")"
        "\n"
        "  default: true\n"
        "  data_files:\n"
        R"(  - split: "train")"
        "\n"
        "    path:\n"
        R"(    - "train/480p_4x3_2s/480p_4x3_2s-[0-9][0-9][0-9][0-9][0-9][0-9].tar")"
        "\n"
        R"(    - "train/unsized_untimed/unsized_untimed-[0-9][0-9][0-9][0-9][0-9][0-9].tar")"
        "\n"
        R"(  - split: "val")"
        "\n"
        "    path:\n"
        R"(    - "val/unsized_untimed/unsized_untimed-[0-9][0-9][0-9][0-9][0-9][0-9].tar")"
        "\n"
        R"(- config_name: "png")"
        "\n"
        "  data_files:\n"
        R"(  - split: "train")"
        "\n"
        "    path:\n"
        R"(    - "train/under256p_4x3_png_without_txt_video-npy/under256p_4x3_png_without_txt_v)"
        R"(ideo-npy-[0-9][0-9][0-9][0-9][0-9][0-9].tar")"
        "\n"
        R"(- config_name: "webm")"
        "\n"
        "  data_files:\n"
        R"(  - split: "val")"
        "\n"
        "    path:\n"
        R"(    - "val/unsized_untimed_webm_without_txt_video-npy/unsized_untimed_webm_without_t)"
        R"(xt_video-npy-[0-9][0-9][0-9][0-9][0-9][0-9].tar")"
        "\n");
  const std::string index = run.text("out/.nv-meta/index.sqlite");
  for (const char* facts :
       {R"({"video_duration":3.0,"video_num_frames":73,"video_fps":24.5,"video_width":640,)"
        R"("video_height":480})",
        R"({"width":300,"height":200,"format":"PNG","mode":"RGB"})"})
    CHECK(index.find(facts) != std::string::npos);
}

TEST_CASE("a dry run counts; nothing that is left is said with where it went") {
  DatasetRun run;
  add_fates(run);
  SampleCounts counts;
  CHECK(run.run(&counts) == 4);
  CHECK(std::vector{counts.read, counts.filtered, counts.without, counts.duplicates,
                    counts.balanced, counts.stay} == std::vector<std::uint64_t>{15, 1, 2, 3, 1, 5});
  CHECK(run.log.find("--without") == std::string::npos);  // the part may lack them
  run.level = LogLevel::info;
  run.run();
  CHECK(run.log.find("5 samples in 5 shards; 1 filtered out, 2 taken out, 3 duplicates, 1 left out "
                     "for balance, 4 errors\n") != std::string::npos);

  DatasetRun none;
  none.add("a", {video("k", R"({"motion":1})"), video("l", "{}"), video("bad", "[]")});
  none.options.where = "motion > 2";
  CHECK(none.failed() == "no sample is left: 3 read, 2 of them filtered out, 1 errors");
  CHECK(none.lines("out/errors.jsonl").size() == 1);
  none.folder.write("without", "k\n");
  none.options.without = none.folder / "without";
  CHECK(none.failed() ==
        "no sample is left: 3 read, 1 of them filtered out, 1 taken out, 1 errors");
  CHECK(none.text("out/plan.json") == "(none)");
  none.folder.write("a.tar", "no tar");
  none.options.near_member = "none.npy";
  CHECK(none.failed() ==
        "no sample is left: 0 read, 0 of them filtered out, 0 taken out, 1 errors");
  none.options.near_member.clear();
  none.options.where.clear();
  none.folder.write("a.tar", tar_of({video("k", "{}"), video("l", "{}")}));
  none.folder.write("without", "x\nk\ny\n");
  CHECK(none.run() == 0);
  CHECK(none.log ==
        "--without: 2 of 3 lines name nothing that is in the input; 'x' is the first\n");
  none.options.where = "motion >";
  CHECK(none.refused().starts_with("--where: "));
  none.options.where.clear();
  none.options.without += "x";
  CHECK(none.refused() == "--without: cannot open 'withoutx': No such file or directory");
}

TEST_CASE("a name or a comparison that fits no sample is refused, with what was meant") {
  DatasetRun run;
  run.add("a", {video("k", R"({"motion":0.5,"kind":"a","maker":{"colour":1},"shot_width":1})", {},
                      {{"text.npy", vector_of({1, 0})}}),
                video("l", R"({"kind":"b","flag":true})")});
  const auto where = [&](const std::string& filter) {
    run.options.where = filter;
    const std::string said = run.refused();
    run.remove_output();
    run.options.where.clear();
    return said;
  };
  std::string all;
  for (const char* filter :
       {"kind > 5", "motion > '0.5'", "flag = 'true'", "kind = 'a' OR motion = 1", "kinds = 'a'",
        "aesthetic > 5", "asthetic > 5", "concept_cat > 1", "concept_ > 1", "zzz > 1", "colour = 1",
        "shot_widht > 1", "motion > 1 AND kind = 'c'", "caption_text = 'x'"})
    all += where(filter) + "\n";
  CHECK(all ==
        "--where: 'kind' is a text in all samples that have it, and is compared with the "
        "number 5; texts stand in single quotes\n"
        "--where: 'motion' is a number (true is 1, false 0) in all samples that have it, and "
        "is compared with the text '0.5'; leave out the quotes\n"
        "--where: 'flag' is a number (true is 1, false 0) in all samples that have it, and "
        "is compared with the text 'true'; leave out the quotes\n"
        "(nothing)\n"
        "--where: no sample has a field 'kinds'; did you mean: kind\n"
        "--where: no sample has a field 'aesthetic', which vfm-embed --aesthetic FILE makes\n"
        "--where: no sample has a field 'asthetic'; did you mean aesthetic, which vfm-embed "
        "--aesthetic FILE makes\n"
        "--where: no sample has a field 'concept_cat', which vfm-embed --concept NAME=TEXT "
        "makes\n"
        "--where: no sample has a field 'concept_'; there are: bytes, flag, key, kind, maker,"
        " media, media_xxh3, motion, shot_width\n"
        "--where: no sample has a field 'zzz'; there are: bytes, flag, key, kind, maker, "
        "media, media_xxh3, motion, shot_width\n"
        "--where: no sample has a field 'colour'; did you mean maker ->> 'colour'\n"
        "--where: no sample has a field 'shot_widht'; did you mean: shot_width\n"
        "(other kind) no sample is left: 2 read, 2 of them filtered out, 0 errors\n"
        "--where: no sample has a field 'caption_text', which vfm-caption --also NAME=TEXT "
        "makes\n");
  const auto balanced = [&](const std::string& rule) {
    run.options.balance.rules = {{"kind", 1}, {rule, 1}};
    const std::string said = run.refused();
    run.remove_output();
    run.options.balance.rules.clear();
    return said;
  };
  all.clear();
  for (const char* rule :
       {"kind", "colour", "maker.colour", "text.npy", "texts.npy", "video.npy", "knd"})
    all += balanced(rule) + "\n";
  for (const char* member : {"text.npy", "txt.npy", "video.npy"}) {
    run.options.near_member = member;
    all += run.refused() + "\n";
    run.remove_output();
  }
  run.options.near_member.clear();
  run.options.report = run.folder / "page.html";
  for (const char* score : {"motion", "kind", "motoin"}) {
    run.options.report_scores = {score};
    all += run.refused() + "\n";
    run.remove_output();
  }
  CHECK(all ==
        "(nothing)\n"
        "--balance: 'colour' is a member of the object 'maker', and only whole fields are "
        "balanced\n"
        "--balance: 'colour' is a member of the object 'maker', and only whole fields are "
        "balanced\n"
        "(nothing)\n"
        "--balance: no sample has a member 'texts.npy'; did you mean: text.npy\n"
        "--balance: no sample has a member 'video.npy', which vfm-embed makes\n"
        "--balance: no sample has a field 'knd'; did you mean: kind\n"
        "(nothing)\n"
        "--duplicate-vector: no sample has a member 'txt.npy'; did you mean: text.npy\n"
        "--duplicate-vector: no sample has a member 'video.npy', which vfm-embed makes\n"
        "(nothing)\n"
        "--scores: no sample has a number 'kind'; there are: bytes, motion, shot_width\n"
        "--scores: no sample has a number 'motoin'; did you mean: motion\n");

  // What the shards say together counts.
  DatasetRun two;
  two.add("a", {video("k", R"({"kind":"a"})")});
  two.add("b", {video("l", R"({"kind":7})")});
  two.options.where = "kind > 5";
  CHECK(two.run() == 0);
  two.folder.write("b.tar", tar_of({video("l", R"({"kind":"b"})")}));
  two.remove_output();
  CHECK(two.refused().starts_with("--where: 'kind' is a text in all samples that have it"));

  DatasetRun bare;
  bare.add("a", {video("k", "{}")});
  bare.options.near_member = "text.npy";
  CHECK(bare.refused() == "--duplicate-vector: no sample has a member 'text.npy', or any");
}
