#include "model/peg_answer_parser.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <chat-peg-parser.h>
#include <chat.h>

#include "base/limits.h"
#include "model/control_escaper.h"
#include "model/peg_anatomy.h"
#include "model/work_budget.h"

namespace chasqui {
namespace {

using Builder = common_chat_peg_builder;

// The texts of an answer that may have any length.
enum class Run { none, content, reasoning, string_argument, json_argument };

// A parse of the kept text.
struct Parsed {
  common_chat_msg message;
  bool whole = false;     // matched to the end
  bool any = false;       // something could be read
  Run run = Run::none;    // the last text in it
  std::size_t begin = 0;  // where that begins, in the kept text
  std::size_t end = 0;
};

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

// True when `json` ends inside a string; `begin` is where that string begins.
bool ends_in_string(std::string_view json, std::size_t& begin) {
  bool inside = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (json[i] == '\\' && inside) {
      ++i;
    } else if (json[i] == '"') {
      inside = !inside;
      begin = i;
    }
  }
  return inside;
}

class PegAnswerFormat final : public AnswerFormat {
 public:
  explicit PegAnswerFormat(const PegAnswerSource& source)
      : source_(source), arena_(load(source)), anatomy_(PegAnatomy::of(arena_)) {}

  std::unique_ptr<AnswerParser> make_parser() const override;

  Parsed parse(const std::string& text, bool ended) const {
    common_peg_parse_context state(text, ended ? COMMON_PEG_PARSE_FLAG_NONE : COMMON_PEG_PARSE_FLAG_LENIENT);
    const common_peg_parse_result result = arena_.parse(state);
    Parsed out;
    out.whole = result.success();
    out.any = !result.fail() || result.end > 0;
    if (!out.any) return out;
    map(state.ast, result, out.message);
    state.ast.visit(result, [&out](const common_peg_ast_node& node) {
      const Run run = run_of(node.tag);
      if (run == Run::none) return;
      out.run = run;
      out.begin = node.start;
      out.end = node.end;
    });
    return out;
  }

  const PegAnswerSource& source() const { return source_; }
  const PegAnatomy& anatomy() const { return anatomy_; }
  // Only then are arguments what stands in the text.
  bool plain_arguments() const {
    return source_.format == COMMON_CHAT_FORMAT_PEG_NATIVE || source_.format == COMMON_CHAT_FORMAT_PEG_SIMPLE;
  }

 private:
  static common_peg_arena load(const PegAnswerSource& source) {
    common_peg_arena arena;
    arena.load(source.parser);
    return arena;
  }

  static Run run_of(const std::string& tag) {
    if (tag == Builder::CONTENT) return Run::content;
    if (tag == Builder::REASONING) return Run::reasoning;
    if (tag == Builder::TOOL_ARG_STRING_VALUE) return Run::string_argument;
    if (tag == Builder::TOOL_ARGS) return Run::json_argument;
    return Run::none;
  }

  void map(const common_peg_ast_arena& ast, const common_peg_parse_result& result, common_chat_msg& message) const {
    if (source_.format == COMMON_CHAT_FORMAT_PEG_GEMMA4) {
      common_chat_peg_gemma4_mapper(message).from_ast(ast, result);
    } else if (source_.format == COMMON_CHAT_FORMAT_PEG_MINIMAX_M3) {
      common_chat_peg_minimax_m3_mapper(message).from_ast(ast, result);
    } else {
      common_chat_peg_mapper(message).from_ast(ast, result);
    }
  }

