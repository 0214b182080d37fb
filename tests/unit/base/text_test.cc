// Units, JSON and hashes: what users type, and what goes into files.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "base/held_json.h"
#include "base/input_limits.h"
#include "base/json.h"
#include "base/json_members.h"
#include "base/shown_name.h"
#include "base/units.h"
#include "base/work_limit.h"

using namespace vfm;

TEST_CASE("parse_bytes knows binary and decimal units") {
  CHECK(parse_bytes("512") == 512);
  CHECK(parse_bytes("64KiB") == 65536);
  CHECK(parse_bytes("1.5GiB") == 1610612736);
  CHECK(parse_bytes("500MB") == 500000000);
  CHECK(parse_bytes("2G") == 2147483648);
  for (const char* bad : {"", "x", "-1", "1 GB", "1XB", "nan", "inf", "1e40"})
    CHECK_THROWS_AS(parse_bytes(bad), Error);
}

TEST_CASE("parse_pixels knows numbers, millions and sizes") {
  CHECK(parse_pixels("67108864") == 67108864);
  CHECK(parse_pixels("64M") == 67108864);
  CHECK(parse_pixels("1920x1080") == 2073600);
  for (const char* bad : {"", "0", "x", "5x", "x5", "-1", "1.5", "64m", "0x5", "99999x99999"})
    CHECK_THROWS_AS(parse_pixels(bad), Error);
}

