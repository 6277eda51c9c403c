// The schemas that grammar_cost measures: what extraction jobs, tool calls and configuration files ask for, in several
// sizes. Constant.
#pragma once

#include <string>
#include <vector>

namespace chasqui::bench {

inline std::string object_of(const std::vector<std::string>& members, std::size_t required) {
  std::string out = R"({"type":"object","properties":{)";
  for (std::size_t i = 0; i < members.size(); ++i) out += (i > 0 ? "," : "") + members[i];
  out += R"(},"required":[)";
  const auto name = [](const std::string& member) { return member.substr(0, member.find(':')); };
  for (std::size_t i = 0; i < required && i < members.size(); ++i) out += (i > 0 ? "," : "") + name(members[i]);
  return out + R"(],"additionalProperties":false})";
}

inline std::string enum_of(const std::string& stem, int count) {
  std::string out = R"({"enum":[)";
  for (int i = 0; i < count; ++i) out += (i > 0 ? ",\"" : "\"") + stem + std::to_string(i * 7919 % 100'000) + "\"";
  return out + "]}";
}

inline std::vector<std::string> schemas() {
  const std::vector<std::string> kinds = {
      R"({"type":"string"})",
      R"({"type":"integer"})",
      R"({"type":"number"})",
      R"({"type":"boolean"})",
      R"({"type":"string","maxLength":40})",
      R"({"type":"string","minLength":3,"maxLength":12})",
      R"({"type":"string","format":"date"})",
      R"({"type":"string","format":"date-time"})",
      R"({"type":"string","format":"uuid"})",
      R"({"type":"string","pattern":"^[A-Z]{2}[0-9]{4,8}$"})",
      R"({"type":"string","pattern":"^[a-z]+(-[a-z0-9]+)*$"})",
      R"({"type":"integer","minimum":0,"maximum":150})",
      R"({"type":"integer","minimum":-1000,"maximum":99999})",
      R"({"type":"array","items":{"type":"string"}})",
      R"({"type":"array","items":{"type":"number"},"minItems":2,"maxItems":6})",
      R"({"type":["string","null"]})",
      R"({"anyOf":[{"type":"string"},{"type":"integer"},{"type":"null"}]})",
      R"({"enum":["low","medium","high","urgent"]})",
      R"({"const":"fixed value"})",
      enum_of("country ", 60),
      enum_of("value-", 1000),
  };
  std::vector<std::string> out = kinds;
  const std::vector<std::string> names = {"id",     "name",   "title",   "status", "created_at", "priority", "tags",
                                          "amount", "street", "country", "email",  "comment",    "items",    "owner",
                                          "score",  "url",    "version", "phone",  "city",       "notes"};
  const auto member = [&](std::size_t i, const std::string& kind) {
    return "\"" + names[i % names.size()] + (i >= names.size() ? std::to_string(i) : "") + "\":" + kind;
  };
  // Flat objects of several sizes, all of their members required, or half of them, or none.
  for (const std::size_t size : {1u, 2u, 4u, 7u, 12u, 20u}) {
    for (std::size_t shift = 0; shift < 6; ++shift) {
      std::vector<std::string> members;
      for (std::size_t i = 0; i < size; ++i) members.push_back(member(i, kinds[(i * 3 + shift * 5) % 19]));
      for (const std::size_t required : {size, size / 2, std::size_t{0}}) out.push_back(object_of(members, required));
    }
  }
  // Nested ones: lists of records, records in records.
  for (std::size_t shift = 0; shift < 12; ++shift) {
    std::vector<std::string> members;
    for (std::size_t i = 0; i < 5; ++i) members.push_back(member(i + shift, kinds[(i * 7 + shift) % 19]));
    const std::string record = object_of(members, 3);
    out.push_back(R"({"type":"array","items":)" + record + "}");
    out.push_back(
        object_of({member(0, R"({"type":"array","maxItems":4,"items":)" + record + "}"), member(1, record)}, 1));
    out.push_back(R"({"anyOf":[)" + record + "," + object_of({member(3, kinds[shift])}, 1) + "]}");
    const std::string open = R"({"type":"object","properties":{"kind":)" + kinds[17] + R"(},"required":["kind"]})";
    out.push_back(object_of({member(2, open), member(5, kinds[(shift + 4) % 19])}, 2));
  }
  // Recursion.
  out.push_back(
      R"({"$defs":{"node":{"type":"object","properties":{"value":{"type":"string"},"children":{"type":"array",)"
      R"("items":{"$ref":"#/$defs/node"}}},"required":["value","children"],"additionalProperties":false}},)"
      R"("$ref":"#/$defs/node"})");
  out.push_back(R"({"type":"object"})");
  out.push_back("{}");
  out.push_back(R"({"type":"object","additionalProperties":{"type":"integer"}})");
  return out;
}

}  // namespace chasqui::bench
