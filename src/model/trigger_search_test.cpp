#include "model/trigger_search.h"

#include <memory>
#include <random>
#include <regex>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

std::shared_ptr<const TriggerPatterns> patterns_of(const std::vector<std::string>& texts) {
  return std::make_shared<TriggerPatterns>(texts.begin(), texts.end());
}

// All that formats of llama-common have.
const std::vector<std::vector<std::string>>& known_patterns() {
  static const std::vector<std::vector<std::string>> kPatterns = {
      {"<tool_call>"},
      {"\\[TOOL_CALLS\\]", "\\{\"type\": \"function\","},
      {">>>(?!all)"},
      {"^\\s+to$", "^<\\|channel\\|>(?:commentary|analysis)\\s+to=functions$", "<\\|start\\|>assistant(\\s+to)",
       "<\\|start\\|>assistant(<\\|channel\\|>(?:commentary|analysis)\\s+to)"},
      {"(?:^|<\\|start\\|>assistant)( to=(?!self<\\|message\\|>)(?!user<\\|message\\|>)[^<]*?<\\|message\\|>)"},
      {"[\\s\\S]*?(<)[\\s\\S]*"},
      {"a[x-z]+b|(c)?d"},
  };
  return kPatterns;
}

// As libllama does it: all of the answer at each token.
class WholeSearch {
 public:
  explicit WholeSearch(const std::vector<std::string>& patterns)
      : patterns_(patterns), regexes_(patterns.begin(), patterns.end()) {}

  std::vector<TriggerSearch::Piece> push(Token token, const std::string& text) {
    places_.emplace_back(token, text_.size());
    text_ += text;
    for (std::size_t i = 0; i < patterns_.size(); ++i) {
      const std::string& pattern = patterns_[i];
      const std::regex& regex = regexes_[i];
      std::smatch match;
      const bool whole = pattern.front() == '^' && pattern.back() == '$' && std::regex_match(text_, match, regex);
      if (whole || std::regex_search(text_, match, regex)) return pieces(match);
    }
    return {};
  }

 private:
  std::vector<TriggerSearch::Piece> pieces(const std::smatch& match) const {
    auto begin = static_cast<std::size_t>(match.position(0));
    for (std::size_t i = match.size(); i-- > 1;) {
      if (match.length(i) > 0) begin = static_cast<std::size_t>(match.position(i));
    }
    std::vector<TriggerSearch::Piece> out;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const std::size_t end = i + 1 < places_.size() ? places_[i + 1].second : text_.size();
      const std::size_t from = std::max(places_[i].second, begin);
      if (end > begin) out.push_back({places_[i].first, text_.substr(from, end - from)});
    }
    return out;
  }

  const std::vector<std::string>& patterns_;
  const std::vector<std::regex> regexes_;
  std::string text_;
  std::vector<std::pair<Token, std::size_t>> places_;
};

TEST(TriggerSearch, FindsWhatASearchOfTheWholeAnswerFinds) {
  const char* const fragments[] = {"<tool_call>",
                                   "<tool",
                                   "_call>",
                                   "[TOOL_CALLS]",
                                   "{\"type\": ",
                                   "\"function\",",
                                   ">>>",
                                   ">",
                                   "all",
                                   "weather",
                                   " ",
                                   "\n",
                                   "to",
                                   " to",
                                   "<|channel|>",
                                   "commentary",
                                   "analysis",
                                   " to=functions",
                                   "<|start|>assistant",
                                   " to=",
                                   "self",
                                   "user",
                                   "<|message|>",
                                   "x",
                                   "<",
                                   "axz",
                                   "b",
                                   "c",
                                   "d",
                                   "",
                                   "\xC3\xA9"};
  std::mt19937 dice(7);
  const auto below = [&dice](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(dice); };
  std::size_t found = 0;
  for (const auto& patterns : known_patterns()) {
    const auto compiled = patterns_of(patterns);
    for (int round = 0; round < 500; ++round) {
      TriggerSearch search(compiled);
      WholeSearch whole(patterns);
      const std::size_t most = 1 + below(3);  // fragments in a token, and cut anywhere
      std::string said;
      for (Token token = 0; token < 12; ++token) {
        std::string text;
        for (std::size_t i = below(most + 1); i > 0; --i) text += fragments[below(std::size(fragments))];
        if (!text.empty() && below(3) == 0) text = text.substr(below(text.size()));
        said += '|' + text;
        const auto pieces = whole.push(token, text);
        ASSERT_EQ(search.push(token, text), pieces) << patterns[0] << " in " << said;
        if (pieces.empty()) continue;
        ++found;
        break;
      }
    }
  }
  EXPECT_GE(found, 800u);
}

