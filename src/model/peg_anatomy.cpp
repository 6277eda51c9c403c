#include "model/peg_anatomy.h"

#include <type_traits>
#include <variant>

#include <chat-peg-parser.h>

namespace chasqui {
namespace {

using Builder = common_chat_peg_builder;

common_peg_parser_id only_child(const common_peg_arena& arena, const common_peg_parser_variant& parser) {
  return std::visit(
      [&arena](const auto& p) -> common_peg_parser_id {
        using P = std::decay_t<decltype(p)>;
        if constexpr (std::is_same_v<P, common_peg_ref_parser>) {
          return arena.has_rule(p.name) ? arena.get_rule(p.name) : COMMON_PEG_INVALID_PARSER_ID;
        } else if constexpr (requires { p.child; }) {
          return p.child;
        } else {
          return COMMON_PEG_INVALID_PARSER_ID;
        }
      },
      parser);
}

bool is_free(const common_peg_arena& arena, common_peg_parser_id id, int depth) {
  if (depth > 16 || id >= arena.size()) return false;
  const common_peg_parser_variant& parser = arena.get(id);
  if (std::holds_alternative<common_peg_until_parser>(parser)) return true;
  const bool wraps = std::holds_alternative<common_peg_rule_parser>(parser) ||
                     std::holds_alternative<common_peg_ref_parser>(parser) ||
                     std::holds_alternative<common_peg_gbnf_parser>(parser);
  return wraps && is_free(arena, only_child(arena, parser), depth + 1);
}

void add_marker(PegAnatomy& out, const std::string& text) {
  if (text.empty()) return;
  out.parses = true;
  out.markers.add(text.front());
}

// Texts that must not come next are markers too.
void forbid(PegAnatomy& out, const common_peg_arena& arena, common_peg_parser_id id, int depth) {
  if (depth > 16 || id >= arena.size()) return;
  const common_peg_parser_variant& parser = arena.get(id);
  if (const auto* literal = std::get_if<common_peg_literal_parser>(&parser)) return add_marker(out, literal->literal);
  if (const auto* all = std::get_if<common_peg_sequence_parser>(&parser)) {
    for (const auto child : all->children) forbid(out, arena, child, depth + 1);
  } else if (const auto* any = std::get_if<common_peg_choice_parser>(&parser)) {
    for (const auto child : any->children) forbid(out, arena, child, depth + 1);
  } else if (const common_peg_parser_id child = only_child(arena, parser); child != COMMON_PEG_INVALID_PARSER_ID) {
    forbid(out, arena, child, depth + 1);
  }
}

void look(PegAnatomy& out, const common_peg_arena& arena, common_peg_parser_id id, std::set<std::string>& tied) {
  const common_peg_parser_variant& parser = arena.get(id);
  if (const auto* until = std::get_if<common_peg_until_parser>(&parser)) {
    for (const std::string& text : until->delimiters) add_marker(out, text);
  } else if (const auto* ac = std::get_if<common_peg_ac_parser>(&parser)) {
    for (const std::string& text : ac->delimiters) add_marker(out, text);
  } else if (const auto* no = std::get_if<common_peg_not_parser>(&parser)) {
    forbid(out, arena, no->child, 0);
  } else if (const auto* tag = std::get_if<common_peg_tag_parser>(&parser)) {
    if (tag->tag != Builder::CONTENT) out.parses = true;
    (is_free(arena, tag->child, 0) ? out.free : tied).insert(tag->tag);
  }
}

}  // namespace

PegAnatomy PegAnatomy::of(const common_peg_arena& arena) {
  PegAnatomy out;
  std::set<std::string> tied;
  for (std::size_t id = 0; id < arena.size(); ++id) look(out, arena, id, tied);
  for (const std::string& tag : tied) out.free.erase(tag);
  out.json.add('"');
  out.json.add('\\');
  for (int c = 0; c < 0x20; ++c) out.json.add(static_cast<char>(c));
  return out;
}

}  // namespace chasqui
