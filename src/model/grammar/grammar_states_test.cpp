// Which texts a grammar takes, and which grammars are refused. Texts are told apart into those that the grammar matches
// ("match"), beginnings of such ("begin") and all others ("no").
#include "model/grammar/grammar_states.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "model/grammar/test_grammar.h"

namespace chasqui {
namespace {

std::string verdict(std::string_view grammar, std::string_view text) {
  GrammarStates states(test_automaton(grammar));
  const GrammarStates::Id at = states.after_bytes(states.start(), text);
  if (states.is_complete(at)) return "match";
  return at == GrammarStates::kDead ? "no" : "begin";
}

std::string grammar_refusal(std::string_view grammar) {
  const auto read = parse_gbnf(grammar);
  EXPECT_TRUE(read);
  const auto made = GrammarAutomaton::compile(*read);
  return made ? "" : made.error().message;
}

TEST(GrammarStates, FollowLiteralsAndChoices) {
  constexpr std::string_view kGrammar = "root ::= \"yes\" | \"no\" | \"nothing\"";
  EXPECT_EQ(verdict(kGrammar, ""), "begin");
  EXPECT_EQ(verdict(kGrammar, "no"), "match");
  EXPECT_EQ(verdict(kGrammar, "noth"), "begin");
  EXPECT_EQ(verdict(kGrammar, "nothing"), "match");
  EXPECT_EQ(verdict(kGrammar, "nothingx"), "no");
  EXPECT_EQ(verdict(kGrammar, "x"), "no");
}

TEST(GrammarStates, FollowRepetitions) {
  EXPECT_EQ(verdict("root ::= \"a\"*", ""), "match");
  EXPECT_EQ(verdict("root ::= \"a\"+", ""), "begin");
  EXPECT_EQ(verdict("root ::= \"ab\"{2}", "abab"), "match");
  EXPECT_EQ(verdict("root ::= \"ab\"{2}", "ababa"), "no");
  EXPECT_EQ(verdict("root ::= \"a\"{2,3}", "a"), "begin");
  EXPECT_EQ(verdict("root ::= \"a\"{2,3}", "aaa"), "match");
  EXPECT_EQ(verdict("root ::= \"a\"{2,3}", "aaaa"), "no");
  EXPECT_EQ(verdict("root ::= \"a\"{2,}", "aaaa"), "match");
  EXPECT_EQ(verdict("root ::= ((\"a\"?)*)* \"b\"", "aab"), "match");
  EXPECT_EQ(verdict("root ::= (\"a\" | \"b\"*){0,4} \"c\"", "abbac"), "match");
}

// This rule has more sets of states than are merged: one position takes a byte in several ways.
TEST(GrammarStates, FollowAllWaysOfAnUnmergedPosition) {
  constexpr std::string_view kGrammar = R"(root ::= .{0,2} ("q" (.{1,3})+ | (| "e"* "b") .{2}){1,3} .{0,2} "z"?)";
  EXPECT_EQ(verdict(kGrammar, "xxxxxxxxxx"), "match");
  EXPECT_EQ(verdict(kGrammar, "xxxxxxxxxxz"), "match");
  EXPECT_EQ(verdict(kGrammar, "xxxxxxxxxxx"), "no");
}

// Every rule may go on in several others after any character: the places would be thousands, and so would what each of
// their stacks holds, for each of the bytes that may come next.
TEST(GrammarStates, TakeBoundedWorkForEachByte) {
  constexpr int kRules = 100;
  std::string grammar = "root ::= r0\n";
  for (int i = 0; i < kRules; ++i) {
    const auto rule = [](int n) { return "r" + std::to_string(n % kRules); };
    grammar += rule(i) + " ::= . " + rule(i + 1) + " | . " + rule(i * 7 + 3) + " " + rule(i * 5 + 1) + " | .\n";
  }
  GrammarStates states(test_automaton(grammar));
  GrammarStates::Id at = states.start();
  for (int i = 0; i < 80; ++i) {
    const std::uint64_t before = states.work();
    at = states.next(at, static_cast<std::uint8_t>("ab c"[i % 4]));
    EXPECT_NE(at, GrammarStates::kDead);
    EXPECT_LT(states.work() - before, 16 * kSizeLimit<"grammar_items">) << i;
  }
  EXPECT_LT(states.bytes(), std::size_t{64} << 20);
}

TEST(GrammarStates, TakeAsManyAlternativesAsAreAllowed) {
  std::string grammar = "root ::= \"x\" (";
  for (int i = 0; i < 2000; ++i) grammar += (i > 0 ? " | \"" : "\"") + std::to_string(i * 7919 % 100'000) + "\"";
  grammar += ")";
  for (const int i : {0, 1, 999, 1999})
    EXPECT_EQ(verdict(grammar, "x" + std::to_string(i * 7919 % 100'000)), "match") << i;
}

TEST(GrammarStates, FollowCharactersByTheirBytes) {
  EXPECT_EQ(verdict("root ::= [a-cx]", "b"), "match");
  EXPECT_EQ(verdict("root ::= [^a-c]", "b"), "no");
  EXPECT_EQ(verdict("root ::= [^a-c]", "\xC3\xA9"), "match");
  EXPECT_EQ(verdict("root ::= [^a-c]", "\xC3"), "begin");
  EXPECT_EQ(verdict("root ::= [^\xC3\xA9]", "\xC3\xA9"), "no");
  EXPECT_EQ(verdict("root ::= [^\xC3\xA9]", "\xC3\xA8"), "match");
  EXPECT_EQ(verdict("root ::= .", "\xF0\x9F\x98\x80"), "match");
  EXPECT_EQ(verdict("root ::= .", "\n"), "match");
  EXPECT_EQ(verdict("root ::= [\\U00010000-\\U0010FFFF]", "\xF0\x9F\x98\x80"), "match");
  EXPECT_EQ(verdict("root ::= [\\u0800-\\uFFFF]", "\xE0\xA0\x80"), "match");
  // What is not UTF-8 is in no class.
  EXPECT_EQ(verdict("root ::= .", "\x80"), "no");
  EXPECT_EQ(verdict("root ::= .", "\xC0"), "no");
  EXPECT_EQ(verdict("root ::= .", "\xED\xA0"), "no");
  EXPECT_EQ(verdict("root ::= .", "\xE0\x80"), "no");
  EXPECT_EQ(verdict("root ::= .", "\xF4\x90"), "no");
}

TEST(GrammarStates, FollowRulesIntoEachOther) {
  constexpr std::string_view kNested = "root ::= value\nvalue ::= \"[\" (value (\",\" value)*)? \"]\" | [0-9]+";
  EXPECT_EQ(verdict(kNested, "[[1,22],[],[[3]]]"), "match");
  EXPECT_EQ(verdict(kNested, "[[1,22],[]"), "begin");
  EXPECT_EQ(verdict(kNested, "[1]]"), "no");
  constexpr std::string_view kEmpty = "root ::= a b c\na ::= \"x\"?\nb ::= a a\nc ::= \"y\" root | \"\"";
  EXPECT_EQ(verdict(kEmpty, ""), "match");
  EXPECT_EQ(verdict(kEmpty, "xxxyxy"), "match");
  EXPECT_EQ(verdict(kEmpty, "xxxx"), "no");
}

TEST(GrammarStates, StayFewForAmbiguousGrammars) {
  // After n letters there are 2^n ways to have read them, but only few things that can follow.
  const std::string text(200, 'a');
  GrammarStates states(test_automaton("root ::= s\ns ::= \"a\" s \"b\" | \"a\" s \"c\" | \"x\""));
  const GrammarStates::Id at = states.after_bytes(states.start(), text);
  EXPECT_EQ(states.configuration(at)->places.size(), 1u);
  EXPECT_LT(states.bytes(), 1'000'000u);
}

TEST(GrammarStates, AreOneForRightRecursion) {
  GrammarStates states(test_automaton("root ::= \"a\" root | \"b\""));
  const GrammarStates::Id once = states.after_bytes(states.start(), "a");
  EXPECT_EQ(states.after_bytes(once, "aaaaaaaa"), once);
}

TEST(GrammarStates, EndWhereTheDepthEnds) {
  GrammarStates states(test_automaton("root ::= \"(\" root \")\" | \"x\""));
  const GrammarStates::Id deep = states.after_bytes(states.start(), std::string(4000, '('));
  EXPECT_NE(deep, GrammarStates::kDead);
  EXPECT_EQ(states.after_bytes(deep, std::string(100, '(')), GrammarStates::kDead);
  EXPECT_TRUE(states.is_complete(states.after_bytes(deep, "x" + std::string(4000, ')'))));
}

TEST(GrammarStates, CarryOnAConfigurationOfOthers) {
  const auto automaton = test_automaton("root ::= \"[\" root? \"]\"");
  GrammarConfigurationPtr kept;
  {
    GrammarStates first(automaton);
    kept = first.configuration(first.after_bytes(first.start(), "[[["));
  }
  GrammarStates second(automaton);
  const GrammarStates::Id own = second.after_bytes(second.start(), "[[[");
  EXPECT_EQ(second.adopt(*kept), own);
  second.forget();
  EXPECT_TRUE(second.is_complete(second.after_bytes(second.adopt(*kept), "]]]")));
}

TEST(GrammarStates, ManyAlternativesBecomeOnePlace) {
  std::string grammar = "root ::= \"value0\"";
  for (int i = 1; i < 1300; ++i) grammar += " | \"value" + std::to_string(i) + "\"";
  GrammarStates states(test_automaton(grammar));
  EXPECT_EQ(states.configuration(states.start())->places.size(), 1u);
  EXPECT_TRUE(states.is_complete(states.after_bytes(states.start(), "value1299")));
  EXPECT_EQ(states.after_bytes(states.start(), "value1300"), GrammarStates::kDead);
}

TEST(GrammarAutomaton, RefusesWhatBeginsWithItself) {
  EXPECT_EQ(grammar_refusal("root ::= a\na ::= a \"x\" | \"y\""),
            "grammar must not be left-recursive: rule a can begin with itself");
  EXPECT_NE(grammar_refusal("root ::= b\nb ::= c d\nc ::= \"x\"?\nd ::= b \"y\" | \"z\""), "");
  EXPECT_NE(grammar_refusal("root ::= root"), "");
}

TEST(GrammarAutomaton, RefusesWhatMatchesNothing) {
  EXPECT_EQ(grammar_refusal("root ::= \"a\" root"), "grammar matches no text: rule root never comes to an end");
  EXPECT_EQ(grammar_refusal("root ::= [^\\U00000000-\\U0010FFFF]"),
            "grammar matches no text: rule root never comes to an end");
  // An alternative without an end is left out.
  EXPECT_EQ(verdict("root ::= \"a\" loop | \"b\"\nloop ::= \"c\" loop", "a"), "no");
}

TEST(GrammarAutomaton, RefusesWhatIsTooLarge) {
  EXPECT_NE(grammar_refusal("root ::= ((\"a\"{1000}){1000}){1000}").find("too large"), std::string::npos);
}

TEST(GrammarAutomaton, KeepsSetsApartWhereThereAreTooMany) {
  // Deterministic this has 2^21 positions.
  constexpr std::string_view kGrammar = "root ::= (\"a\" | \"b\")* \"a\" (\"a\" | \"b\"){20}";
  EXPECT_LT(test_automaton(kGrammar)->positions(), 10'000u);
  EXPECT_EQ(verdict(kGrammar, "bba" + std::string(20, 'b')), "match");
  EXPECT_EQ(verdict(kGrammar, "bbb" + std::string(20, 'b')), "begin");
}

// After each character it may be over, or go on twice: without a bound each place returns to all places before it.
TEST(GrammarStates, WaysBackAreFewHoweverLongTheTextIs) {
  GrammarStates states(test_automaton("root ::= s\ns ::= [a-z ] s s | [a-z ] s | [a-z ]"));
  GrammarConfigurationPtr at = states.configuration(states.start());
  for (int i = 0; i < 1500; ++i) {
    const GrammarStates::Id next = states.after_bytes(states.adopt(*at), "a");
    ASSERT_NE(next, GrammarStates::kDead);
    EXPECT_TRUE(states.is_complete(next));
    at = states.configuration(next);
    if (i % 500 == 499) states.forget();
  }
  for (const GrammarPlace& place : at->places) ASSERT_LE(place.stack->returns.size(), 64U);
}

}  // namespace
}  // namespace chasqui