TEST(TriggerSearch, KnowsThePatternsOfAllFormats) {
  for (const auto& patterns : known_patterns()) {
    for (const TriggerPattern& pattern : *patterns_of(patterns)) {
      EXPECT_TRUE(pattern.scannable()) << patterns[0];
    }
  }
  for (const char* other : {"x*", "", "(?=a)b", "a{2,3}", "(a)\\1", "\\bx", "a(?!b$)", "[[:alpha:]]"}) {
    EXPECT_FALSE(TriggerPattern(other).scannable()) << other;
  }
  EXPECT_THROW(TriggerPattern("(a"), std::regex_error);
}

// Steps of a token behind so many characters, of text that looks like the beginning of every pattern again and again.
double steps_behind(const std::vector<std::string>& patterns, std::size_t characters, const std::string& text) {
  TriggerSearch search(patterns_of(patterns));
  std::size_t said = 0;
  while (said < characters) {
    EXPECT_TRUE(search.push(1, text).empty());
    said += text.size();
  }
  const std::size_t before = search.work();
  constexpr int kTokens = 200;
  for (int i = 0; i < kTokens; ++i) search.push(1, text);
  EXPECT_LE(search.kept(), 2 * TriggerSearch::kSpan + text.size());
  return static_cast<double>(search.work() - before) / kTokens;
}

TEST(TriggerSearch, TakesAsMuchForATokenHoweverLongTheAnswerIs) {
  for (const auto& patterns : known_patterns()) {
    if (patterns[0].starts_with("[\\s\\S]")) continue;  // the first "<" is a match
    for (const std::string text : {" word", "\n", "<|start|>assistan", ">>>all", "<tool_cal", " to self"}) {
      if (text == "<|start|>assistan" && patterns[0] == "a[x-z]+b|(c)?d") continue;
      if (text == " word" && patterns[0] == "a[x-z]+b|(c)?d") continue;
      const double few = steps_behind(patterns, 2000, text);
      const double many = steps_behind(patterns, 64'000, text);
      EXPECT_LE(many, 1.01 * few + 1) << patterns[0] << " in " << text;
    }
  }
}

// Of such a beginning nothing ends before its limit; then it costs nothing more.
TEST(TriggerSearch, ForgetsABeginningThatGoesOnForTooLong) {
  TriggerSearch search(patterns_of(known_patterns()[4]));
  EXPECT_TRUE(search.push(1, " to=weather").empty());
  for (int i = 0; i < 3000; ++i) EXPECT_TRUE(search.push(2, " and on").empty());
  EXPECT_LE(search.kept(), 2 * TriggerSearch::kSpan);
  EXPECT_TRUE(search.push(3, "<|message|>").empty());
  const auto said = search.push(4, "<|start|>assistant to=weather<|message|>");
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].text, " to=weather<|message|>");
}

TEST(TriggerSearch, CopiesAreIndependent) {
  TriggerSearch one(patterns_of({"<call>"}));
  EXPECT_TRUE(one.push(1, "x <ca").empty());
  TriggerSearch other = one;
  EXPECT_EQ(one.push(2, "ll>{"), (std::vector<TriggerSearch::Piece>{{1, "<ca"}, {2, "ll>{"}}));
  EXPECT_TRUE(other.push(3, "p").empty());
}

}  // namespace
}  // namespace chasqui
