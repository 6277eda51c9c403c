// What makes masks of grammars as expensive as a client can: for grammar_cost. Each is within the limits of a request,
// or says where they end by being refused. Constant.
#pragma once

#include <functional>
#include <random>
#include <string>
#include <vector>

namespace chasqui::bench {

struct HostileGrammar {
  std::string name;
  bool is_schema = false;
  std::string text;
};

inline std::string several(int count, const std::string& between, const std::function<std::string(int)>& each) {
  std::string out;
  for (int i = 0; i < count; ++i) out += (i > 0 ? between : "") + each(i);
  return out;
}

// Rules that any character leads out of, in several ways.
inline std::string ambiguous_rules(int rules) {
  const auto rule = [rules](int n) { return "r" + std::to_string(n % rules); };
  return "root ::= r0\n" + several(rules, "\n", [&](int i) {
           return rule(i) + " ::= . " + rule(i + 1) + " | . " + rule(i * 7 + 3) + " " + rule(i * 5 + 1) + " | .";
         });
}

// Each alternative takes half of all letters, so that each text leads to other places.
inline std::string classes_by_chance(int alternatives) {
  std::mt19937 random(1);
  return "root ::= (" +
         several(alternatives, " | ",
                 [&](int i) {
                   std::string letters;
                   for (char c = 'a'; c <= 'z'; ++c) {
                     if (random() % 2 == 0) letters += c;
                     if (random() % 2 == 0) letters += static_cast<char>(c - 'a' + 'A');
                   }
                   return "[" + letters + " a]{1,40} \"" + std::to_string(i) + "\"";
                 }) +
         ")";
}

inline std::vector<HostileGrammar> hostile_grammars() {
  const auto number = [](int i) { return std::to_string(i * 7919 % 100'003); };
  const std::string prefix(40, 'v');
  const auto letter = [](int i) { return std::string(1, static_cast<char>('a' + i % 26)); };
  const auto refers_to = [](int i) {
    return R"({"type":"object","properties":{"name":{"type":"string"},"next":{"$ref":"#/$defs/d)" + std::to_string(i) +
           R"("}},"required":["name"]})";
  };
  return {
      {"an enum of 1,000 values", true,
       R"({"enum":[)" + several(1000, ",", [&](int i) { return "\"value " + number(i) + " of the list\""; }) + "]}"},
      {"… that begin alike", true,
       R"({"enum":[)" + several(1000, ",", [&](int i) { return "\"" + prefix + number(i) + "\""; }) + "]}"},
      {"1,300 alternatives of a class", false,
       "root ::= (" + several(1300, " | ", [](int) { return "[ऀ-ॿ]"; }) + "){1,12}"},
      {"1,300 alternatives of all but a character", false,
       "root ::= (" + several(1300, " | ", [&](int i) { return "[^" + letter(i) + "]"; }) + "){1,12}"},
      {"a pattern of counted classes", true, R"({"type":"string","pattern":"^([a-f0-9]{2,40}-){1,20}[A-Z]{3,90}$"})"},
      {"a pattern that is ambiguous", true, R"({"type":"string","pattern":"^(.*a){1,12}.{9}b[a-z ]{0,200}$"})"},
      {"a pattern anywhere", true, R"({"type":"string","pattern":"([a-z]+[0-9]+ ?){3,20}x"})"},
      {"59 definitions, each refers to the next", true,
       R"({"$ref":"#/$defs/d0","$defs":{)" +
           several(59, ",", [&](int i) { return "\"d" + std::to_string(i) + "\":" + refers_to((i + 1) % 59); }) + "}}"},
      {"200 properties, none required", true,
       R"({"type":"object","additionalProperties":false,"properties":{)" +
           several(200, ",", [](int i) { return "\"part " + std::to_string(i) + "\":{\"type\":\"string\"}"; }) + "}}"},
      {"100 lists of each other", false, ambiguous_rules(100)},
      {"300 lists of each other", false, ambiguous_rules(300)},
      {"8 classes by chance", false, classes_by_chance(8)},
      {"20 classes by chance", false, classes_by_chance(20)},
      {"150 classes by chance", false, classes_by_chance(150)},
      {"nested optional parts", false,
       "root ::= (" + several(60, " ", [](int) { return "([a-z ]* [A-Z]? [0-9a-f]*)?"; }) + ")* \"!\""},
      {"tokens by number", false,
       "root ::= (" + several(2000, " | ", [](int i) { return "!<[" + std::to_string(i) + "]>"; }) + "){1,9}"},
  };
}

}  // namespace chasqui::bench