  const PegAnswerSource source_;
  const common_peg_arena arena_;
  const PegAnatomy anatomy_;
};

void append(std::vector<AnswerDelta>& out, AnswerDelta::Kind kind, std::string_view text, std::size_t call = 0) {
  if (text.empty()) return;
  if (out.empty() || out.back().kind != kind || out.back().call != call) {
    AnswerDelta& delta = out.emplace_back();
    delta.kind = kind;
    delta.call = call;
  }
  out.back().text += text;
}

// What `next` says beyond `before`; nothing where it takes back what it said, which cannot be delivered.
void append_difference(const common_chat_msg& before, const common_chat_msg& next, ControlEscaper& arguments,
                       std::vector<AnswerDelta>& out) {
  using Kind = AnswerDelta::Kind;
  const auto rest = [](const std::string& was, const std::string& is) {
    return is.starts_with(was) ? std::string_view(is).substr(was.size()) : std::string_view();
  };
  append(out, Kind::reasoning, rest(before.reasoning_content, next.reasoning_content));
  append(out, Kind::content, rest(before.content, next.content));
  for (std::size_t i = 0; i < next.tool_calls.size(); ++i) {
    const common_chat_tool_call& call = next.tool_calls[i];
    if (i >= before.tool_calls.size()) {
      AnswerDelta& delta = out.emplace_back();
      delta.kind = Kind::call_begin;
      delta.call = i;
      delta.name = call.name;
      delta.id = call.id;
      arguments = {};
      append(out, Kind::call_arguments, arguments.escaped(call.arguments), i);
    } else {
      append(out, Kind::call_arguments, arguments.escaped(rest(before.tool_calls[i].arguments, call.arguments)), i);
    }
  }
}

class PegAnswerParser final : public AnswerParser {
 public:
  explicit PegAnswerParser(const PegAnswerFormat& format)
      : format_(format), text_(format.source().answer_begin), parsed_(text_.size()) {
    if (!format_.source().continues) return;  // what the prompt says of it is part of what is delivered first
    Parsed parsed = parse(false);
    if (parsed.message.tool_calls.empty()) {
      note(parsed);
    } else {  // the rest of a call is of no use to a client: those that the prompt begins are delivered whole
      said_ = std::move(parsed.message);
      said_.tool_calls.clear();
    }
  }

  void push(std::string_view text, std::vector<AnswerDelta>& out) override {
    if (given_up_) return append(out, AnswerDelta::Kind::content, text);
    // In the middle of a run, with nothing kept behind the anchor, what no marker can begin in is simply more of it.
    if (anchored()) {
      const std::size_t plain = plain_length(text);
      counted_ += plain;
      append(out, kind(), text.substr(0, plain), call());
      text.remove_prefix(plain);
    }
    if (text.empty()) return;
    text_ += text;
    if (text_.size() < parse_at_) return;
    read(out);
  }

  void finish(std::vector<AnswerDelta>& out) override {
    if (anchored() || given_up_) return;
    Parsed parsed = parse(true);
    if (given_up_) return append_rest(out);
    // Reasoning whose end mark is cut off would be content now.
    if (!parsed.whole || (parsed.message.reasoning_content.empty() && !said_.reasoning_content.empty())) {
      parsed = parse(false);
      if (given_up_) return append_rest(out);
      keep_rest(parsed);
    }
    append_difference(said_, parsed.message, arguments_, out);
  }

  std::uint64_t bytes_parsed() const override { return counted_; }

 private:
  // Parsing everything each time is quick up to here; beyond, each parse waits until there is an eighth more.
  static constexpr std::size_t kShort = 1024;
  static constexpr Duration kParseMost = kTimeLimit<"answer_seconds">;  // of computing, on the loop

  bool anchored() const { return run_ != Run::none && text_.size() == anchor_; }

  AnswerDelta::Kind kind() const {
    if (run_ == Run::content) return AnswerDelta::Kind::content;
    return run_ == Run::reasoning ? AnswerDelta::Kind::reasoning : AnswerDelta::Kind::call_arguments;
  }
  std::size_t call() const {
    return kind() == AnswerDelta::Kind::call_arguments ? said_.tool_calls.size() - 1 : std::size_t{0};
  }

  std::size_t plain_length(std::string_view text) const {
    const PegAnatomy& anatomy = format_.anatomy();
    const bool markers = run_ != Run::json_argument;
    const bool json = run_ == Run::json_argument || run_ == Run::string_argument;
    std::size_t size = 0;
    while (size < text.size() && !(markers && anatomy.markers.has(text[size])) &&
           !(json && anatomy.json.has(text[size]))) {
      ++size;
    }
    // Spaces at the end of arguments are not delivered before it is clear that something follows.
    if (json) {
      while (size > 0 && is_space(text[size - 1])) --size;
    }
    return size;
  }

  Parsed parse(bool ended) {
    counted_ += text_.size();
    const WorkBudget budget(kParseMost);
    try {
      return format_.parse(text_, ended);
    } catch (const std::runtime_error&) {
      if (!budget.is_used_up()) throw;
    }
    given_up_ = true;
    return {};
  }

  // What no parse has seen, of an answer that is content from here on.
  void append_rest(std::vector<AnswerDelta>& out) const {
    append(out, AnswerDelta::Kind::content, std::string_view(text_).substr(std::min(parsed_, text_.size())));
  }