TEST_CASE("parse_work knows pixels and time, and what a file may take grows with it") {
  CHECK(parse_work("32G,64s").pixels == 0x1p35);
  CHECK(parse_work("0,1.5m").seconds == 90);
  for (const char* bad : {"", "32G", ",", "32G,", ",64s", "x,1s", "-1,1s", "1,1s,1", "1G,1x"})
    CHECK_THROWS_AS(parse_work(bad), Error);
  // An hour of 1920x1080 at 25 frames a second in 30 MB; and 20,000 pictures of 2000x2000 in 460
  // kB.
  const DecodingWork still{1920. * 1080 * 25 * 3600, 1000}, bomb{2000. * 2000 * 20000, 0};
  CHECK_NOTHROW(check_work("a.mp4", still, 30'000'000));
  CHECK_THROWS_WITH(check_work("a.gif", bomb, 460'000),
                    Catch::StartsWith("'a.gif' has more than 19368247296 pixels") &&
                        Catch::Contains("more than --max-work allows for 460000 bytes"));
  CHECK_THROWS_WITH(check_work("a.gif", {0, 40}, 460'000),
                    Catch::StartsWith("'a.gif' takes a processor more than 36.1s to decode"));
  CHECK_NOTHROW(check_work("a.gif", {0, 36}, 460'000));
  CHECK_NOTHROW(check_work("of a length that is not known", bomb, 0));
}

TEST_CASE("a name is shown without the user, the password and the query of its address") {
  CHECK(shown_name("a?b#c@d/e.mp4") == "a?b#c@d/e.mp4");
  CHECK(shown_name("s3://b/a?b#c@d.mp4") == "s3://b/a?b#c@d.mp4");
  CHECK(shown_name("msc://b/a?b") == "msc://b/a?b");
  CHECK(shown_name("s3://user:secret@b/a?b") == "s3://...@b/a?b");
  CHECK(shown_name("https://host/a@b.mp4") == "https://host/a@b.mp4");
  CHECK(shown_name("https://host/a.mp4?X-Amz-Signature=secret") == "https://host/a.mp4?...");
  CHECK(shown_name("HTTPS://host/a.mp4#secret") == "HTTPS://host/a.mp4#...");
  CHECK(shown_name("rtsp://user:se@cret@host?secret") == "rtsp://...@host?...");
  CHECK(shown_name("ftp://") == "ftp://");
}

TEST_CASE("parse_seconds") {
  CHECK(parse_seconds("2") == 2);
  CHECK(parse_seconds("500ms") == 0.5);
  CHECK(parse_seconds("1.5m") == 90);
  CHECK_THROWS_AS(parse_seconds("-1s"), Error);
  CHECK_THROWS_AS(parse_seconds("2 s"), Error);
}

TEST_CASE("numbers are written for people") {
  CHECK(format_bytes(312) == "312 B");
  CHECK(format_bytes(1536) == "1.5 KiB");
  CHECK(format_seconds(12.54) == "12.5s");
  CHECK(format_seconds(200) == "3m20s");
  CHECK(format_seconds(3720) == "1h02m");
  CHECK(format_count(7236192256) == "7.24G");
  CHECK(format_count(1.2e21) == "1.2Z");
  CHECK(format_count(8.4e24) == "8.4Y");
  CHECK(format_count(999) == "999");
}

TEST_CASE("JSON keeps the order of keys and names the culprit") {
  CHECK(dump_json(parse_json(R"({"b":1,"a":[true,null]})", "x")) == R"({"b":1,"a":[true,null]})");
  CHECK_THROWS_WITH(parse_json("{\"a\":", "line 3 of 'm.jsonl'"),
                    Catch::StartsWith("line 3 of 'm.jsonl' is not JSON"));
  CHECK_THROWS_AS(parse_json(std::string(100000, '['), "deep"), Error);
  CHECK(dump_json(Json("\xff\xfe")) == "\"\xef\xbf\xbd\xef\xbf\xbd\"");
  const Json value = parse_json(R"({"n":1.5,"i":3,"s":"t","z":null})", "x");
  CHECK(*get_number(value, "n") == 1.5);
  CHECK(*get_integer(value, "i") == 3);
  CHECK_FALSE(get_string(value, "z"));
  CHECK_THROWS_WITH(get_integer(value, "s"), "'s' is not an integer but string");
  CHECK_THROWS_WITH(need_string(value, "path", "the record"), "the record has no 'path'");
}

TEST_CASE("JSON: of equal names the last value counts, at the first place; depth has an end") {
  CHECK(dump_json(parse_json(R"({"a":1,"b":2,"a":{"c":3},"b":[]})", "x")) ==
        R"({"a":{"c":3},"b":[]})");
  const auto nested = [](int levels) {
    std::string text;
    for (int i = 0; i < levels; ++i)
      text += i % 2 == 0 ? "{\"a\":" : "[";
    text += "1";
    for (int i = levels; i-- > 0;)
      text += i % 2 == 0 ? "}" : "]";
    return text;
  };
  CHECK(dump_json(parse_json(nested(100), "x")) == nested(100));
  CHECK_THROWS_WITH(parse_json(nested(101), "x"), "x is nested deeper than 100 levels");
  CHECK_THROWS_WITH(parse_json("[1e999]", "x"), Catch::StartsWith("x is not JSON"));
  CHECK_THROWS_WITH(parse_json("[1] 2", "x"), Catch::StartsWith("x is not JSON"));
  CHECK_THROWS_WITH(parse_json("", "x"), Catch::StartsWith("x is not JSON"));
}

// Were each name compared with those before it, this would take long.
TEST_CASE("JSON: very many names take no longer than their text") {
  constexpr int kNames = 150'000;
  const auto object = [](int first, int names, const char* value) {
    std::string text = "{";
    for (int i = first; i < first + names; ++i)
      text.append(i > first ? ",\"" : "\"").append(std::to_string(i)).append("\":").append(value);
    return text + "}";
  };
  Json many = parse_json(object(0, kNames, "1"), "x");
  CHECK(dump_json(many) == object(0, kNames, "1"));
  add_members(many, parse_json(object(1, kNames, "2"), "x"));
  CHECK(many.size() == kNames + 1);
  CHECK(many.front() == 1);
  CHECK(std::next(many.begin()).value() == 1);
  CHECK(many.back() == 2);
  put_members(many, parse_json(object(1, kNames + 1, "3"), "x"));
  CHECK(many.front() == 1);
  CHECK(std::next(many.begin()).value() == 3);
  CHECK(many.size() == kNames + 2);
  CHECK_THROWS_WITH(parse_json(object(0, (1 << 20) + 1, "1"), "x"),
                    "x has an object of more than 1048576 names");
}

TEST_CASE("JSON: sorted by the bytes of its names, at every level") {
  const Json mixed =
      parse_json(R"({"b":[{"z":1,"a":2},3],"\u00e9":0,"a":{"y":{},"B":"t"},"Z":null})", "x");
  CHECK(dump_json(sorted(mixed)) ==
        "{\"Z\":null,\"a\":{\"B\":\"t\",\"y\":{}},\"b\":[{\"a\":2,\"z\":1},3],\"\u00e9\":0}");
  CHECK(dump_json(sorted(Json(1.5))) == "1.5");
}

TEST_CASE("JSON: a held value is copied, moved and compared as a value") {
  HeldJson held;
  CHECK(held->is_null());
  held["n"] = 1;
  const HeldJson copy = held;
  held["n"] = 2;
  CHECK(copy["n"] == 1);
  CHECK_THROWS(copy["m"]);
  CHECK_FALSE(copy == held);
  CHECK(copy == Json{{"n", 1}});
  const Json taken = std::move(held);
  CHECK(taken == Json{{"n", 2}});
  CHECK(held->is_null());
  held = copy;
  HeldJson moved = std::move(held);
  CHECK(moved == copy);
  CHECK(held == HeldJson());
  moved = Json();
  CHECK(moved == HeldJson());
  CHECK(HeldJson::object()->is_object());
  CHECK(HeldJson::array()->is_array());
  // Braces would make an array of two texts of what makes an object of a Json.
  const auto takes_braces = []<class T>(T*) {
    return requires(T x) {
      x = {{"name", "value"}};
    };
  };
  CHECK_FALSE(takes_braces(&moved));
}

// Reference: xxhsum 0.8.1 -H3 and -H2 of "abc" and of nothing.
TEST_CASE("hashes are those of xxhsum") {
  CHECK(Hasher().update("abc").hex64() == "78af5f94892f3950");
  CHECK(Hasher().update("a").update("bc").hex64() == "78af5f94892f3950");
  CHECK(hash_hex("abc") == "06b05ab6733a618578af5f94892f3950");
  CHECK(Hasher().hex128() == "99aa06d3014798d86001c324468d497f");
  CHECK(Hasher().hex128() == hash_hex(""));
}
