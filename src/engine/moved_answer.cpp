#include "engine/moved_answer.h"

#include "engine/session_fields.h"

namespace chasqui {
namespace {

constexpr std::uint32_t kAnswerMagic = 0x41737143;  // and the version of this layout

template <class Fields, class AnswerType>
void walk_answer(Fields& fields, AnswerType& answer) {
  fields.text(answer.stream);
  fields.text(answer.body);
  fields.text(answer.completion);
  fields.text(answer.model);
  fields.text(answer.fingerprint);
  fields.number(answer.created);
  fields.number(answer.seed);
  fields.number(answer.history);
  const std::size_t tokens = fields.count(answer.tokens.size(), sizeof(Token));
  if constexpr (!std::is_const_v<AnswerType>) answer.tokens.resize(tokens);
  for (auto& token : answer.tokens) fields.number(token);
  fields.number(answer.told.end);
  fields.text(answer.told.bytes);
}

}  // namespace

std::vector<std::byte> write_moved_answer(const MovedAnswer& answer) {
  std::vector<std::byte> out;
  FieldWriter fields(out);
  fields.number(kAnswerMagic);
  walk_answer(fields, answer);
  return out;
}

Result<MovedAnswer> read_moved_answer(std::span<const std::byte> bytes) {
  FieldReader fields(bytes, true);
  std::uint32_t magic = 0;
  fields.number(magic);
  MovedAnswer out;
  walk_answer(fields, out);
  if (fields.good() && magic == kAnswerMagic && out.told.bytes.size() <= out.told.end) return out;
  return Error{ErrorCode::invalid_request, "it is no answer that was moved", ""};
}

}  // namespace chasqui
