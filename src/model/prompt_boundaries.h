// Where the parts of a chat begin in its prompt, in tokens: for models whose memory cannot be cut, which keep their
// state at such positions (core/checkpoints.h). Found by rendering the chat without some of it and comparing, since
// templates are programs. Const over its arguments, any thread; renders the template up to three times, so it belongs
// in the pool.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/types.h"
#include "model/chat_template.h"
#include "model/tokenizer.h"

namespace chasqui {

// Positions in `tokens`, of which `prompt` is the text, ascending:
//   the end of the system message and the tools    other chats with the same ones go on there
//   the text of the last user message              the same chat with that message edited does
//   the end of what the next turn has, too         where the template drops the reasoning of earlier turns; else that
//   is
//                                                  all of the prompt, and no boundary
// What cannot be found (a template that refuses a shorter chat, tokens whose texts are not the prompt's) is left out.
std::vector<TokenCount> prompt_boundaries(const ChatTemplate& chat_template, const Tokenizer& tokenizer,
                                          const Chat& chat, std::string_view prompt, std::span<const Token> tokens);

}  // namespace chasqui
