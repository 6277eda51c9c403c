// Reads answers with the parsers that llama-common makes from a chat template. Those parse a whole answer at once, so
// the text that is given to them is kept short: as long as the answer is inside a text that may have any length
// (content, reasoning, a string among a call's arguments) and no marker is in sight, what has been delivered of it is
// cut out again, which leaves the parser where it was. Everything else, the markers and names around these texts, is
// parsed again with every piece at first, and ever more rarely the longer it gets.
#pragma once

#include <string>

#include "model/answer_parser.h"

namespace chasqui {

struct PegAnswerSource {
  std::string parser;        // as common_chat_params has it
  int format = 0;            // common_chat_format
  std::string answer_begin;  // what the prompt has of the answer already
  bool continues = false;    // … and has been delivered
};

// Null when the answer is content as it stands. Throws what llama-common throws.
AnswerFormatPtr make_peg_answer_format(const PegAnswerSource& source);

}  // namespace chasqui
