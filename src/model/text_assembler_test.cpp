#include "model/text_assembler.h"

#include <random>

#include <gtest/gtest.h>

#include "base/utf8.h"
#include "model/sim_tokenizer.h"

namespace chasqui {
namespace {

const SimTokenizer& plain_tokenizer() {
  static const SimTokenizer instance;
  return instance;
}

struct Assembled {
  std::string text;
  std::string stop;
  bool operator==(const Assembled&) const = default;
};
void PrintTo(const Assembled& o, std::ostream* out) { *out << '"' << o.text << "\" stop \"" << o.stop << '"'; }

// Pushes the pieces in order, checks that every prefix is sound, and flushes unless a stop string ended it.
Assembled assemble(const std::vector<std::string>& pieces, const std::vector<std::string>& stops) {
  TextAssembler assembler(plain_tokenizer(), stops, false);
  Assembled outcome;
  for (const std::string& piece : pieces) {
    const std::string* stop = assembler.push_bytes(piece, outcome.text);
    EXPECT_TRUE(is_valid_utf8(outcome.text));
    if (stop != nullptr) return {outcome.text, *stop};
  }
  if (const std::string* stop = assembler.flush(outcome.text)) outcome.stop = *stop;
  EXPECT_EQ(assembler.held(), 0u);
  return outcome;
}

std::vector<std::string> bytes_of(std::string_view text) {
  std::vector<std::string> pieces;
  for (char c : text) pieces.emplace_back(1, c);
  return pieces;
}

Assembled by_bytes(std::string_view text, const std::vector<std::string>& stops) {
  return assemble(bytes_of(text), stops);
}

TEST(TextAssembler, PassesTextOn) {
  EXPECT_EQ(assemble({"Hello", ", ", "world"}, {}), (Assembled{"Hello, world", ""}));
}

TEST(TextAssembler, NeverSendsHalfACharacter) {
  TextAssembler assembler(plain_tokenizer(), {}, false);
  std::string out;
  assembler.push_bytes("a\xF0\x9F", out);
  EXPECT_EQ(out, "a");
  assembler.push_bytes("\x99", out);
  EXPECT_EQ(out, "a");
  assembler.push_bytes("\x82z", out);
  EXPECT_EQ(out, "a🙂z");
}

TEST(TextAssembler, InvalidBytesBecomeReplacements) {
  EXPECT_EQ(by_bytes("a\xFFz", {}).text, "a\uFFFDz");
  EXPECT_EQ(by_bytes("\x80\x80", {}).text, "\uFFFD\uFFFD");
  EXPECT_EQ(by_bytes("\xE2\x82 ", {}).text, "\uFFFD ");  // one for a beginning that is cut short
  EXPECT_EQ(by_bytes("\xE2\x82\xE2\x82\xAC", {}).text, "\uFFFD€");
  EXPECT_EQ(by_bytes("\xED\xA0\x80", {}).text, "\uFFFD\uFFFD\uFFFD");  // a surrogate
  EXPECT_EQ(by_bytes("z\xF0\x9F\x99", {}).text, "z\uFFFD");            // at the end
}

TEST(TextAssembler, CutsBeforeTheStopString) {
  EXPECT_EQ(assemble({"one, two", ", three"}, {", t"}), (Assembled{"one", ", t"}));
  EXPECT_EQ(assemble({"one\n", "\ntwo"}, {"\n\n"}), (Assembled{"one", "\n\n"}));
  EXPECT_EQ(assemble({"END"}, {"END"}), (Assembled{"", "END"}));
}

TEST(TextAssembler, HoldsBackOnlyWhatMayBeAStop) {
  TextAssembler assembler(plain_tokenizer(), {"STOP"}, false);
  std::string out;
  assembler.push_bytes("abST", out);
  EXPECT_EQ(out, "ab");
  EXPECT_EQ(assembler.held(), 2u);
  assembler.push_bytes("ST", out);
  EXPECT_EQ(out, "abST");
  assembler.push_bytes("x", out);
  EXPECT_EQ(out, "abSTSTx");
  EXPECT_EQ(assembler.held(), 0u);
}

TEST(TextAssembler, OverlappingBeginnings) {
  EXPECT_EQ(by_bytes("aaab", {"aab"}), (Assembled{"a", "aab"}));
  EXPECT_EQ(by_bytes("ababac", {"abac"}), (Assembled{"ab", "abac"}));
  EXPECT_EQ(by_bytes("aabaabaaa", {"aabaaa"}), (Assembled{"aab", "aabaaa"}));
}

TEST(TextAssembler, StopStringInsideHeldText) {
  // "xabc" is held for the first stop when the second one completes inside it.
  EXPECT_EQ(by_bytes("xabcd", {"xabcz", "bc"}), (Assembled{"xa", "bc"}));
  EXPECT_EQ(by_bytes("xabcy", {"xabcz"}), (Assembled{"xabcy", ""}));
}

TEST(TextAssembler, TheFirstToCompleteWinsThenTheLongest) {
  EXPECT_EQ(by_bytes("abc", {"abc", "ab"}), (Assembled{"", "ab"}));
  EXPECT_EQ(by_bytes("xab", {"b", "ab"}), (Assembled{"x", "ab"}));
  EXPECT_EQ(by_bytes("xab", {"ab", "b"}), (Assembled{"x", "ab"}));
}

TEST(TextAssembler, StopStringsOfSeveralBytesPerCharacter) {
  EXPECT_EQ(by_bytes("naïve 🙂🙃 end", {"🙂🙃"}), (Assembled{"naïve ", "🙂🙃"}));
  EXPECT_EQ(by_bytes("naïve 🙂🙂 end", {"🙂🙃"}), (Assembled{"naïve 🙂🙂 end", ""}));
}

TEST(TextAssembler, FlushGivesTheHeldRest) {
  EXPECT_EQ(by_bytes("the ST", {"STOP"}), (Assembled{"the ST", ""}));
  EXPECT_EQ(by_bytes("the ST\xE2", {"STOP"}), (Assembled{"the ST\uFFFD", ""}));
}

TEST(TextAssembler, ControlTokensAreTextOnlyOnRequest) {
  std::string plain, special;
  TextAssembler without(plain_tokenizer(), {}, false);
  TextAssembler with(plain_tokenizer(), {}, true);
  for (Token token : {Token{'a'}, SimTokenizer::kImEnd, Token{'b'}}) {
    without.push(token, plain);
    with.push(token, special);
  }
  EXPECT_EQ(plain, "ab");
  EXPECT_EQ(special, "a<|im_end|>b");

  TextAssembler stops(plain_tokenizer(), {"<|im_end|>"}, true);
  std::string out;
  ASSERT_NE(stops.push(SimTokenizer::kImEnd, out), nullptr);
  EXPECT_EQ(out, "");
}

// What the stages should do together, without any streaming.
Assembled reference(std::string_view bytes, const std::vector<std::string>& stops) {
  Assembled all;
  TextAssembler utf8_only(plain_tokenizer(), {}, false);
  utf8_only.push_bytes(bytes, all.text);
  utf8_only.flush(all.text);
  for (std::size_t end = 1; end <= all.text.size(); ++end) {
    const std::string* longest = nullptr;
    for (const std::string& stop : stops) {
      const bool matches = std::string_view(all.text).substr(0, end).ends_with(stop);
      if (matches && (longest == nullptr || stop.size() > longest->size())) longest = &stop;
    }
    if (longest != nullptr) return {all.text.substr(0, end - longest->size()), *longest};
  }
  return all;
}

TEST(TextAssembler, TheSameHoweverTheBytesAreSplit) {
  std::mt19937 random(42);
  const std::vector<std::string> parts{"a", "b", "ab", "é", "🙂", "\n", "\xFF", "\xE2\x82", "\xC3", "€", "\x82"};
  const std::vector<std::string> stop_parts{"a", "b", "é", "🙂"};
  const auto text_of = [&](std::size_t length) {
    std::string text;
    for (std::size_t i = 0; i < length; ++i) text += parts[random() % parts.size()];
    return text;
  };
  for (int round = 0; round < 3000; ++round) {
    const std::string text = text_of(random() % 40);
    std::vector<std::string> stops;
    for (unsigned i = random() % 4; i > 0; --i) {
      std::string stop;
      for (unsigned n = 1 + random() % 4; n > 0; --n) stop += stop_parts[random() % stop_parts.size()];
      stops.push_back(stop);
    }
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t size = random() % 5;
      pieces.push_back(text.substr(at, size));
      at += size;
    }
    ASSERT_EQ(assemble(pieces, stops), reference(text, stops)) << "round " << round;
  }
}

// A megabyte under a stop string that nearly matches all the time: linear, or this takes minutes.
TEST(TextAssembler, LongAnswersCostNoMorePerByte) {
  std::string stop(1023, 'a');
  stop += 'b';
  TextAssembler assembler(plain_tokenizer(), {stop}, false);
  std::string out;
  const std::string piece(64, 'a');
  for (int i = 0; i < (1 << 20) / 64; ++i) ASSERT_EQ(assembler.push_bytes(piece, out), nullptr);
  EXPECT_EQ(assembler.held(), 1023u);
  ASSERT_NE(assembler.push_bytes("b", out), nullptr);
  EXPECT_EQ(out.size(), (std::size_t{1} << 20) - 1023);
}

TEST(TextAssembler, LeavesAnIncompleteCharacterOutAtTheEnd) {
  TextAssembler assembler(plain_tokenizer(), {"bc"}, false);
  std::string out;
  for (const Token token : {Token{'a'}, Token{'b'}, Token{0xC3}}) assembler.push(token, out);
  assembler.finish(out);
  EXPECT_EQ(out, "ab");
  EXPECT_EQ(assembler.held(), 0u);
}

TEST(TextAssembler, GoesOnInsideACharacter) {
  const auto after = [](const std::vector<Token>& before, const std::vector<Token>& pushed) {
    TextAssembler assembler(plain_tokenizer(), {}, false);
    assembler.begin_after(before);
    std::string out;
    for (const Token token : pushed) assembler.push(token, out);
    assembler.finish(out);
    return out;
  };
  EXPECT_EQ(after({'a', 0xC3}, {0xA9, 'b'}), "éb");
  EXPECT_EQ(after({0xF0, 0x9F, 0x9A}, {0x80}), "🚀");
  EXPECT_EQ(after({'a', 0xF0}, {0x9F, 0x9A, 0x80}), "🚀");
  EXPECT_EQ(after({0xC3, 0xA9}, {'b'}), "b");
  EXPECT_EQ(after({}, {'b'}), "b");
}

}  // namespace
}  // namespace chasqui
