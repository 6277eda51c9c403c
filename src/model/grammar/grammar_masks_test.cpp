// A mask says of every token what following its bytes says; and a matcher goes on from any state of before.
#include "model/grammar/grammar_masks.h"

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "model/grammar/test_grammar.h"

namespace chasqui {
namespace {

const std::vector<std::string> kWords = {
    "a",
    "b",
    "ab",
    "abc",
    "\"",
    "\",",
    "\"}",
    "{",
    "}",
    "{\"",
    "\":",
    ":",
    ",",
    " ",
    "  ",
    "\n",
    "\\",
    "\\n",
    "\\u",
    "0",
    "1",
    "12",
    "123",
    "-",
    ".",
    "e",
    "true",
    "false",
    "null",
    "[",
    "]",
    "],",
    "[[",
    "na",
    "name",
    "name\"",
    "x",
    "y",
    "yes",
    "no",
    "\xC3\xA9",
    "\xC3",
    "\xA9",
    "\xE2\x82",
    "\xAC",
    "\xF0\x9F",
    "\x98\x80",
    "\x80",
    "this is plain text",
    "a\"",
    "",
    "\xED\xA0\x80",
    "<x>",
};

constexpr std::string_view kJson = R"(
root ::= value
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" ws (member ("," ws member)*)? "}" ws
member ::= string ":" ws value
array ::= "[" ws (value ("," ws value)*)? "]" ws
string ::= "\"" char* "\"" ws
char ::= [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt/] | "u" [0-9a-fA-F]{4})
number ::= "-"? [0-9]+ ("." [0-9]+)? ([eE] [-+]? [0-9]+)? ws
ws ::= | " " | "\n" [ \t]{0,20}
)";

std::set<Token> tokens_of(const TokenMask& mask, TokenCount vocabulary) {
  std::set<Token> out;
  for (Token token = 0; token < vocabulary; ++token) {
    if (mask.has(token)) out.insert(token);
  }
  return out;
}

std::set<Token> one_by_one(GrammarMasks& masks, GrammarMasks::Id state) {
  std::set<Token> out;
  const TokenTrie& tokens = *masks.program()->tokens;
  for (Token token = 0; token < tokens.vocabulary(); ++token) {
    const bool allowed =
        tokens.is_end(token) ? masks.states().is_complete(state) : masks.after(state, token) != GrammarStates::kDead;
    if (allowed) out.insert(token);
  }
  return out;
}

// Walks on with tokens that the mask has.
void expect_exact(std::string_view grammar, int steps) {
  SCOPED_TRACE(grammar);
  GrammarMasks masks(test_program(grammar, kWords));
  const TokenCount vocabulary = masks.program()->tokens->vocabulary();
  std::mt19937 random(7);
  GrammarMasks::Id state = masks.states().start();
  for (int i = 0; i < steps; ++i) {
    const TokenMask& mask = masks.mask(state);
    ASSERT_TRUE(mask.whole);
    const std::set<Token> allowed = tokens_of(mask, vocabulary);
    ASSERT_EQ(allowed, one_by_one(masks, state));
    std::vector<Token> ways(allowed.begin(), allowed.end());
    std::erase_if(ways, [&](Token token) { return masks.program()->tokens->is_end(token); });
    if (ways.empty()) {
      state = masks.states().start();
    } else {
      state = masks.after(state, ways[random() % ways.size()]);
    }
  }
}

TEST(GrammarMasks, SayWhatEachTokenSays) {
  expect_exact(kJson, 400);
  expect_exact("root ::= .*", 10);
  expect_exact("root ::= [^\"]{0,9} \"\\\"\"", 40);
  expect_exact("root ::= [^a]{3,20} | \"a\" [a-z]*", 60);
  expect_exact("root ::= \"name\" | \"na\" [0-9]{1,3} | \"this is plain text\"+", 60);
  expect_exact("root ::= \"\\\"\" ([^\"a] [^\"]* | \"a\" (\"b\" [^\"]*)?) \"\\\"\"", 60);
  expect_exact("root ::= [\\u0080-\\uFFFF]+ \"x\"", 40);
}

