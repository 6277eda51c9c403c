#include "cli/markdown_view.h"

#include <algorithm>
#include <utility>

#include "base/ascii.h"

namespace chasqui::cli {
namespace {

bool is_word(char c) { return is_ascii_word(c) || static_cast<unsigned char>(c) >= 0x80; }

// How many of the same character a text begins with.
std::size_t run_of(std::string_view text, char c) {
  const std::size_t end = text.find_first_not_of(c);
  return end == std::string_view::npos ? text.size() : end;
}

// A line of at least three of them: ---, ***, ___.
bool is_rule(std::string_view line) {
  const bool marks = line.size() >= 3 && (line[0] == '-' || line[0] == '*' || line[0] == '_');
  return marks && run_of(line, line[0]) == line.size();
}

}  // namespace

std::string MarkdownView::feed(std::string_view text) {
  std::string out;
  for (const char c : text) take(out, c);
  return out;
}

std::string MarkdownView::end() {
  std::string out;
  end_line(out);
  return out;
}

void MarkdownView::take(std::string& out, char c) {
  if (c == '\n') {
    end_line(out);
    out += '\n';
  } else if (in_head_) {
    take_head(out, c);
  } else if (verbatim_) {
    out += c;
  } else {
    take_inline(out, c);
  }
}

// Lines of what they begin with are told apart by their first character that is none of these.
void MarkdownView::take_head(std::string& out, char c) {
  head_ += c;
  const std::string_view marks = fenced_ ? " `" : " #>-+*_`";
  if (marks.find(c) == std::string_view::npos || head_.size() > 16) begin_line(out);
}

void MarkdownView::begin_line(std::string& out) {
  const std::string line = std::exchange(head_, "");
  in_head_ = false;
  const std::size_t indent = run_of(line, ' ');
  const std::string_view text = std::string_view(line).substr(indent);
  std::string_view rest = line;
  if (text.starts_with("```")) {
    fenced_ = !fenced_;
    verbatim_ = true;
    line_style_ = paint_.dim;
  } else if (fenced_) {
    verbatim_ = true;
    line_style_ = paint_.cyan;
  } else if (is_rule(text)) {
    verbatim_ = true;
    line_style_ = paint_.dim;
  } else if (const std::size_t level = run_of(text, '#');
             level > 0 && level <= 6 && text.substr(level).starts_with(' ')) {
    line_style_ = paint_.bold;
    rest = text.substr(level + 1);
  } else if (text.starts_with("> ")) {
    line_style_ = paint_.dim;
    rest = text;
  } else if (text.starts_with("- ") || text.starts_with("* ") || text.starts_with("+ ")) {
    out.append(indent, ' ');
    out += "• ";
    rest = text.substr(2);
  }
  out += line_style_;
  if (verbatim_) {
    out += rest;
    return;
  }
  for (const char c : std::string(rest)) take_inline(out, c);
}

void MarkdownView::end_line(std::string& out) {
  if (in_head_ && !head_.empty()) begin_line(out);
  while (!held_.empty()) {
    if (mark_ > 0 && may_close()) {
      close(out);
    } else {
      give_up(out);
    }
  }
  if (!line_style_.empty()) out += paint_.off;
  line_style_.clear();
  verbatim_ = false;
  in_head_ = true;
  before_ = ' ';
}

void MarkdownView::take_inline(std::string& out, char c) {
  if (held_.empty()) return begin_span(out, c);
  const char kind = held_[0];
  if (mark_ == 0) {
    if (c == kind && held_.size() < 3) {
      held_ += c;
      return;
    }
    mark_ = held_.size();
    held_ += c;
    const bool opens = c != kind && (kind == '`' || c != ' ');
    if (!opens) give_up(out);
    return;
  }
  // Whether the mark before it was a closing one is seen from this character.
  if (may_close() && c != kind && (kind != '_' || !is_word(c))) {
    close(out);
    return take_inline(out, c);
  }
  held_ += c;
  if (held_.size() > kHeldMax) give_up(out);
}

void MarkdownView::begin_span(std::string& out, char c) {
  // Scripts without spaces have ** between letters, and names have _ inside.
  const bool marks = c == '`' || (c == '*' && !is_ascii_word(before_)) || (c == '_' && !is_word(before_));
  if (!marks) return plain(out, c);
  held_ = c;
  mark_ = 0;
}

// Ends in as many marks as it began with.
bool MarkdownView::may_close() const {
  const char kind = held_[0];
  if (held_.size() < 2 * mark_ + 1) return false;
  const std::string_view text = std::string_view(held_).substr(mark_, held_.size() - 2 * mark_);
  const std::string_view mark = std::string_view(held_).substr(held_.size() - mark_);
  return run_of(mark, kind) == mark_ && text.back() != kind && (kind == '`' || text.back() != ' ');
}

void MarkdownView::close(std::string& out) {
  const std::string span = std::exchange(held_, "");
  const std::string_view style = span[0] == '`' ? paint_.cyan : mark_ > 1 ? paint_.bold : paint_.italic;
  out += style;
  out.append(span, mark_, span.size() - 2 * mark_);
  out += paint_.off;
  out += line_style_;
  mark_ = 0;
  before_ = span.back();
}

// The first mark is text; what stands behind it is read again.
void MarkdownView::give_up(std::string& out) {
  const std::string span = std::exchange(held_, "");
  const std::size_t marks = std::max<std::size_t>(run_of(span, span[0]), 1);
  mark_ = 0;
  for (std::size_t i = 0; i < marks; ++i) plain(out, span[0]);
  for (const char c : span.substr(marks)) take_inline(out, c);
}

void MarkdownView::plain(std::string& out, char c) {
  out += c;
  before_ = c;
}

}  // namespace chasqui::cli