  void read(std::vector<AnswerDelta>& out) {
    Parsed parsed = parse(false);
    if (given_up_) return append_rest(out);
    if (parsed.any) {
      append_difference(said_, parsed.message, arguments_, out);
      note(parsed);
      parsed_ = text_.size();
    }
    parse_at_ = text_.size() + (text_.size() > kShort ? text_.size() / 8 : 1);
  }

  // Where this parse ends inside a run: cut out what was delivered of it, or let the run begin here.
  void note(Parsed& parsed) {
    if (!in_the_middle(parsed)) {
      said_ = std::move(parsed.message);
      return;
    }
    std::size_t begin = parsed.begin;
    if (parsed.run == Run::json_argument) {
      std::size_t string = 0;
      ends_in_string(std::string_view(text_).substr(parsed.begin), string);
      begin += string;
    }
    if (run_ == parsed.run && begin_ == begin && anchor_ <= text_.size()) {
      text_.resize(anchor_);
      said_ = at_anchor_;
    } else {
      run_ = parsed.run;
      begin_ = begin;
      anchor_ = text_.size();
      said_ = std::move(parsed.message);
      at_anchor_ = said_;
    }
  }

  // Whether the text ends inside a run, and the message has all of it, so that more text is more of the same.
  bool in_the_middle(const Parsed& parsed) const {
    if (!parsed.any || parsed.run == Run::none || parsed.end != text_.size() || parsed.begin >= parsed.end)
      return false;
    const common_chat_msg& message = parsed.message;
    const char last = text_.back();
    switch (parsed.run) {
      case Run::content: return format_.anatomy().free.contains(Builder::CONTENT) && ends_with(message.content, last);
      case Run::reasoning:
        return format_.anatomy().free.contains(Builder::REASONING) && ends_with(message.reasoning_content, last);
      default: break;
    }
    if (!format_.plain_arguments() || message.tool_calls.empty() || is_space(last)) return false;
    if (format_.anatomy().json.has(last) || !ends_with(message.tool_calls.back().arguments, last)) return false;
    if (parsed.run == Run::string_argument) return format_.anatomy().free.contains(Builder::TOOL_ARG_STRING_VALUE);
    const std::string_view json = std::string_view(text_).substr(parsed.begin);
    std::size_t string = 0;
    return json.front() == '{' && ends_in_string(json, string);
  }

  static bool ends_with(const std::string& text, char last) { return !text.empty() && text.back() == last; }

  // The answer ended in what might have become a marker, or where no parser goes on: that was text.
  void keep_rest(Parsed& parsed) const {
    const std::size_t begun = format_.source().answer_begin.size();
    if (!parsed.any || parsed.run == Run::none) {
      if (!parsed.any) parsed.message = said_;
      if (parsed.message.empty()) parsed.message.content = text_.substr(std::min(begun, text_.size()));
      return;
    }
    const std::string_view rest = std::string_view(text_).substr(parsed.end);
    if (parsed.run == Run::content && parsed.message.tool_calls.empty()) {
      parsed.message.content += rest;
    } else if (parsed.run == Run::reasoning && parsed.message.content.empty() && parsed.message.tool_calls.empty()) {
      parsed.message.reasoning_content += rest;
    }
  }

  const PegAnswerFormat& format_;
  std::string text_;          // what the parser is given; runs in it are cut short
  common_chat_msg said_;      // what it has been found to say, cut short likewise
  std::size_t parse_at_ = 0;  // size of text_ from which on it is parsed again
  // The run that text_ was in at its anchor, and what was said there.
  Run run_ = Run::none;
  std::size_t begin_ = 0;
  std::size_t anchor_ = 0;
  common_chat_msg at_anchor_;
  ControlEscaper arguments_;  // of the last call
  std::size_t parsed_;        // of text_, or what the prompt has of it
  bool given_up_ = false;     // it took too long, or went too deep
  std::uint64_t counted_ = 0;
};

std::unique_ptr<AnswerParser> PegAnswerFormat::make_parser() const { return std::make_unique<PegAnswerParser>(*this); }

}  // namespace

AnswerFormatPtr make_peg_answer_format(const PegAnswerSource& source) {
  if (source.parser.empty()) return nullptr;
  auto format = std::make_shared<PegAnswerFormat>(source);
  const Parsed begun = format->parse(source.answer_begin, false);
  const bool speaks = !source.continues && !begun.message.empty();
  if (!format->anatomy().parses && !speaks) return nullptr;
  return format;
}

}  // namespace chasqui