// Found in pieces they are those that are found at once, and no piece takes much more work than it is allowed.
TEST(GrammarMasks, AreFoundInPieces) {
  constexpr std::string_view kByNumber = "root ::= ([^\"]{0,9} \"\\\"\" | !<[3]> | !<[5]>)+";
  for (const std::string_view grammar : {kJson, kByNumber}) {
    GrammarMasks at_once(test_program(grammar, kWords));
    GrammarMasks pieces(at_once.program());
    const TokenCount vocabulary = at_once.program()->tokens->vocabulary();
    std::mt19937 random(5);
    GrammarMasks::Id state = at_once.states().start();
    GrammarMasks::Id same = pieces.states().start();
    for (int i = 0; i < 60; ++i) {
      const std::set<Token> allowed = tokens_of(at_once.mask(state), vocabulary);
      constexpr std::uint64_t kWork = 50;
      constexpr std::uint64_t kRow = 16 * 160;  // of these grammars
      for (bool whole = false; !whole;) {
        const std::uint64_t before = pieces.work();
        std::uint64_t work = kWork;
        const TokenMask& mask = pieces.mask(same, work);
        whole = mask.whole;
        EXPECT_LE(pieces.work() - before, kWork + kRow);
        EXPECT_EQ(work, kWork - std::min(kWork, pieces.work() - before));
        const std::set<Token> so_far = tokens_of(mask, vocabulary);
        EXPECT_TRUE(std::ranges::includes(allowed, so_far)) << "a piece is never too large";
        EXPECT_TRUE(!whole || so_far == allowed);
      }
      std::vector<Token> ways(allowed.begin(), allowed.end());
      std::erase_if(ways, [&](Token token) { return at_once.program()->tokens->is_end(token); });
      const Token next = ways.empty() ? 0 : ways[random() % ways.size()];
      state = ways.empty() ? at_once.states().start() : at_once.after(state, next);
      same = ways.empty() ? pieces.states().start() : pieces.after(same, next);
    }
    EXPECT_EQ(at_once.cost().put_off, 0u);
    EXPECT_GT(pieces.cost().put_off, pieces.cost().computed);
    EXPECT_EQ(pieces.cost().computed, at_once.cost().computed);
  }
}

TEST(GrammarMasks, KnowTokensByNumber) {
  GrammarMasks masks(test_program("root ::= \"a\" (<[37]> | \"12\") !<[0]> \"b\"", kWords));
  const GrammarMasks::Id start = masks.states().start();
  EXPECT_EQ(tokens_of(masks.mask(start), 54), (std::set<Token>{0}));
  const GrammarMasks::Id second = masks.after(start, 0);
  EXPECT_EQ(tokens_of(masks.mask(second), 54), (std::set<Token>{20, 21, 37}));  // "1", "12", and y by its number
  const GrammarMasks::Id third = masks.after(second, 37);
  const TokenMask& others = masks.mask(third);
  EXPECT_FALSE(others.has(0));
  EXPECT_TRUE(others.has(1));
  EXPECT_TRUE(others.has(52));
  EXPECT_FALSE(others.has(50));  // has no text
  EXPECT_FALSE(others.has(53));  // the end
}

TEST(GrammarMasks, AreFoundAgain) {
  GrammarMasks masks(test_program("root ::= [a-z]*", kWords));
  const GrammarMasks::Id start = masks.states().start();
  masks.mask(start);
  masks.mask(masks.after(start, 0));
  masks.mask(masks.after(start, 1));
  EXPECT_EQ(masks.cost().computed, 1u);
  EXPECT_EQ(masks.cost().found, 2u);
}

TEST(GrammarMatcher, GoesBackToACopy) {
  const GrammarProgramPtr program = test_program("root ::= \"[\" root? \"]\" | \"a\"", kWords);
  GrammarMasks masks(program);
  GrammarMatcher matcher(program);
  ASSERT_TRUE(matcher.accept(29, masks));
  const GrammarMatcher before = matcher;
  ASSERT_TRUE(matcher.accept(32, masks));  // [[
  EXPECT_FALSE(matcher.accept(1, masks));  // b
  matcher = before;
  ASSERT_TRUE(matcher.accept(30, masks));
  EXPECT_TRUE(matcher.is_complete(masks));
  EXPECT_TRUE(matcher.accept(53, masks));

  GrammarMatcher elsewhere = before;
  GrammarMasks others(program);
  EXPECT_TRUE(elsewhere.accept(30, others));
  EXPECT_TRUE(elsewhere.is_complete(others));
  others.forget();
  EXPECT_TRUE(elsewhere.is_complete(others));
}

TEST(GrammarMatcher, TakesNoEndBeforeTheText) {
  const GrammarProgramPtr program = test_program("root ::= \"a\" \"b\"?", kWords);
  GrammarMasks masks(program);
  GrammarMatcher matcher(program);
  EXPECT_FALSE(matcher.allows(53, masks));
  EXPECT_FALSE(matcher.accept(53, masks));
  EXPECT_TRUE(matcher.accept(0, masks));
  EXPECT_TRUE(matcher.allows(53, masks));
}

TEST(GrammarMaskPool, ForgetsTheProgramThatWasUsedLongestAgo) {
  GrammarMaskPool pool;
  const GrammarProgramPtr first = test_program("root ::= \"a\"", kWords);
  GrammarMatcher matcher(first);
  ASSERT_TRUE(matcher.accept(0, pool.of(first)));
  for (int i = 0; i < 40; ++i) {
    const GrammarProgramPtr other = test_program("root ::= \"b\"", kWords);
    GrammarMatcher(other).mask(pool.of(other));
  }
  EXPECT_EQ(pool.cost().computed, 40u);
  EXPECT_TRUE(matcher.is_complete(pool.of(first)));
}

}  // namespace
}  // namespace chasqui
